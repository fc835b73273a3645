package httpload

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"seatrial/engine"
	"seatrial/record"
)

// tlsBehaviour is what a TLS server does with one connection, and what must be made of the request on
// it.
type tlsBehaviour struct {
	name   string
	serve  func(net.Conn) // the first byte of the ClientHello has not been read
	config *tls.Config    // serve gets the connection behind a handshake with this
	client TLS            // of the engine; its roots are set
	want   record.Outcome
	limits engine.Limits
}

// alert is a plaintext TLS alert record.
func alert(level, what byte) []byte { return []byte{21, 3, 3, 0, 2, level, what} }

// hello reads the ClientHello.
func hello(c net.Conn) bool {
	b := make([]byte, 2048)
	_ = c.SetReadDeadline(time.Now().Add(time.Second))
	n, err := c.Read(b)
	return err == nil && n > 0
}

// after does something with the raw connection once the ClientHello is there.
func after(do func(net.Conn)) func(net.Conn) {
	return func(c net.Conn) {
		if hello(c) {
			do(c)
		}
	}
}

// answers reads the request behind the handshake and says something.
func answers(text string, then func(*tls.Conn)) func(net.Conn) {
	return func(c net.Conn) {
		t := c.(*tls.Conn)
		if _, ok := readHead(bufio.NewReader(t)); !ok {
			return
		}
		_, _ = t.Write([]byte(text))
		then(t)
	}
}

func tlsBehaviours(t *testing.T, p pair) []tlsBehaviour {
	cert, err := tls.LoadX509KeyPair(p.cert, p.key)
	if err != nil {
		t.Fatal(err)
	}
	with := func(change func(*tls.Config)) *tls.Config {
		c := &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"http/1.1"}}
		change(c)
		return c
	}
	plain := with(func(*tls.Config) {})
	closeNotify := func(c *tls.Conn) { _ = c.CloseWrite(); time.Sleep(20 * time.Millisecond) }
	cut := func(c *tls.Conn) { _ = c.NetConn().(*net.TCPConn).CloseWrite() }
	fatal := func(c *tls.Conn) { _, _ = c.NetConn().Write(alert(2, 40)); time.Sleep(20 * time.Millisecond) } // not encrypted: refused as such
	short := "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok"
	untilClose := "HTTP/1.1 200 OK\r\n\r\nok"
	return []tlsBehaviour{
		{name: "alert handshake_failure", serve: after(func(c net.Conn) { _, _ = c.Write(alert(2, 40)) }), want: record.TLSFailed},
		{name: "alert unrecognized_name", serve: after(func(c net.Conn) { _, _ = c.Write(alert(2, 112)) }), want: record.TLSFailed},
		{name: "closes at once", serve: func(net.Conn) {}, want: record.TLSFailed},
		{name: "closes after the hello", serve: after(func(net.Conn) {}), want: record.TLSFailed},
		{name: "resets after the hello", serve: after(func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0) }), want: record.TLSFailed},
		{name: "closes in a record", serve: after(func(c net.Conn) { _, _ = c.Write([]byte{22, 3, 3, 0, 80, 2, 0}) }), want: record.TLSFailed},
		{name: "garbage", serve: after(func(c net.Conn) { _, _ = c.Write([]byte("\xde\xad\xbe\xef\xde\xad\xbe\xef")) }), want: record.TLSFailed},
		{name: "answers plain HTTP", serve: after(func(c net.Conn) { say(c, fine) }), want: record.TLSFailed},
		{name: "record over 16 KiB", serve: after(func(c net.Conn) { _, _ = c.Write(append([]byte{22, 3, 3, 0xff, 0xff}, make([]byte, 65535)...)) }), want: record.TLSFailed},
		{name: "flood in the handshake", serve: after(func(c net.Conn) {
			_ = c.SetWriteDeadline(time.Now().Add(time.Second))
			for i := 0; i < 400; i++ { // empty handshake records
				if _, err := c.Write(append([]byte{22, 3, 3, 0x40, 0}, make([]byte, 16384)...)); err != nil {
					return
				}
			}
		}), want: record.TLSFailed},
		{name: "handshake without an end", serve: after(func(net.Conn) { time.Sleep(300 * time.Millisecond) }), want: record.TimedOutConnect, limits: engine.Limits{TLS: 100 * time.Millisecond}},
		{name: "handshake that drips", serve: after(func(c net.Conn) {
			for _, b := range append([]byte{22, 3, 3, 0, 200}, make([]byte, 200)...) {
				if _, err := c.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(5 * time.Millisecond)
			}
		}), want: record.TimedOutConnect, limits: engine.Limits{TLS: 100 * time.Millisecond}},

		{name: "self-signed", config: with(func(c *tls.Config) { c.Certificates = []tls.Certificate{selfSigned(t, "127.0.0.1", time.Hour)} }), want: record.TLSFailed},
		{name: "expired", config: with(func(c *tls.Config) { c.Certificates = []tls.Certificate{selfSigned(t, "127.0.0.1", -time.Minute)} }), want: record.TLSFailed},
		{name: "other name", config: plain, client: TLS{ServerName: "other.example.com"}, want: record.TLSFailed},
		{name: "no common version", config: with(func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }), client: TLS{MinVersion: tls.VersionTLS13}, want: record.TLSFailed},
		{name: "no common protocol", config: with(func(c *tls.Config) { c.NextProtos = []string{"smtp"} }), want: record.TLSFailed},
		{name: "wants a certificate, TLS 1.3", config: with(func(c *tls.Config) { c.ClientAuth = tls.RequireAnyClientCert }), serve: answers(fine, closeNotify), want: record.TLSFailed},
		{name: "wants a certificate, TLS 1.2", config: with(func(c *tls.Config) { c.ClientAuth, c.MaxVersion = tls.RequireAnyClientCert, tls.VersionTLS12 }), want: record.TLSFailed},

		{name: "complete", config: plain, serve: answers(fine, closeNotify), want: record.Answered},
		{name: "byte by byte", config: plain, serve: answers("", func(c *tls.Conn) {
			for i := range fine {
				_, _ = c.Write([]byte(fine[i : i+1]))
			}
			closeNotify(c)
		}), want: record.Answered},
		{name: "until close_notify", config: plain, serve: answers(untilClose, closeNotify), want: record.Answered},
		{name: "until a close without one", config: plain, serve: answers(untilClose, cut), want: record.EarlyClose}, // somebody may have cut it
		{name: "close_notify in the body", config: plain, serve: answers(short, closeNotify), want: record.EarlyClose},
		{name: "close in the body", config: plain, serve: answers(short, cut), want: record.EarlyClose},
		{name: "close_notify for an answer", config: plain, serve: answers("", closeNotify), want: record.Reset},
		{name: "garbage record in the body", config: plain, serve: answers(short, func(c *tls.Conn) { _, _ = c.NetConn().Write([]byte("HTTP/1.1 500")); time.Sleep(20 * time.Millisecond) }), want: record.InvalidResponse},
		{name: "alert in the clear in the body", config: plain, serve: answers(short, fatal), want: record.Reset},
		{name: "asks to renegotiate", config: with(func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }), serve: answers(short, renegotiate), want: record.Reset},
	}
}

// renegotiate sends a HelloRequest, in the clear: no server library of ours writes one. It is refused
// before it is understood, and so would an encrypted one be: RenegotiateNever.
func renegotiate(c *tls.Conn) {
	_, _ = c.NetConn().Write([]byte{22, 3, 3, 0, 4, 0, 0, 0, 0})
	time.Sleep(20 * time.Millisecond)
}

func selfSigned(t *testing.T, host string, left time.Duration) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(left), IPAddresses: []net.IP{net.ParseIP(host)}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// TestConformanceTLS: the second connection of four behaves; the requests beside it must not feel it.
func TestConformanceTLS(t *testing.T) {
	p := newPair(t)
	good, err := tls.LoadX509KeyPair(p.cert, p.key)
	if err != nil {
		t.Fatal(err)
	}
	all := tlsBehaviours(t, p)
	for name, run := range engines {
		for _, b := range all {
			t.Run(name+"/"+b.name, func(t *testing.T) {
				t.Parallel()
				conformTLS(t, p, good, b, run)
			})
		}
	}
}

func conformTLS(t *testing.T, p pair, good tls.Certificate, b tlsBehaviour, run engineFunc) {
	var mu sync.Mutex
	n := 0
	right := &tls.Config{Certificates: []tls.Certificate{good}, NextProtos: []string{"http/1.1"}}
	if b.client.ServerName != "" || b.client.MinVersion != 0 { // then the good ones are not judged
		right = b.config
	}
	addr := listen(t, func(c net.Conn) {
		mu.Lock()
		n++
		bad := n == 2
		mu.Unlock()
		switch {
		case !bad:
			s := tls.Server(c, right)
			if _, ok := readHead(bufio.NewReader(s)); ok {
				_, _ = s.Write([]byte("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"))
			}
		case b.config == nil:
			b.serve(c)
		default:
			s := tls.Server(c, b.config)
			if s.Handshake() == nil && b.serve != nil {
				b.serve(s)
			}
			_ = c.(*net.TCPConn).CloseWrite()
			_ = c.SetReadDeadline(time.Now().Add(20 * time.Millisecond)) // to close with bytes unread would be a reset
			_, _ = io.Copy(io.Discard, c)
		}
	})
	seen := &notes{}
	b.client.RootCAs = p.roots
	if b.limits.Timeout == 0 {
		b.limits.Timeout = 2 * time.Second
	}
	_, err := run(t.Context(), Config{Target: admit(t, "https://"+addr, 0), HTTP: HTTP1, TLS: b.client, Requests: lines{"GET /"}, Recorder: seen, Limits: b.limits,
		Schedule: &dues{at: []time.Duration{0, 60 * time.Millisecond, 500 * time.Millisecond, 560 * time.Millisecond}}})
	if err != nil {
		t.Fatal(err)
	}
	got := seen.sorted(t, 4)
	if got[1].Outcome != b.want {
		t.Errorf("%s, want %s: %+v", got[1].Outcome, b.want, got[1])
	}
	if b.client.ServerName != "" || b.client.MinVersion != 0 {
		return
	}
	for _, i := range []int{0, 2, 3} {
		if got[i].Outcome != record.Answered || got[i].TLS == 0 {
			t.Errorf("a good request beside it became %+v", got[i])
		}
	}
}

// TestBlackHole: an address whose connection requests are dropped costs the connect time-out and nothing
// else, and only the share of requests that it would have had.
func TestBlackHole(t *testing.T) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	hole := (&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: name.(*unix.SockaddrInet4).Port}).String()
	for range 4 { // the queue is full now, and what else comes is dropped
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if c, err := (&net.Dialer{}).DialContext(ctx, "tcp", hole); err == nil {
			defer func() { _ = c.Close() }()
		}
		cancel()
	}
	good := rawServer(t, func(c net.Conn, _ string) bool {
		say(c, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
		return false
	})
	each(t, func(t *testing.T, run engineFunc) {
		seen := &notes{}
		mustRun(t, run, Config{Target: admit(t, "http://a.example.com", 0, good, hole), Requests: lines{"GET /"}, Schedule: every(10*time.Millisecond, 20), Recorder: seen,
			Limits: engine.Limits{Connect: 150 * time.Millisecond}})
		count := map[record.Outcome]int{}
		for _, s := range seen.sorted(t, 20) {
			count[s.Outcome]++
			if s.Outcome == record.TimedOutConnect && (s.Connect < 140*time.Millisecond || s.Connect > 400*time.Millisecond || s.Sent != 0) {
				t.Errorf("%+v", s)
			}
			if s.Outcome == record.Answered && s.Response() > 100*time.Millisecond {
				t.Errorf("a request to the other address waited: %+v", s)
			}
		}
		if count[record.Answered] != 10 || count[record.TimedOutConnect] != 10 {
			t.Errorf("%v, want 10 answered and 10 timed out", count)
		}
	})
}

// TestOneOfTwoAddressesRefuses: only its share fails.
func TestOneOfTwoAddressesRefuses(t *testing.T) {
	good := rawServer(t, func(c net.Conn, head string) bool {
		if !strings.Contains(head, "Host: a.example.com\r\n") {
			return false
		}
		say(c, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
		return false
	})
	dead := "127.0.0.1:" + freePort(t)
	each(t, func(t *testing.T, run engineFunc) {
		seen := &notes{}
		mustRun(t, run, Config{Target: admit(t, "http://a.example.com", 0, good, dead), Requests: lines{"GET /"}, Schedule: every(5*time.Millisecond, 20), Recorder: seen})
		count := map[record.Outcome]int{}
		for _, s := range seen.sorted(t, 20) {
			count[s.Outcome]++
		}
		if count[record.Answered] != 10 || count[record.ConnectRefused] != 10 {
			t.Errorf("%v, want 10 answered and 10 refused", count)
		}
	})
}
