package httpload

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"seatrial/engine"
	"seatrial/record"
)

// TestReasons: why connections and answers failed is told in words, as often as it happened, and what
// never came about is not among the connections that were opened.
func TestReasons(t *testing.T) {
	alien := func() *httptest.Server {
		s := httptest.NewUnstartedServer(http.NotFoundHandler())
		s.TLS = &tls.Config{Certificates: []tls.Certificate{selfSigned(t, "127.0.0.1", time.Hour)}, NextProtos: []string{"http/1.1"}}
		s.StartTLS()
		t.Cleanup(s.Close)
		return s
	}()
	strict := httptest.NewUnstartedServer(http.NotFoundHandler())
	strict.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, NextProtos: []string{"h2"}}
	strict.StartTLS()
	t.Cleanup(strict.Close)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = free.Close()
	each(t, func(t *testing.T, run engineFunc) {
		plain := rawServer(t, func(c net.Conn, _ string) bool { return say(c, fine) })
		mute := listen(t, func(net.Conn) { time.Sleep(300 * time.Millisecond) })
		garbled := listen(t, func(c net.Conn) { _, _ = c.Read(make([]byte, 1<<12)); say(c, fine) })
		garbage := rawServer(t, func(c net.Conn, _ string) bool { _, _ = c.Write([]byte("HTTP/1.1 abc\r\n\r\n")); return false })
		cut := rawServer(t, func(c net.Conn, _ string) bool {
			_, _ = c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"))
			return false
		})
		for name, c := range map[string]struct {
			cfg  Config
			want record.Outcome
			why  string
			open bool // connections are opened before it fails
		}{
			"refused":           {Config{Target: admit(t, "http://"+free.Addr().String(), 0)}, record.ConnectRefused, "connecting: connection refused", false},
			"unknown authority": {Config{Target: admit(t, alien.URL, 0)}, record.TLSFailed, "TLS handshake: tls: failed to verify certificate: x509: certificate signed by unknown authority", false},
			"another name":      {Config{Target: admit(t, alien.URL, 0), TLS: TLS{ServerName: "example.com"}}, record.TLSFailed, "TLS handshake: tls: failed to verify certificate: x509: ", false},
			"no such version":   {Config{Target: admit(t, alien.URL, 0), TLS: TLS{Insecure: true}, HTTP: HTTP2}, record.TLSFailed, "TLS handshake: ", false},
			"plain server":      {Config{Target: admit(t, "https://"+garbled, 0)}, record.TLSFailed, "TLS handshake: ", false},
			"silent server":     {Config{Target: admit(t, "https://"+mute, 0), Limits: engine.Limits{TLS: 50 * time.Millisecond}}, record.TimedOutConnect, "TLS handshake: it took longer than its time-out", false},
			"wants certificate": {Config{Target: admit(t, strict.URL, 0), TLS: TLS{Insecure: true}, HTTP: HTTP2}, record.TLSFailed, "answer: the target's alert: tls: certificate required", true},
			"garbage":           {Config{Target: admit(t, "http://"+garbage, 0)}, record.InvalidResponse, "answer: ", true},
			"cut":               {Config{Target: admit(t, "http://"+cut, 0)}, record.EarlyClose, "answer: the target closed the connection", true},
			"speaks no HTTP/2":  {Config{Target: admit(t, "http://"+plain, 0), HTTP: HTTP2Prior}, record.InvalidResponse, "answer: ", true},
		} {
			const n = 4
			seen := &notes{}
			cfg := c.cfg
			cfg.Requests, cfg.Schedule, cfg.Recorder = lines{"GET /"}, every(20*time.Millisecond, n), seen
			r := mustRun(t, run, cfg)
			for _, s := range seen.sorted(t, n) {
				if s.Outcome != c.want {
					t.Errorf("%s: %+v, want %s", name, s, c.want)
				}
			}
			sum := uint64(0)
			for text, k := range r.Why {
				if sum += k; !strings.HasPrefix(text, c.why) {
					t.Errorf("%s: %q, want %q", name, text, c.why)
				}
			}
			if sum != n || r.HTTP2 != 0 {
				t.Errorf("%s: %v, HTTP/2 on %d", name, r.Why, r.HTTP2)
			}
			if opened, failed := r.ConnOpened, r.ConnFailed; c.open && (opened != n || failed != 0) || !c.open && (opened != 0 || failed != n) {
				t.Errorf("%s: %d opened, %d failed", name, opened, failed)
			}
		}
	})
}

// TestReasonsAreBounded: neither their number nor their length is a peer's choice, and none holds what a
// terminal would obey.
func TestReasonsAreBounded(t *testing.T) {
	var r, sum Reasons
	for i := range 100 {
		r.note(answering, fmt.Errorf("reason %d \x1b[31m\n%s", i, strings.Repeat("x", 1000)))
	}
	sum.Merge(r)
	sum.Merge(Reasons{"one": 1})
	var n uint64
	for text, k := range sum {
		if n += k; strings.ContainsAny(text, "\x1b\n") || len(text) > 300 {
			t.Errorf("%q", text)
		}
	}
	if n != 101 || len(sum) != maxReasons+1 || sum[OtherReasons] != 100-maxReasons+1 {
		t.Errorf("%d reasons for %d failures, %d others", len(sum), n, sum[OtherReasons])
	}
	a := &net.OpError{Op: "read", Net: "tcp", Addr: &net.TCPAddr{Port: 40001}, Err: errors.New("broken pipe")}
	if got := words(a); got != "broken pipe" {
		t.Errorf("%q", got)
	}
}
