package httpload

import (
	"crypto/tls"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/sys/unix"

	"seatrial/engine"
	"seatrial/record"
)

// greedy asks for one path that a peer answers without end, and many others.
func greedy(n int) lines {
	l := lines{"GET /bad"}
	for range n {
		l = append(l, "GET /fine")
	}
	return l
}

// TestGreedyPeer: a connection on which the peer never stops sending keeps no other request from being
// sent and answered, and ends at its own time-out.
func TestGreedyPeer(t *testing.T) {
	chunks := []byte(strings.Repeat("1\r\nx\r\n", 4096))
	endless := func(head string, flood []byte) exchange {
		return func(c net.Conn, request string) bool {
			if !strings.Contains(request, "/bad") {
				return say(c, fine)
			}
			for ok := say(c, head); ok; {
				_, err := c.Write(flood)
				ok = err == nil
			}
			return false
		}
	}
	each(t, func(t *testing.T, run engineFunc) {
		for name, c := range map[string]struct {
			serve exchange
			http  Version
			want  record.Outcome
		}{
			"chunks":         {endless("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", chunks), HTTP1, record.TimedOut},
			"after the last": {endless("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok", chunks), HTTP1, record.Answered},
		} {
			addr := rawServer(t, c.serve)
			seen := &notes{}
			const n = 100
			mustRun(t, run, Config{Target: admit(t, "http://"+addr, 0), HTTP: c.http, Requests: greedy(n - 1), Recorder: seen, Schedule: every(5*time.Millisecond, n),
				Limits: engine.Limits{Timeout: 2 * time.Second, MaxBody: 1 << 40}})
			for i, s := range seen.sorted(t, n) {
				want := record.Answered
				if i == 0 {
					want = c.want
				}
				if s.Outcome != want && !(i == 0 && want == record.TimedOut && s.Outcome == record.Unwatched) { // a busy machine notices late
					t.Errorf("%s: request %d: %+v, want %s", name, i, s, want)
				}
				if s.Outcome == record.TimedOut && s.Done != s.Due+2*time.Second {
					t.Errorf("%s: %+v", name, s)
				}
			}
		}
		addr := framedServer(t, nil, func(f *framed, a asked) bool {
			if a.path() != "/bad" {
				f.fine(a.stream)
				return true
			}
			f.headers(a.stream, false, ":status", "200")
			go func() {
				for f.send(func() error { return f.WriteRawFrame(0xbb, 0, 0, nil) }) {
				}
			}()
			return true
		})
		seen := &notes{}
		mustRun(t, run, Config{Target: admit(t, "http://"+addr, 0), HTTP: HTTP2Prior, Connections: Connections{Streams: 1}, Requests: greedy(99), Recorder: seen, Schedule: every(5*time.Millisecond, 100),
			Limits: engine.Limits{Timeout: 2 * time.Second}})
		for i, s := range seen.sorted(t, 100) {
			if i == 0 && s.Outcome == record.Answered || i > 0 && s.Outcome != record.Answered {
				t.Errorf("frames: request %d: %+v", i, s)
			}
		}
	})
}

// send writes a frame beside those of the server.
func (f *framed) send(write func() error) bool {
	f.wire.Lock()
	defer f.wire.Unlock()
	return write() == nil
}

// TestEndThatIsThereAlready: what a peer said before the engine took its connection over, and that it said
// goodbye, is seen at once and not at the time-out.
func TestEndThatIsThereAlready(t *testing.T) {
	cert := selfSigned(t, "127.0.0.1", time.Hour)
	hangUp := func(c net.Conn) {
		_ = c.(interface{ CloseWrite() error }).CloseWrite()
		_, _ = io.Copy(io.Discard, c)
	}
	settings := listen(t, func(c net.Conn) {
		_ = http2.NewFramer(c, nil).WriteSettings()
		hangUp(c)
	})
	nothing := listen(t, hangUp)
	// in TLS 1.2 the server speaks last, so that its answer may lie right behind its Finished
	config := &tls.Config{Certificates: []tls.Certificate{cert}, MaxVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	early := listen(t, func(c net.Conn) {
		s := tls.Server(&together{Conn: c}, config)
		if s.Handshake() != nil {
			return
		}
		_, _ = s.Write([]byte(fine))
		s.NetConn().(*together).flush()
		_, _ = io.Copy(io.Discard, c)
	})
	gone := listen(t, func(c net.Conn) {
		s := tls.Server(&together{Conn: c}, config)
		if s.Handshake() != nil {
			return
		}
		_ = s.CloseWrite()
		s.NetConn().(*together).flush()
		_, _ = io.Copy(io.Discard, c)
	})
	each(t, func(t *testing.T, run engineFunc) {
		for name, c := range map[string]Config{
			"h2 settings and end": {Target: admit(t, "http://"+settings, 0), HTTP: HTTP2Prior},
			"h2 end":              {Target: admit(t, "http://"+nothing, 0), HTTP: HTTP2Prior},
			"end":                 {Target: admit(t, "http://"+nothing, 0)},
			"answer behind TLS":   {Target: admit(t, "https://"+early, 0), TLS: TLS{Insecure: true}},
			"goodbye behind TLS":  {Target: admit(t, "https://"+gone, 0), TLS: TLS{Insecure: true}},
		} {
			const n = 200
			seen := &notes{}
			c.Requests, c.Recorder, c.Schedule, c.Limits = lines{"GET /"}, seen, every(time.Millisecond, n), engine.Limits{Timeout: 20 * time.Second}
			c.Connections.Fresh = 1
			mustRun(t, run, c)
			for _, s := range seen.sorted(t, n) {
				if s.Outcome.TimedOut() || s.Outcome.Unsent() {
					t.Errorf("%s: %+v", name, s)
				}
			}
		}
	})
}

// together keeps what a TLS server writes last in its handshake until more is there.
type together struct {
	net.Conn
	held []byte
}

// Write keeps what begins with a ChangeCipherSpec record, which comes right before the last message.
func (c *together) Write(b []byte) (int, error) {
	if len(c.held) > 0 || b[0] == 20 {
		c.held = append(c.held, b...)
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (c *together) flush() {
	_ = c.SetWriteDeadline(time.Time{}) // a goodbye sets one that has passed
	_, _ = c.Conn.Write(c.held)
}

// TestFullBacklog: a Unix socket that takes no more connections now is no time-out.
func TestFullBacklog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	target, err := engine.AdmitUnix(&url.URL{Scheme: "http", Host: "localhost"}, path, 0, engine.Proof{Kind: "environment", Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	each(t, func(t *testing.T, run engineFunc) {
		seen := &notes{}
		r := mustRun(t, run, Config{Target: target, Requests: lines{"GET /"}, Recorder: seen, Schedule: every(time.Millisecond, 10), Connections: Connections{Fresh: 1},
			Limits: engine.Limits{Timeout: 300 * time.Millisecond}})
		failed := uint64(0)
		for _, s := range seen.sorted(t, 10) {
			switch s.Outcome {
			case record.ConnectFailed:
				failed++
			case record.TimedOut: // it stands in the backlog, and nobody answers
			default:
				t.Errorf("%+v", s)
			}
		}
		if failed < 8 || r.ConnFailed != failed {
			t.Errorf("%d of 10 found the backlog full, %d connections failed: %v", failed, r.ConnFailed, r.Why)
		}
	})
}

// TestPeerThatTakesNothing: requests for which an HTTP/2 connection has no room wait for it, and do not use
// up what the target admits.
func TestPeerThatTakesNothing(t *testing.T) {
	addr := listen(t, func(c net.Conn) {
		_ = http2.NewFramer(c, nil).WriteSettings()
		time.Sleep(2 * time.Second)
	})
	big := strings.Repeat("x", 60_000)
	each(t, func(t *testing.T, run engineFunc) {
		seen := &notes{}
		r := mustRun(t, run, Config{Target: admit(t, "http://"+addr, 1000), HTTP: HTTP2Prior, Requests: lines{"GET /"}, Recorder: seen, Schedule: every(5*time.Millisecond, 200),
			Headers: []Header{{"X-Big", big}}, Connections: Connections{Streams: 1000}, Limits: engine.Limits{MaxConnections: 1, Timeout: 1500 * time.Millisecond}})
		for _, s := range seen.sorted(t, 200) {
			switch s.Outcome {
			case record.TimedOut, record.UnsentLimit, record.Unwatched, record.UnsentLate: // the last two on a busy machine
			default:
				t.Errorf("%+v", s)
			}
		}
		if r.RateLimited != 0 {
			t.Errorf("%d requests were held back by the rate", r.RateLimited)
		}
	})
}
