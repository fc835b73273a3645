package httpload

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"seatrial/engine"
	"seatrial/record"
)

// framed is one HTTP/2 connection as a server under test sees it.
type framed struct {
	*http2.Framer
	t    testing.TB
	nc   net.Conn
	wire sync.Mutex

	acked bool // the client has taken the settings
}

// headers answers a stream.
func (f *framed) headers(stream uint32, end bool, fields ...string) {
	var b strings.Builder
	e := hpack.NewEncoder(&b)
	for i := 0; i < len(fields); i += 2 {
		_ = e.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: []byte(b.String()), EndHeaders: true, EndStream: end})
}

func (f *framed) fine(stream uint32) {
	f.headers(stream, false, ":status", "200", "content-length", "2")
	_ = f.WriteData(stream, true, []byte("ok"))
}

// asked is one request as it arrived.
type asked struct {
	stream uint32
	fields map[string]string
	body   string
}

func (a asked) path() string { return a.fields[":path"] }

// framedServer speaks HTTP/2 with prior knowledge; serve handles one request, false closes the
// connection.
func framedServer(t testing.TB, settings []http2.Setting, serve func(f *framed, a asked) bool) string {
	return listen(t, func(nc net.Conn) { serveFrames(t, nc, settings, serve) })
}

func serveFrames(t testing.TB, nc net.Conn, settings []http2.Setting, serve func(f *framed, a asked) bool) {
	var hello [len(http2.ClientPreface)]byte
	if _, err := io.ReadFull(nc, hello[:]); err != nil || string(hello[:]) != http2.ClientPreface {
		return
	}
	f := &framed{Framer: http2.NewFramer(nc, nc), t: t, nc: nc}
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	_ = f.WriteSettings(settings...)
	open := map[uint32]*asked{}
	for {
		fr, err := f.ReadFrame()
		if err != nil {
			return
		}
		var a *asked
		end := false
		switch fr := fr.(type) {
		case *http2.SettingsFrame:
			if f.acked = f.acked || fr.IsAck(); !fr.IsAck() {
				_ = f.WriteSettingsAck()
			}
		case *http2.PingFrame:
			_ = f.WritePing(true, fr.Data)
		case *http2.MetaHeadersFrame:
			a = &asked{stream: fr.StreamID, fields: map[string]string{}}
			for _, h := range fr.Fields {
				a.fields[h.Name] = h.Value
			}
			open[fr.StreamID], end = a, fr.StreamEnded()
		case *http2.DataFrame:
			if a = open[fr.StreamID]; a != nil {
				a.body += string(fr.Data())
				end = fr.StreamEnded()
				if n := uint32(len(fr.Data())); n > 0 {
					_ = f.WriteWindowUpdate(0, n)
					_ = f.WriteWindowUpdate(fr.StreamID, n)
				}
			}
		}
		if a != nil && end {
			told.Lock()
			told.Unlock() //nolint:staticcheck // see told
			delete(open, a.stream)
			if !serve(f, *a) {
				return
			}
		}
	}
}

// behaviour2 is what an HTTP/2 server does with one request, and what must be made of it.
type behaviour2 struct {
	name   string
	method string
	serve  func(f *framed, a asked) bool
	want   record.Outcome
	status uint16
	resent bool
}

func behaviours2() []behaviour2 {
	ok, bad := record.Answered, record.InvalidResponse
	keep := func(do func(f *framed, s uint32)) func(*framed, asked) bool {
		return func(f *framed, a asked) bool { do(f, a.stream); return true }
	}
	raw := func(f *framed, b string) { _, _ = f.nc.Write([]byte(b)) }
	flood := func(once func(f *framed) error) func(*framed, asked) bool {
		return func(f *framed, _ asked) bool {
			_ = f.nc.SetWriteDeadline(time.Now().Add(2 * time.Second))
			for once(f) == nil {
				continue
			}
			return false
		}
	}
	return []behaviour2{
		{name: "plain", serve: keep((*framed).fine), want: ok, status: 200},
		{name: "no body", serve: keep(func(f *framed, s uint32) { f.headers(s, true, ":status", "204") }), want: ok, status: 204},
		{name: "server error", serve: keep(func(f *framed, s uint32) { f.headers(s, true, ":status", "503") }), want: ok, status: 503},
		{name: "head", method: "HEAD", serve: keep(func(f *framed, s uint32) { f.headers(s, true, ":status", "200", "content-length", "999") }), want: ok, status: 200},
		{name: "304 with a length", serve: keep(func(f *framed, s uint32) { f.headers(s, true, ":status", "304", "content-length", "50") }), want: ok, status: 304},
		{name: "interim responses", serve: keep(func(f *framed, s uint32) {
			f.headers(s, false, ":status", "103", "link", "x")
			f.headers(s, false, ":status", "100")
			f.fine(s)
		}), want: ok, status: 200},
		{name: "trailers", serve: keep(func(f *framed, s uint32) {
			f.headers(s, false, ":status", "200")
			_ = f.WriteData(s, false, []byte("ok"))
			f.headers(s, true, "sum", "1")
		}), want: ok, status: 200},
		{name: "padded", serve: keep(func(f *framed, s uint32) {
			f.headers(s, false, ":status", "200")
			_ = f.WriteDataPadded(s, true, []byte("ok"), make([]byte, 200))
		}), want: ok, status: 200},
		{name: "continued", serve: keep(func(f *framed, s uint32) {
			var b strings.Builder
			_ = hpack.NewEncoder(&b).WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: s, EndStream: true})
			_ = f.WriteContinuation(s, false, nil)
			_ = f.WriteContinuation(s, true, []byte(b.String()))
		}), want: ok, status: 200},
		{name: "unknown frame", serve: keep(func(f *framed, s uint32) { _ = f.WriteRawFrame(0x77, 0xff, s, []byte("x")); f.fine(s) }), want: ok, status: 200},
		{name: "ping and settings between", serve: keep(func(f *framed, s uint32) {
			_ = f.WritePing(false, [8]byte{1})
			_ = f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 70000})
			f.fine(s)
		}), want: ok, status: 200},

		{name: "stream reset", serve: keep(func(f *framed, s uint32) { _ = f.WriteRSTStream(s, http2.ErrCodeInternal) }), want: record.StreamReset},
		{name: "stream reset in the body", serve: keep(func(f *framed, s uint32) {
			f.headers(s, false, ":status", "200", "content-length", "5")
			_ = f.WriteData(s, false, []byte("ok"))
			_ = f.WriteRSTStream(s, http2.ErrCodeCancel)
		}), want: record.StreamReset},
		{name: "stream refused", serve: keep(func(f *framed, s uint32) { _ = f.WriteRSTStream(s, http2.ErrCodeRefusedStream) }), want: record.StreamRefused},

		{name: "push promise", serve: keep(func(f *framed, s uint32) {
			_ = f.WritePushPromise(http2.PushPromiseParam{StreamID: s, PromiseID: 2, EndHeaders: true})
		}), want: bad},
		{name: "no status", serve: keep(func(f *framed, s uint32) { f.headers(s, true, "x", "y") }), want: bad},
		{name: "status twice", serve: keep(func(f *framed, s uint32) { f.headers(s, true, ":status", "200", ":status", "200") }), want: bad},
		{name: "upper case", serve: keep(func(f *framed, s uint32) { f.headers(s, true, ":status", "200", "Upper", "x") }), want: bad},
		{name: "connection field", serve: keep(func(f *framed, s uint32) { f.headers(s, true, ":status", "200", "connection", "close") }), want: bad},
		{name: "switching protocols", serve: keep(func(f *framed, s uint32) { f.headers(s, false, ":status", "101") }), want: bad},
		{name: "data before headers", serve: keep(func(f *framed, s uint32) { _ = f.WriteData(s, true, []byte("ok")) }), want: bad},
		{name: "longer than it says", serve: keep(func(f *framed, s uint32) {
			f.headers(s, false, ":status", "200", "content-length", "1")
			_ = f.WriteData(s, true, []byte("ok"))
		}), want: bad},
		{name: "shorter than it says", serve: keep(func(f *framed, s uint32) {
			f.headers(s, false, ":status", "200", "content-length", "3")
			_ = f.WriteData(s, true, []byte("ok"))
		}), want: bad},
		{name: "endless interim responses", serve: keep(func(f *framed, s uint32) {
			for range 20 {
				f.headers(s, false, ":status", "100")
			}
		}), want: bad},
		{name: "headers over the limit", serve: keep(func(f *framed, s uint32) {
			var all []string
			for i := range 100 {
				all = append(all, "x"+strconv.Itoa(i), strings.Repeat("y", 1000))
			}
			var b strings.Builder
			e := hpack.NewEncoder(&b)
			_ = e.WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
			for i := 0; i < len(all); i += 2 {
				_ = e.WriteField(hpack.HeaderField{Name: all[i], Value: all[i+1], Sensitive: true})
			}
			block := []byte(b.String())
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: s, BlockFragment: block[:16000], EndStream: true})
			for block = block[16000:]; len(block) > 16000; block = block[16000:] {
				_ = f.WriteContinuation(s, false, block[:16000])
			}
			_ = f.WriteContinuation(s, true, block)
		}), want: bad},
		{name: "endless body", serve: func(f *framed, a asked) bool {
			f.headers(a.stream, false, ":status", "200")
			_ = f.nc.SetWriteDeadline(time.Now().Add(2 * time.Second))
			for f.WriteData(a.stream, false, make([]byte, 16000)) == nil {
				continue
			}
			return false
		}, want: bad},
		{name: "HPACK bomb", serve: keep(func(f *framed, s uint32) {
			block := append([]byte{0x88, 0x40, 1, 'x', 0x7f, 0x81, 0x1e}, make([]byte, 4000)...) // a field of 4,000 bytes enters the table
			block = append(block, []byte(strings.Repeat("\xbe", 12000))...)                      // and is repeated
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: s, BlockFragment: block, EndHeaders: true, EndStream: true})
		}), want: bad},
		{name: "broken HPACK", serve: keep(func(f *framed, s uint32) {
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: s, BlockFragment: []byte{0xff, 0xff, 0xff}, EndHeaders: true})
		}), want: bad},
		{name: "window overflow", serve: keep(func(f *framed, _ uint32) { raw(f, "\x00\x00\x04\x08\x00\x00\x00\x00\x00\x7f\xff\xff\xff") }), want: bad},
		{name: "window overflow of a stream", serve: keep(func(f *framed, s uint32) { _ = f.WriteWindowUpdate(s, 1<<31-1) }), want: bad},
		{name: "frame too large", serve: keep(func(f *framed, s uint32) { _ = f.WriteRawFrame(0, 0, s, make([]byte, 20000)) }), want: bad},
		{name: "settings of a wrong size", serve: keep(func(f *framed, _ uint32) { _ = f.WriteRawFrame(4, 0, 0, make([]byte, 5)) }), want: bad},
		{name: "settings flood", serve: flood(func(f *framed) error { return f.WriteSettings() }), want: bad},
		{name: "ping flood", serve: flood(func(f *framed) error { return f.WritePing(false, [8]byte{}) }), want: bad},
		{name: "empty data flood", serve: func(f *framed, a asked) bool {
			f.headers(a.stream, false, ":status", "200")
			return flood(func(f *framed) error { return f.WriteData(a.stream, false, nil) })(f, a)
		}, want: bad},
		{name: "CONTINUATION flood", serve: func(f *framed, a asked) bool {
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: a.stream, BlockFragment: []byte{0x88}})
			return flood(func(f *framed) error { return f.WriteContinuation(a.stream, false, []byte{0, 1, 'x', 1, 'y'}) })(f, a)
		}, want: bad},
		{name: "interrupted header block", serve: keep(func(f *framed, s uint32) {
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: s, BlockFragment: []byte{0x88}})
			_ = f.WritePing(false, [8]byte{})
		}), want: bad},
		{name: "stream never opened", serve: keep(func(f *framed, _ uint32) { f.headers(4001, true, ":status", "200") }), want: bad},
		{name: "answers HTTP/1.1", serve: keep(func(f *framed, _ uint32) { raw(f, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n") }), want: bad},

		{name: "goodbye, taken", serve: func(f *framed, a asked) bool {
			_ = f.WriteGoAway(a.stream, http2.ErrCodeNo, nil)
			f.fine(a.stream)
			return true
		}, want: ok, status: 200},
		{name: "goodbye, never taken", serve: func(f *framed, a asked) bool {
			_ = f.WriteGoAway(max(a.stream, 2)-2, http2.ErrCodeNo, nil)
			return true
		}, want: record.WentAway, resent: true},
		{name: "goodbye twice, larger", serve: func(f *framed, a asked) bool {
			_ = f.WriteGoAway(a.stream, http2.ErrCodeNo, nil)
			_ = f.WriteGoAway(a.stream+2, http2.ErrCodeNo, nil)
			return true
		}, want: bad},
		{name: "close without an answer", serve: func(*framed, asked) bool { return false }, want: record.Reset},
		{name: "close after the headers", serve: func(f *framed, a asked) bool {
			f.headers(a.stream, false, ":status", "200")
			return false
		}, want: record.EarlyClose},
		{name: "close in the body", serve: func(f *framed, a asked) bool {
			f.headers(a.stream, false, ":status", "200", "content-length", "5")
			_ = f.WriteData(a.stream, false, []byte("ok"))
			return false
		}, want: record.EarlyClose},
		{name: "close in a frame", serve: func(f *framed, a asked) bool {
			f.headers(a.stream, false, ":status", "200")
			raw(f, "\x00\x00\x09\x00\x01\x00\x00")
			return false
		}, want: record.EarlyClose},
		{name: "no answer", serve: keep(func(*framed, uint32) {}), want: record.TimedOut},
		{name: "half an answer", serve: keep(func(f *framed, s uint32) { f.headers(s, false, ":status", "200") }), want: record.TimedOut},
		{name: "slow drip", serve: func(f *framed, a asked) bool {
			f.headers(a.stream, false, ":status", "200")
			for range 70 { // until after the time-out; then it looks at what the client says
				_ = f.WriteData(a.stream, false, []byte("x"))
				time.Sleep(5 * time.Millisecond)
			}
			return true
		}, want: record.TimedOut},
	}
}

// TestConformance2 shows each behaviour to each engine. What ends a connection ends the requests on it,
// so that the good ones come before and after, on whatever connection the engine takes.
func TestConformance2(t *testing.T) {
	for name, run := range engines {
		for _, b := range behaviours2() {
			t.Run(name+"/"+b.name, func(t *testing.T) {
				t.Parallel()
				conform2(t, b, run)
			})
		}
	}
}

func conform2(t *testing.T, b behaviour2, run engineFunc) {
	if b.method == "" {
		b.method = "GET"
	}
	addr := framedServer(t, nil, func(f *framed, a asked) bool {
		if a.path() == "/bad" {
			return b.serve(f, a)
		}
		f.fine(a.stream)
		return true
	})
	seen := &notes{}
	cfg := Config{Target: admit(t, "http://"+addr, 0), HTTP: HTTP2Prior, Requests: lines{"GET /good", b.method + " /bad", "GET /good", "GET /good"},
		Schedule: &dues{at: []time.Duration{0, 30 * time.Millisecond, 500 * time.Millisecond, 510 * time.Millisecond}},
		Recorder: seen, Limits: engine.Limits{Timeout: quick, MaxBody: 4 << 20}}
	if strings.Contains(b.name, "flood") {
		cfg.Limits.Timeout, cfg.Schedule = 3*time.Second, &dues{at: []time.Duration{0, 30 * time.Millisecond, 3500 * time.Millisecond, 3510 * time.Millisecond}}
	}
	r, err := run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	got := seen.sorted(t, 4)
	for _, i := range []int{0, 2, 3} {
		if got[i].Outcome != record.Answered || got[i].Status != 200 || got[i].BytesIn == 0 || got[i].BytesOut == 0 {
			t.Errorf("a good request beside it became %+v", got[i])
		}
	}
	if got[1].Outcome != b.want || b.want == record.Answered && got[1].Status != b.status {
		t.Errorf("%s with status %d, want %s with %d", got[1].Outcome, got[1].Status, b.want, b.status)
	}
	if b.want == record.TimedOut && got[1].Response() != quick {
		t.Errorf("a time-out after %s, want %s from the due time", got[1].Response(), quick)
	}
	if b.resent != (r.Resent > 0) || r.HTTP2 == 0 || r.HTTP2 != r.ConnOpened || r.Released != 4 {
		t.Errorf("result %+v", r)
	}
}

// TestStreamsShareConnections: with 16 streams on each, 128 requests that are answered together need 8
// connections, and an answer finds the request that it belongs to.
func TestStreamsShareConnections(t *testing.T) {
	each(t, func(t *testing.T, run engineFunc) {
		const n = 128
		gate := make(chan struct{})
		var waiting atomic.Int64
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if waiting.Add(1) == n {
				close(gate)
			}
			<-gate
			k, _ := strconv.Atoi(r.URL.Path[1:])
			w.WriteHeader(200 + k%100)
			_, _ = io.WriteString(w, strings.Repeat("x", k))
		}))
		srv.EnableHTTP2 = true
		srv.StartTLS()
		defer srv.Close()
		var requests lines
		for i := range n {
			requests = append(requests, "GET /"+strconv.Itoa(i))
		}
		u, _ := url.Parse(srv.URL)
		for _, v := range []Version{HTTPAuto, HTTP2} {
			seen := &notes{}
			r := mustRun(t, run, Config{Target: admit(t, "https://example.com", 0, u.Host), HTTP: v, TLS: TLS{RootCAs: srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs},
				Requests: requests, Schedule: every(0, n), Recorder: seen, Connections: Connections{Streams: 16}, Limits: engine.Limits{MaxConnections: 8}})
			for i, s := range seen.sorted(t, n) {
				if s.Outcome != record.Answered || s.Status != uint16(200+i%100) {
					t.Errorf("%s: %+v", v, s)
				}
			}
			if r.ConnOpened != 8 || r.HTTP2 != 8 || r.FullShakes != 8 {
				t.Errorf("%s: %+v", v, r)
			}
		}
	})
}

// TestInterleavedStreams: answers whose frames come mixed, a few bytes each, are put together for the
// requests that they belong to.
func TestInterleavedStreams(t *testing.T) {
	const n = 40
	each(t, func(t *testing.T, run engineFunc) {
		var mu sync.Mutex
		var waiting []asked
		addr := framedServer(t, nil, func(f *framed, a asked) bool {
			mu.Lock()
			defer mu.Unlock()
			if waiting = append(waiting, a); len(waiting) < n {
				return true
			}
			left := map[uint32]string{}
			for _, a := range waiting {
				f.headers(a.stream, false, ":status", "200")
				i, _ := strconv.Atoi(a.path()[1:])
				left[a.stream] = strings.Repeat("x", i) + fmt.Sprintf("<%d>", i)
			}
			for len(left) > 0 {
				for s, text := range left { // in no order
					k := min(len(text), 3)
					_ = f.WriteData(s, k == len(text), []byte(text[:k]))
					if left[s] = text[k:]; left[s] == "" {
						delete(left, s)
					}
				}
			}
			return true
		})
		seen := &notes{}
		r := mustRun(t, run, Config{Target: admit(t, "http://"+addr, 0), HTTP: HTTP2Prior, Requests: byPath{t}, Schedule: every(2*time.Millisecond, n), Recorder: seen, Limits: engine.Limits{MaxConnections: 1}})
		for _, s := range seen.sorted(t, n) {
			if s.Outcome != record.Answered {
				t.Errorf("%+v", s)
			}
		}
		if r.ConnOpened != 1 {
			t.Errorf("%+v", r)
		}
	})
}

// byPath asks for /i and expects the answer to that path, and no other.
type byPath struct{ t testing.TB }

func (b byPath) At(i uint64, r *Request) {
	text := fmt.Sprintf("<%d>", i)
	size := int64(i) + int64(len(text))
	e, err := NewExpect(Expectation{Contains: []string{text}, MinBytes: size, MaxBytes: size})
	if err != nil {
		b.t.Error(err)
	}
	r.Route, r.Method, r.Target, r.Expect = 0, "GET", strconv.AppendUint(append(r.Target[:0], '/'), i, 10), e
}

// TestPeersLimitOfStreams: the peer's limit counts, whatever ours is.
func TestPeersLimitOfStreams(t *testing.T) {
	each(t, func(t *testing.T, run engineFunc) {
		var mu sync.Mutex
		inside, most := map[*framed]int{}, 0
		addr := framedServer(t, []http2.Setting{{ID: http2.SettingMaxConcurrentStreams, Val: 3}}, func(f *framed, a asked) bool {
			mu.Lock()
			known := f.acked // before that the limit was on its way
			if known {
				inside[f]++
				most = max(most, inside[f])
			}
			mu.Unlock()
			time.AfterFunc(10*time.Millisecond, func() {
				f.wire.Lock()
				defer f.wire.Unlock()
				mu.Lock()
				if known {
					inside[f]--
				}
				mu.Unlock()
				f.fine(a.stream)
			})
			return true
		})
		seen := &notes{}
		mustRun(t, run, Config{Target: admit(t, "http://"+addr, 0), HTTP: HTTP2Prior, Requests: lines{"GET /"}, Schedule: every(time.Millisecond, 100), Recorder: seen,
			Limits: engine.Limits{MaxConnections: 4}})
		for _, s := range seen.sorted(t, 100) {
			if s.Outcome != record.Answered {
				t.Errorf("%+v", s)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if most == 0 || most > 3 {
			t.Errorf("%d requests on one connection at once", most)
		}
	})
}

// TestVersionThatIsDemanded: 2 over TLS is spoken or the connection has failed; auto takes what is
// there.
func TestVersionThatIsDemanded(t *testing.T) {
	each(t, func(t *testing.T, run engineFunc) {
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(200 + r.ProtoMajor) }))
		srv.TLS = &tls.Config{NextProtos: []string{"http/1.1"}}
		srv.StartTLS()
		defer srv.Close()
		old := httptest.NewUnstartedServer(http.NotFoundHandler())
		old.Config.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
		old.TLS = &tls.Config{MaxVersion: tls.VersionTLS12}
		old.StartTLS()
		defer old.Close()
		both := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(200 + r.ProtoMajor) }))
		both.EnableHTTP2 = true
		both.StartTLS()
		defer both.Close()
		for _, c := range []struct {
			server *httptest.Server
			v      Version
			want   record.Outcome
			status uint16
		}{
			{srv, HTTPAuto, record.Answered, 201}, {srv, HTTP1, record.Answered, 201}, {srv, HTTP2, record.TLSFailed, 0},
			{both, HTTPAuto, record.Answered, 202}, {both, HTTP1, record.Answered, 201}, {both, HTTP2, record.Answered, 202}, {both, HTTP2Prior, record.Answered, 202},
		} {
			u, _ := url.Parse(c.server.URL)
			seen := &notes{}
			mustRun(t, run, Config{Target: admit(t, "https://example.com", 0, u.Host), HTTP: c.v, TLS: TLS{Insecure: true}, Requests: lines{"GET /"},
				Schedule: every(5*time.Millisecond, 4), Recorder: seen})
			for _, s := range seen.sorted(t, 4) {
				if s.Outcome != c.want || s.Status != c.status {
					t.Errorf("%s: %+v, want %s %d", c.v, s, c.want, c.status)
				}
			}
		}
	})
}
