package httpload

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"seatrial/engine"
	"seatrial/record"
)

// quicServer is an HTTP/3 server on loopback.
func quicServer(t testing.TB, p pair, h http.Handler) (string, *http3.Server) {
	t.Helper()
	cert, err := tls.LoadX509KeyPair(p.cert, p.key)
	if err != nil {
		t.Fatal(err)
	}
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http3.Server{Handler: h, TLSConfig: http3.ConfigureTLSConfig(&tls.Config{Certificates: []tls.Certificate{cert}})}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(socket) }()
	t.Cleanup(func() { _ = s.Close(); <-done; _ = socket.Close() })
	return socket.LocalAddr().String(), s
}

// rawQUIC speaks HTTP/3 by hand: serve gets the stream of the second request, and its connection.
func rawQUIC(t testing.TB, p pair, serve func(*quic.Conn, *quic.Stream)) string {
	t.Helper()
	cert, err := tls.LoadX509KeyPair(p.cert, p.key)
	if err != nil {
		t.Fatal(err)
	}
	l, err := quic.ListenAddr("127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h3"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	var asked atomic.Int64
	go func() {
		for {
			c, err := l.Accept(t.Context())
			if err != nil {
				return
			}
			go func() {
				control, err := c.OpenUniStream()
				if err != nil {
					return
				}
				_, _ = control.Write([]byte{0, 4, 0}) // control stream, empty SETTINGS
				for {
					s, err := c.AcceptStream(t.Context())
					if err != nil {
						return
					}
					go func() {
						_, _ = io.Copy(io.Discard, s)
						if asked.Add(1) != 2 {
							_, _ = s.Write([]byte("\x01\x03\x00\x00\xd9\x00\x02ok")) // :status 200; ok
							_ = s.Close()
							return
						}
						serve(c, s)
					}()
				}
			}()
		}
	}()
	return l.Addr().String()
}

// TestThree: what holds for the other versions holds over QUIC.
func TestThree(t *testing.T) {
	p := newPair(t)
	var conns atomic.Int64
	seenConns := map[string]bool{}
	addr, _ := quicServer(t, p, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		told.Lock()
		if !seenConns[r.RemoteAddr] {
			seenConns[r.RemoteAddr] = true
			conns.Add(1)
		}
		told.Unlock()
		switch r.URL.Path {
		case "/echo":
			b, _ := io.ReadAll(r.Body)
			w.Header().Set("X-Seen", r.Header.Get("X-Own")+"/"+r.Header.Get("X-All")+"/"+r.UserAgent()+"/"+r.Header.Get("Accept-Encoding")+"/"+r.Host)
			w.Header().Set("X-Length", fmt.Sprint(r.ContentLength))
			_, _ = w.Write(b)
		case "/204":
			w.WriteHeader(http.StatusNoContent)
		case "/interim":
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusOK)
		case "/trailer":
			w.Header().Set("Trailer", "Sum")
			_, _ = w.Write([]byte("ok"))
			w.Header().Set("Sum", "1")
		case "/panic":
			_, _ = w.Write([]byte("some"))
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		case "/drip":
			for range 1000 {
				if _, err := w.Write([]byte("x")); err != nil {
					return
				}
				w.(http.Flusher).Flush()
				time.Sleep(5 * time.Millisecond)
			}
		case "/mute":
			<-r.Context().Done()
		case "/endless":
			for {
				if _, err := w.Write(make([]byte, 32<<10)); err != nil {
					return
				}
			}
		case "/large":
			w.Header().Set("X", strings.Repeat("y", 70<<10))
		default:
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	must := func(x Expectation) *Expect {
		e, err := NewExpect(x)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	large := []byte(strings.Repeat("0123456789abcdef", 40_000) + "needle")
	for name, c := range map[string]struct {
		carried
		target string
		want   record.Outcome
		status uint16
	}{
		"body": {carried{"POST", []byte("a=b"), []Field{{Name: "X-Own", Value: []byte("one")}}, must(Expectation{
			Fields: []FieldExpect{{Name: "X-Seen", Equals: "one/all/us//example.com"}, {Name: "X-Length", Equals: "3"}}, Contains: []string{"a=b"}, MaxBytes: 3})}, "/echo", record.Answered, 200},
		"large":     {carried{"PUT", large, nil, must(Expectation{Contains: []string{"fneedle"}, MinBytes: int64(len(large))})}, "/echo", record.Answered, 200},
		"no body":   {carried{"POST", nil, nil, must(Expectation{Fields: []FieldExpect{{Name: "X-Length", Equals: "0"}}})}, "/echo", record.Answered, 200},
		"wrong":     {carried{"GET", nil, nil, must(Expectation{Status: []int{201}})}, "/echo", record.CheckFailed, 200},
		"head":      {carried{"HEAD", nil, nil, nil}, "/echo", record.Answered, 200},
		"no answer": {carried{"GET", nil, nil, nil}, "/mute", record.TimedOut, 0},
		"drip":      {carried{"GET", nil, nil, nil}, "/drip", record.TimedOut, 0},
		"204":       {carried{"GET", nil, nil, nil}, "/204", record.Answered, 204},
		"interim":   {carried{"GET", nil, nil, nil}, "/interim", record.Answered, 200},
		"trailer":   {carried{"GET", nil, nil, nil}, "/trailer", record.Answered, 200},
		"reset":     {carried{"GET", nil, nil, nil}, "/panic", record.StreamReset, 0},
		"endless":   {carried{"GET", nil, nil, nil}, "/endless", record.InvalidResponse, 0},
		"headers":   {carried{"GET", nil, nil, nil}, "/large", record.InvalidResponse, 0},
		"split":     {carried{"GET", nil, []Field{{Name: "A", Value: []byte("a\r\nB: c")}}, nil}, "/echo", record.UnsentPolicy, 0},
	} {
		seen := &notes{}
		r, err := ordered(Portable)(t.Context(), Config{Target: admit(t, "https://example.com", 0, addr), HTTP: HTTP3, TLS: TLS{RootCAs: p.roots, ServerName: "localhost"},
			Requests: aimed{c.carried, c.target}, Schedule: every(5*time.Millisecond, 6), Recorder: seen, Headers: []Header{{"X-All", "all"}}, UserAgent: "us",
			Limits: engine.Limits{Timeout: time.Second, MaxBody: 1 << 20}})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range seen.sorted(t, 6) {
			if s.Outcome != c.want || s.Status != c.status || s.Outcome == record.Answered && (s.FirstByte == 0 || s.BytesIn == 0 || s.BytesOut == 0) {
				t.Errorf("%s: %+v, want %s %d", name, s, c.want, c.status)
			}
			if c.want == record.TimedOut && s.Response() != time.Second {
				t.Errorf("%s: a time-out after %s", name, s.Response())
			}
		}
		if c.want != record.UnsentPolicy && (r.HTTP3 == 0 || r.HTTP3 != r.ConnOpened || r.FullShakes != r.ConnOpened || r.ConnOpened > 3) {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// aimed asks for one target.
type aimed struct {
	carried
	target string
}

func (a aimed) At(i uint64, r *Request) {
	a.carried.At(i, r)
	r.Target = append(r.Target[:0], a.target...)
}

// TestThreeConnections: streams share connections, shares and schedules open others, sessions resume.
func TestThreeConnections(t *testing.T) {
	p := newPair(t)
	addr, _ := quicServer(t, p, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(100 * time.Millisecond)
		_, _ = w.Write([]byte("ok"))
	}))
	for name, c := range map[string]struct {
		k      Connections
		n      int
		gap    time.Duration
		max    int
		opened [2]uint64
	}{
		"streams":            {Connections{Streams: 16}, 64, 0, 4, [2]uint64{4, 4}},
		"one for each":       {Connections{Fresh: 1}, 20, 10 * time.Millisecond, 50, [2]uint64{20, 20}},
		"for each, resumed":  {Connections{Fresh: 1, Resume: 1}, 20, 30 * time.Millisecond, 50, [2]uint64{20, 20}},
		"by their own times": {Connections{Arrivals: every(20*time.Millisecond, 15)}, 20, 20 * time.Millisecond, 50, [2]uint64{15, 20}},
	} {
		seen := &notes{}
		r := mustRun(t, ordered(Portable), Config{Target: admit(t, "https://example.com", 0, addr), HTTP: HTTP3, TLS: TLS{RootCAs: p.roots, ServerName: "localhost"}, Connections: c.k,
			Requests: lines{"GET /"}, Schedule: every(c.gap, c.n), Recorder: seen, Limits: engine.Limits{MaxConnections: c.max}})
		for _, s := range seen.sorted(t, c.n) {
			if s.Outcome != record.Answered {
				t.Errorf("%s: %+v", name, s)
			}
		}
		if r.ConnOpened < c.opened[0] || r.ConnOpened > c.opened[1] || r.FullShakes+r.Resumed != r.ConnOpened || c.k.Resume == 1 && r.Resumed < 10 || c.k.Resume == 0 && r.Resumed > 0 {
			t.Errorf("%s: %+v", name, r)
		}
		if c.k.Arrivals != nil && (r.Arrivals != ConnAccount{Due: 15, Opened: 15}) {
			t.Errorf("%s: %+v", name, r.Arrivals)
		}
	}
}

// TestThreeHostile: what breaks the rules is an invalid response, and the next request finds a
// connection that works.
func TestThreeHostile(t *testing.T) {
	p := newPair(t)
	write := func(b string) func(*quic.Conn, *quic.Stream) {
		return func(_ *quic.Conn, s *quic.Stream) { _, _ = s.Write([]byte(b)); _ = s.Close() }
	}
	for name, c := range map[string]struct {
		serve func(*quic.Conn, *quic.Stream)
		want  record.Outcome
	}{
		"nothing":              {write(""), record.InvalidResponse},
		"data first":           {write("\x00\x02ok"), record.InvalidResponse},
		"no status":            {write("\x01\x02\x00\x00"), record.InvalidResponse},
		"broken QPACK":         {write("\x01\x04\x00\x00\xff\xff"), record.InvalidResponse},
		"reserved frame":       {write("\x02\x01x\x01\x03\x00\x00\xd9"), record.InvalidResponse},
		"settings on a stream": {write("\x04\x00"), record.InvalidResponse},
		"shorter than it says": {write("\x01\x06\x00\x00\xd9\x54\x01\x35\x00\x02ok"), record.InvalidResponse}, // content-length: 5
		"longer than it says":  {write("\x01\x06\x00\x00\xd9\x54\x01\x31\x00\x02ok"), record.InvalidResponse}, // content-length: 1
		"rejected":             {func(_ *quic.Conn, s *quic.Stream) { s.CancelWrite(quic.StreamErrorCode(http3.ErrCodeRequestRejected)) }, record.StreamRefused},
		"reset":                {func(_ *quic.Conn, s *quic.Stream) { s.CancelWrite(quic.StreamErrorCode(http3.ErrCodeInternalError)) }, record.StreamReset},
		"closed": {func(c *quic.Conn, _ *quic.Stream) {
			_ = c.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "")
		}, record.Reset},
		"second settings": {func(c *quic.Conn, s *quic.Stream) {
			if u, err := c.OpenUniStream(); err == nil {
				_, _ = u.Write([]byte{0, 4, 0}) // a second control stream
			}
		}, record.InvalidResponse},
		"unknown stream": {func(c *quic.Conn, s *quic.Stream) {
			if u, err := c.OpenUniStream(); err == nil {
				_, _ = u.Write([]byte{0x21, 1, 2, 3})
			}
			_, _ = s.Write([]byte("\x01\x03\x00\x00\xd9\x00\x02ok"))
			_ = s.Close()
		}, record.Answered},
	} {
		addr := rawQUIC(t, p, c.serve)
		seen := &notes{}
		r, err := ordered(Portable)(t.Context(), Config{Target: admit(t, "https://example.com", 0, addr), HTTP: HTTP3, TLS: TLS{RootCAs: p.roots, ServerName: "localhost"},
			Requests: lines{"GET /good", "GET /bad", "GET /good"}, Schedule: &dues{at: []time.Duration{0, 50 * time.Millisecond, 300 * time.Millisecond}}, Recorder: seen,
			Limits: engine.Limits{Timeout: time.Second}})
		if err != nil {
			t.Fatal(err)
		}
		got := seen.sorted(t, 3)
		if got[0].Outcome != record.Answered || got[2].Outcome != record.Answered {
			t.Errorf("%s: a good request beside it: %+v", name, got)
		}
		if got[1].Outcome != c.want {
			t.Errorf("%s: %s, want %s", name, got[1].Outcome, c.want)
		}
		if r.Released != 3 {
			t.Errorf("%+v", r)
		}
	}
}

// TestThreeWithoutAServer: nobody there, a certificate that proves nothing, a stop.
func TestThreeWithoutAServer(t *testing.T) {
	p := newPair(t)
	addr, _ := quicServer(t, p, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	for name, c := range map[string]struct {
		addr string
		tls  TLS
		want record.Outcome
	}{
		"nobody":  {"127.0.0.1:1", TLS{RootCAs: p.roots}, record.TimedOutConnect},
		"unknown": {addr, TLS{RootCAs: newPair(t).roots, ServerName: "localhost"}, record.TLSFailed},
	} {
		seen := &notes{}
		r := mustRun(t, Portable, Config{Target: admit(t, "https://example.com", 0, c.addr), HTTP: HTTP3, TLS: c.tls, Requests: lines{"GET /"}, Schedule: every(5*time.Millisecond, 3), Recorder: seen,
			Limits: engine.Limits{Connect: 200 * time.Millisecond}})
		for _, s := range seen.sorted(t, 3) {
			if s.Outcome != c.want || s.Sent != 0 {
				t.Errorf("%s: %+v, want %s", name, s, c.want)
			}
		}
		if r.ConnOpened != 0 {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if HasLoop {
		_, err := Loop(t.Context(), Config{Target: admit(t, "https://example.com", 0, addr), HTTP: HTTP3, Requests: lines{"GET /"}, Schedule: every(0, 1), Recorder: &notes{}})
		if !errors.Is(err, ErrLoopHTTP3) {
			t.Errorf("the loop: %v", err)
		}
	}
	ctx, stop := contextAfter(t, 50*time.Millisecond)
	defer stop()
	seen := &notes{}
	begun := time.Now()
	r, err := Portable(ctx, Config{Target: admit(t, "https://example.com", 0, addr), HTTP: HTTP3, TLS: TLS{RootCAs: p.roots, ServerName: "localhost"}, Requests: lines{"GET /"},
		Schedule: every(time.Millisecond, 1000), Recorder: seen, StopDrain: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	abandoned := 0
	for _, s := range seen.sorted(t, int(r.Released)) {
		if s.Outcome == record.Abandoned {
			abandoned++
		} else if s.Outcome != record.UnsentStop {
			t.Errorf("%+v", s)
		}
	}
	if abandoned == 0 || time.Since(begun) > 2*time.Second {
		t.Errorf("%d abandoned after %s", abandoned, time.Since(begun))
	}
}
