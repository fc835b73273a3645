package httpload

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"seatrial/engine"
	"seatrial/record"
)

// TestHandshakesAgreeWithNginx: what the engine counts of connections and handshakes is what nginx
// counted, in every way of opening them, over both versions of TLS and of HTTP.
func TestHandshakesAgreeWithNginx(t *testing.T) {
	p := newPair(t)
	n := startNginx(t, p, "")
	const requests = 60
	each(t, func(t *testing.T, run engineFunc) {
		for _, c := range []struct {
			name         string
			http         Version
			max          uint16
			k            Connections
			conns        [2]int // bounds
			full, resume [2]int
		}{
			{"kept alive", HTTP1, tls.VersionTLS13, Connections{}, [2]int{1, 40}, [2]int{1, 40}, [2]int{0, 0}},
			{"for each request", HTTP1, tls.VersionTLS13, Connections{Fresh: 1}, [2]int{60, 60}, [2]int{60, 60}, [2]int{0, 0}},
			{"for each request, resumed", HTTP1, tls.VersionTLS13, Connections{Fresh: 1, Resume: 1}, [2]int{60, 60}, [2]int{1, 20}, [2]int{40, 59}},
			{"for each request, resumed, TLS 1.2", HTTP1, tls.VersionTLS12, Connections{Fresh: 1, Resume: 1}, [2]int{60, 60}, [2]int{1, 20}, [2]int{40, 59}},
			{"for each request, half resumed", HTTP1, tls.VersionTLS13, Connections{Fresh: 1, Resume: 0.5}, [2]int{60, 60}, [2]int{15, 55}, [2]int{5, 45}},
			{"a share", HTTP1, tls.VersionTLS13, Connections{Fresh: 0.2}, [2]int{5, 30}, [2]int{5, 30}, [2]int{0, 0}},
			{"for each request, HTTP/2", HTTP2, tls.VersionTLS13, Connections{Fresh: 1, Resume: 1}, [2]int{60, 60}, [2]int{1, 20}, [2]int{40, 59}},
			{"a share, HTTP/2", HTTP2, tls.VersionTLS13, Connections{Fresh: 0.2}, [2]int{5, 30}, [2]int{5, 30}, [2]int{0, 0}},
		} {
			seen := &notes{}
			r := mustRun(t, run, Config{Target: admit(t, "https://"+n.addr, 0), HTTP: c.http, TLS: TLS{RootCAs: p.roots, MaxVersion: c.max}, Connections: c.k,
				Requests: lines{"GET /"}, Schedule: every(4*time.Millisecond, requests), Recorder: seen, Seed: 7})
			for _, s := range seen.sorted(t, requests) {
				if s.Outcome != record.Answered || s.Status != 200 {
					t.Errorf("%s: %+v", c.name, s)
				}
			}
			shakes := map[string]string{}
			for _, f := range n.requests(t, requests) {
				if old, ok := shakes[f[0]]; ok && old != f[2] {
					t.Errorf("%s: one connection is two", c.name)
				}
				shakes[f[0]] = f[2]
				if want := "HTTP/" + strings.Replace(string(c.http)+".0", "1.1.0", "1.1", 1); f[4] != want {
					t.Errorf("%s: %s, want %s", c.name, f[4], want)
				}
			}
			full, resumed := 0, 0
			for _, how := range shakes {
				if how == "r" {
					resumed++
				} else {
					full++
				}
			}
			within := func(what string, got int, b [2]int) {
				if got < b[0] || got > b[1] {
					t.Errorf("%s: %d %s, want %d to %d", c.name, got, what, b[0], b[1])
				}
			}
			within("connections", len(shakes), c.conns)
			within("full handshakes", full, c.full)
			within("resumed handshakes", resumed, c.resume)
			if int(r.FullShakes) != full || int(r.Resumed) != resumed || int(r.ConnOpened) != len(shakes) {
				t.Errorf("%s: we count %d full, %d resumed, %d connections; nginx %d, %d, %d", c.name, r.FullShakes, r.Resumed, r.ConnOpened, full, resumed, len(shakes))
			}
		}
	})
}

// TestConnectionArrivalsAgreeWithHAProxy: connections that arrive by their own schedule, counted by
// HAProxy as handshakes whether or not a request followed.
func TestConnectionArrivalsAgreeWithHAProxy(t *testing.T) {
	p := newPair(t)
	each(t, func(t *testing.T, run engineFunc) {
		for _, v := range []Version{HTTP1, HTTP2} {
			for _, resume := range []float64{0, 1} {
				h := startHAProxy(t, p, "")
				seen := &notes{}
				r := mustRun(t, run, Config{Target: admit(t, "https://"+h.addr, 0), HTTP: v, TLS: TLS{RootCAs: p.roots},
					Connections: Connections{Arrivals: every(4*time.Millisecond, 100), Resume: resume},
					Requests:    lines{"GET /"}, Schedule: every(10*time.Millisecond, 40), Recorder: seen})
				for _, s := range seen.sorted(t, 40) {
					if s.Outcome != record.Answered {
						t.Errorf("%+v", s)
					}
				}
				a := r.Arrivals
				if a.Due != 100 || a.Opened != 100 || a.Due != a.Opened+a.Failed+a.TimedOut+a.Abandoned+a.Unsent || r.Connect.Count() != r.ConnOpened || r.Shake.Count() != r.ConnOpened {
					t.Errorf("%+v", a)
				}
				var got map[string]int
				for range 50 { // it counts when it has looked
					if got = h.counters(t); got["ssl_sess"]+got["ssl_reused_sess"] >= int(r.ConnOpened) {
						break
					}
					time.Sleep(20 * time.Millisecond)
				}
				if got["ssl_sess"] != int(r.FullShakes) || got["ssl_reused_sess"] != int(r.Resumed) || r.ConnOpened != r.FullShakes+r.Resumed {
					t.Errorf("HTTP/%s: HAProxy counts %d full handshakes, %d resumed; we %d full, %d resumed, %d connections", v, got["ssl_sess"], got["ssl_reused_sess"], r.FullShakes, r.Resumed, r.ConnOpened)
				}
				if r.ConnOpened > 120 || resume == 1 && r.Resumed < 50 || resume == 0 && r.Resumed > 0 {
					t.Errorf("HTTP/%s: %+v", v, r)
				}
				if uint64(r.ConnPeak) >= r.ConnOpened {
					t.Errorf("HTTP/%s: %d connections were open at once: those that are replaced are not closed", v, r.ConnPeak)
				}
			}
		}
	})
}

// TestConnectionArrivalsHaveAnAccount: each ends in one of its ways, whatever the server does.
func TestConnectionArrivalsHaveAnAccount(t *testing.T) {
	each(t, func(t *testing.T, run engineFunc) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		nobody := l.Addr().String()
		_ = l.Close()
		mute := listen(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
		good := rawServer(t, replies(fine))
		busy := rawServer(t, func(c net.Conn, _ string) bool { time.Sleep(200 * time.Millisecond); return say(c, fine) })
		for name, c := range map[string]struct {
			cfg  Config
			want ConnAccount
		}{
			"refused":      {Config{Target: admit(t, "http://"+nobody, 0)}, ConnAccount{Due: 20, Failed: 20}},
			"no handshake": {Config{Target: admit(t, "https://"+mute, 0), Limits: engine.Limits{TLS: 50 * time.Millisecond}}, ConnAccount{Due: 20, TimedOut: 20}},
			"warm-up":      {Config{Target: admit(t, "http://"+good, 0), Connections: Connections{Warmup: 30 * time.Millisecond}}, ConnAccount{Due: 10, Opened: 10}},
			"rate":         {Config{Target: admit(t, "http://"+good, 5)}, ConnAccount{Due: 20, Opened: 5, Unsent: 15}},
			"limit": {Config{Target: admit(t, "http://"+busy, 0), Requests: lines{"GET /"}, Schedule: every(0, 2), Limits: engine.Limits{MaxConnections: 2}},
				ConnAccount{Due: 20, Unsent: 20}},
		} {
			cfg, seen := c.cfg, &notes{}
			cfg.Connections.Arrivals, cfg.Recorder = every(time.Millisecond, 20), seen
			for i := range cfg.Connections.Arrivals.(*dues).at {
				cfg.Connections.Arrivals.(*dues).at[i] += 20 * time.Millisecond
			}
			if cfg.Schedule == nil {
				cfg.Schedule, cfg.Requests = every(0, 0), lines{"GET /"}
			}
			got := mustRun(t, run, cfg).Arrivals
			if c.want.TimedOut > 0 { // on a busy machine some are noticed too late to be held against the server
				got.TimedOut, got.Unsent = got.TimedOut+got.Unsent, 0
			}
			if got != c.want {
				t.Errorf("%s: %+v, want %+v", name, got, c.want)
			}
		}
	})
}

// TestSharesDependOnNothingElse: which requests open a connection is the same with any engine and slice.
func TestSharesDependOnNothingElse(t *testing.T) {
	c := Config{Seed: 3, Connections: Connections{Fresh: 0.3}}
	n := 0
	for i := range uint64(100_000) {
		if c.fresh(i) {
			n++
		}
	}
	if n < 29_000 || n > 31_000 {
		t.Errorf("%d of 100,000 are of a share of 0.3", n)
	}
	want := map[uint64]bool{}
	each(t, func(t *testing.T, run engineFunc) {
		addr := rawServer(t, replies(fine))
		seen := &notes{}
		mustRun(t, run, Config{Target: admit(t, "http://"+addr, 0), Seed: 3, Connections: c.Connections, Requests: lines{"GET /"}, Schedule: every(3*time.Millisecond, 60), Recorder: seen})
		for _, s := range seen.sorted(t, 60) {
			if c.fresh(s.Index) && s.Connect == 0 {
				t.Errorf("request %d has no connection of its own", s.Index)
			}
			want[s.Index] = c.fresh(s.Index)
		}
	})
	if len(want) != 60 {
		t.Error(len(want))
	}
}

// TestOneRequestForEachConnection: with per_request no connection sees a second one, and the peer is
// told and closes first.
func TestOneRequestForEachConnection(t *testing.T) {
	each(t, func(t *testing.T, run engineFunc) {
		var conns, first atomic.Int64
		addr := listen(t, func(c net.Conn) {
			conns.Add(1)
			buf := make([]byte, 4096)
			n, _ := c.Read(buf)
			if !strings.Contains(string(buf[:n]), "\r\nConnection: close\r\n") {
				return
			}
			say(c, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
			_ = c.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
			if _, err := c.Read(buf); errors.Is(err, io.EOF) {
				first.Add(1)
			}
		})
		seen := &notes{}
		r := mustRun(t, run, Config{Target: admit(t, "http://"+addr, 0), Connections: Connections{Fresh: 1}, Requests: lines{"GET /"}, Schedule: every(2*time.Millisecond, 30), Recorder: seen,
			Limits: engine.Limits{MaxConnections: 20}})
		for _, s := range seen.sorted(t, 30) {
			if s.Outcome != record.Answered || s.Connect == 0 {
				t.Errorf("%+v", s)
			}
		}
		if conns.Load() != 30 || r.ConnOpened != 30 {
			t.Errorf("%d connections arrived, %+v", conns.Load(), r)
		}
		if first.Load() > 10 { // those that are closed at the end of the run
			t.Errorf("the client closed %d connections first", first.Load())
		}
	})
}

// TestWhereConnectionsComeFromAndGo: local addresses in turn, IPv6, Unix sockets.
func TestWhereConnectionsComeFromAndGo(t *testing.T) {
	p := newPair(t)
	n := startNginx(t, p, "")
	each(t, func(t *testing.T, run engineFunc) {
		from := map[string]int{}
		binds := []netip.Addr{netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("127.0.0.3"), netip.MustParseAddr("::1")}
		seen := &notes{}
		mustRun(t, run, Config{Target: admit(t, "http://"+n.plain, 0), Connections: Connections{Fresh: 1, Bind: binds}, Requests: lines{"GET /"}, Schedule: every(time.Millisecond, 20), Recorder: seen})
		seen.sorted(t, 20)
		for _, f := range n.requests(t, 20) {
			from[f[len(f)-1]]++
		}
		if len(from) != 2 || from["127.0.0.2"] != 10 || from["127.0.0.3"] != 10 {
			t.Errorf("came from %v", from)
		}

		u, _ := url.Parse("http://localhost")
		target, err := engine.AdmitUnix(u, n.unix, 0, engine.Proof{Kind: "environment", Name: "test"})
		if err != nil {
			t.Fatal(err)
		}
		seen = &notes{}
		mustRun(t, run, Config{Target: target, Requests: lines{"GET /"}, Schedule: every(time.Millisecond, 20), Recorder: seen})
		for _, s := range seen.sorted(t, 20) {
			if s.Outcome != record.Answered || s.Status != 200 {
				t.Errorf("%+v", s)
			}
		}
		for _, f := range n.requests(t, 20) {
			if f[len(f)-1] != "unix:" {
				t.Errorf("came from %v", f)
			}
		}

		six := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasPrefix(r.RemoteAddr, "[::1]") || !strings.HasPrefix(r.Host, "[::1]:") {
				w.WriteHeader(http.StatusInternalServerError)
			}
		}))
		_ = six.Listener.Close()
		if six.Listener, err = net.Listen("tcp", "[::1]:0"); err != nil {
			t.Fatal(err)
		}
		six.Start()
		defer six.Close()
		seen = &notes{}
		mustRun(t, run, Config{Target: admit(t, six.URL, 0), Connections: Connections{Bind: binds}, Requests: lines{"GET /"}, Schedule: every(time.Millisecond, 20), Recorder: seen})
		for _, s := range seen.sorted(t, 20) {
			if s.Outcome != record.Answered || s.Status != 200 {
				t.Errorf("%+v", s)
			}
		}

		for name, c := range map[string]Config{
			"not ours":     {Target: admit(t, "http://"+n.plain, 0), Connections: Connections{Bind: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}},
			"other family": {Target: admit(t, "http://"+n.plain, 0), Connections: Connections{Bind: []netip.Addr{netip.MustParseAddr("::1")}}},
			"unix":         {Target: target, Connections: Connections{Bind: binds}},
			"share":        {Target: target, Connections: Connections{Fresh: 1.1}},
			"resume":       {Target: target, Connections: Connections{Resume: -1}},
			"h2c":          {Target: target, HTTP: HTTP2},
			"h3":           {Target: target, HTTP: HTTP3},
			"version":      {Target: target, HTTP: "4"},
		} {
			c.Requests, c.Schedule, c.Recorder = lines{"GET /"}, every(0, 1), seen
			if _, err := run(t.Context(), c); err == nil {
				t.Errorf("%s: accepted", name)
			}
		}
	})
}

// carried asks with a body, fields and an expectation.
type carried struct {
	method string
	body   []byte
	fields []Field
	expect *Expect
}

func (c carried) At(_ uint64, r *Request) {
	r.Route, r.Method, r.Target = 0, c.method, append(r.Target[:0], "/echo"...)
	r.Fields, r.Body, r.Expect = c.fields, c.body, c.expect
}

// echoServer answers with what it was asked.
func echoServer(t testing.TB) *httptest.Server {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Seen", r.Header.Get("X-Own")+"/"+r.Header.Get("X-All")+"/"+r.UserAgent())
		w.Header().Set("X-Length", fmt.Sprint(r.ContentLength))
		if r.Header.Get("traceparent") == "" {
			w.WriteHeader(http.StatusInternalServerError)
		}
		_, _ = w.Write(b)
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// TestBodiesFieldsAndExpectations hold on every version.
func TestBodiesFieldsAndExpectations(t *testing.T) {
	srv := echoServer(t)
	u, _ := url.Parse(srv.URL)
	large := []byte(strings.Repeat("0123456789abcdef", 40_000) + "needle") // beyond every window and frame
	must := func(x Expectation) *Expect {
		e, err := NewExpect(x)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	each(t, func(t *testing.T, run engineFunc) {
		for _, v := range []Version{HTTP1, HTTP2} {
			for name, c := range map[string]struct {
				carried
				want record.Outcome
			}{
				"body": {carried{"POST", []byte("a=b"), []Field{{Name: "X-Own", Value: []byte("one")}}, must(Expectation{Status: []int{200},
					Fields:   []FieldExpect{{Name: "x-seen", Equals: "one/all/us"}, {Name: "X-LENGTH", Equals: "3"}, {Name: "Date"}},
					Contains: []string{"a=b", "="}, MinBytes: 3, MaxBytes: 3})}, record.Answered},
				"large":       {carried{"PUT", large, nil, must(Expectation{Contains: []string{"fneedle"}, MinBytes: int64(len(large))})}, record.Answered},
				"no body":     {carried{"POST", nil, nil, must(Expectation{Fields: []FieldExpect{{Name: "X-Length", Equals: "0"}}})}, record.Answered},
				"status":      {carried{"GET", nil, nil, must(Expectation{Status: []int{201, 204}})}, record.CheckFailed},
				"field":       {carried{"GET", nil, nil, must(Expectation{Fields: []FieldExpect{{Name: "X-Seen", Equals: "two"}}})}, record.CheckFailed},
				"no field":    {carried{"GET", nil, nil, must(Expectation{Fields: []FieldExpect{{Name: "X-None"}}})}, record.CheckFailed},
				"text":        {carried{"POST", []byte("abcabd"), nil, must(Expectation{Contains: []string{"abd", "abe"}})}, record.CheckFailed},
				"too short":   {carried{"POST", []byte("ab"), nil, must(Expectation{MinBytes: 3})}, record.CheckFailed},
				"too long":    {carried{"POST", []byte("abcd"), nil, must(Expectation{MaxBytes: 3})}, record.CheckFailed},
				"split field": {carried{"GET", nil, []Field{{Name: "X-Own", Value: []byte("a\r\nB: c")}}, nil}, record.UnsentPolicy},
				"own field":   {carried{"GET", nil, []Field{{Name: "Content-Length", Value: []byte("5")}}, nil}, record.UnsentPolicy},
			} {
				seen := &notes{}
				r := mustRun(t, run, Config{Target: admit(t, "https://example.com", 0, u.Host), HTTP: v, TLS: TLS{Insecure: true}, Requests: c.carried, Schedule: every(2*time.Millisecond, 5), Recorder: seen,
					Headers: []Header{{"X-All", "all"}}, UserAgent: "us"})
				for _, s := range seen.sorted(t, 5) {
					if s.Outcome != c.want || s.Outcome.Sent() && (s.Status != 200 || s.BytesOut < uint64(len(c.body))) {
						t.Errorf("HTTP/%s, %s: %+v, want %s", v, name, s, c.want)
					}
					if named := c.carried.expect != nil && len(c.carried.expect.status) > 0; s.Expected != named {
						t.Errorf("HTTP/%s, %s: expected %v, want %v", v, name, s.Expected, named)
					}
				}
				told := uint64(0)
				for _, n := range r.Why {
					told += n
				}
				if failed := c.want == record.CheckFailed; failed != (told == 5) || !failed && told != 0 {
					t.Errorf("HTTP/%s, %s: %v", v, name, r.Why)
				}
			}
		}
	})
}

// TestClientCertificate is asked for by the server and shown, or the connection has failed.
func TestClientCertificate(t *testing.T) {
	p := newPair(t)
	n := startNginx(t, p, "ssl_verify_client on; ssl_client_certificate "+p.cert+";")
	own, err := tls.LoadX509KeyPair(p.cert, p.key)
	if err != nil {
		t.Fatal(err)
	}
	each(t, func(t *testing.T, run engineFunc) {
		for _, c := range []struct {
			certs  []tls.Certificate
			status uint16
		}{{[]tls.Certificate{own}, 200}, {nil, 400}} { // nginx tells those without one in words
			seen := &notes{}
			mustRun(t, run, Config{Target: admit(t, "https://"+n.addr, 0), TLS: TLS{RootCAs: p.roots, Certificates: c.certs}, Requests: lines{"GET /"}, Schedule: every(3*time.Millisecond, 5), Recorder: seen})
			for _, s := range seen.sorted(t, 5) {
				if s.Outcome != record.Answered || s.Status != c.status {
					t.Errorf("%+v, want %d", s, c.status)
				}
			}
			n.requests(t, 5)
		}
	})
}

// TestExpectAtEachCut: where the pieces of a response are cut changes nothing.
func TestExpectAtEachCut(t *testing.T) {
	e, err := NewExpect(Expectation{Contains: []string{"aab", "aaaab", "b"}})
	if err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string]bool{"aaaab": true, "aaaaaaaab": true, "aaabaaab": false, "": false, "xaaaabx": true, "aaaa": false} {
		for i := range len(body) + 1 {
			for j := i; j <= len(body); j++ {
				var c checker
				c.reset(e)
				c.data([]byte(body[:i]))
				c.data([]byte(body[i:j]))
				c.data([]byte(body[j:]))
				if (c.wrong(200) == nil) != want {
					t.Fatalf("%q cut at %d and %d: %v", body, i, j, !want)
				}
			}
		}
	}
	for _, x := range []Expectation{{Status: []int{100}}, {Status: []int{600}}, {Fields: []FieldExpect{{Name: "a b"}}}, {Fields: make([]FieldExpect, 65)},
		{Contains: []string{""}}, {MinBytes: -1}, {MinBytes: 5, MaxBytes: 4}} {
		if _, err := NewExpect(x); err == nil {
			t.Errorf("%+v is accepted", x)
		}
	}
}
