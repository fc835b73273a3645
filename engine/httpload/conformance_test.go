package httpload

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"seatrial/engine"
	"seatrial/record"
)

const quick = 300 * time.Millisecond

// behaviour is what a server does with one request, and what must be made of it.
type behaviour struct {
	name   string
	method string // default GET
	serve  exchange
	want   record.Outcome
	status uint16
	stray  bool // a connection must have been discarded
}

// replies serves fixed bytes and keeps the connection open.
func replies(s string) exchange { return func(c net.Conn, _ string) bool { return say(c, s) } }

// closes serves fixed bytes and closes.
func closes(s string) exchange {
	return func(c net.Conn, _ string) bool { say(c, s); return false }
}

// resets serves fixed bytes and resets the connection.
func resets(s string) exchange {
	return func(c net.Conn, _ string) bool {
		say(c, s)
		time.Sleep(20 * time.Millisecond) // a reset discards what the peer has not read yet
		_ = c.(*net.TCPConn).SetLinger(0)
		return false
	}
}

// repeats serves a beginning and then the same bytes until the peer goes away.
func repeats(head, again string, gap time.Duration) exchange {
	return func(c net.Conn, _ string) bool {
		ok := say(c, head)
		for ok {
			ok = say(c, again)
			if gap > 0 {
				time.Sleep(gap)
			}
		}
		return false
	}
}

func behaviours() []behaviour {
	ok, bad := record.Answered, record.InvalidResponse
	return []behaviour{
		{name: "content length", serve: replies(fine), want: ok, status: 200},
		{name: "empty body", serve: replies("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), want: ok, status: 200},
		{name: "equal lengths twice", serve: replies("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok"), want: ok, status: 200},
		{name: "no reason", serve: replies("HTTP/1.1 503\r\nContent-Length: 0\r\n\r\n"), want: ok, status: 503},
		{name: "chunked", serve: replies("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"), want: ok, status: 200},
		{name: "chunk extensions and trailers", serve: replies("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a=\"b\"\r\nok\r\n0 ;x\r\nSum: 1\r\n\r\n"), want: ok, status: 200},
		{name: "until close", serve: closes("HTTP/1.1 200 OK\r\n\r\nall of it"), want: ok, status: 200},
		{name: "HTTP/1.0", serve: closes("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok"), want: ok, status: 200},
		{name: "HTTP/1.0 keep-alive", serve: replies("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok"), want: ok, status: 200},
		{name: "connection close", serve: closes("HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 2\r\n\r\nok"), want: ok, status: 200},
		{name: "close without saying so", serve: closes(fine), want: ok, status: 200},
		{name: "head", method: "HEAD", serve: replies("HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n"), want: ok, status: 200},
		{name: "head with a body", method: "HEAD", serve: replies(fine), want: ok, status: 200, stray: true},
		{name: "204", serve: replies("HTTP/1.1 204 No Content\r\n\r\n"), want: ok, status: 204},
		{name: "204 with a body", serve: replies("HTTP/1.1 204 No Content\r\n\r\nbody"), want: ok, status: 204, stray: true},
		{name: "304 with a length", serve: replies("HTTP/1.1 304 Not Modified\r\nContent-Length: 50\r\n\r\n"), want: ok, status: 304},
		{name: "redirect is not followed", serve: replies("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"), want: ok, status: 302},
		{name: "interim responses", serve: replies("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + fine), want: ok, status: 200},
		{name: "gzip is counted and not opened", serve: replies("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\n\x1f\x8b\x08"), want: ok, status: 200},
		{name: "two answers to one request", serve: replies(fine + fine), want: ok, status: 200, stray: true},
		{name: "garbage after the answer", serve: replies(fine + "\x00\x01garbage"), want: ok, status: 200, stray: true},
		{name: "garbage a little later", serve: func(c net.Conn, _ string) bool {
			say(c, fine)
			time.Sleep(20 * time.Millisecond)
			return say(c, "HTTP/1.1 500 Not Asked For\r\nContent-Length: 0\r\n\r\n")
		}, want: ok, status: 200, stray: true},
		{name: "large headers", serve: replies("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: " + strings.Repeat("x", 60<<10) + "\r\n\r\n"), want: ok, status: 200},
		{name: "byte by byte", serve: func(c net.Conn, _ string) bool {
			for i := range fine {
				say(c, fine[i:i+1])
			}
			return true
		}, want: ok, status: 200},

		{name: "headers of more than 64 KiB", serve: replies("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 64<<10) + "\r\n\r\n"), want: bad},
		{name: "endless headers", serve: repeats("HTTP/1.1 200 OK\r\n", "X: "+strings.Repeat("y", 1000)+"\r\n", 0), want: bad},
		{name: "endless interim responses", serve: repeats("", "HTTP/1.1 100 Continue\r\n\r\n", 0), want: bad},
		{name: "switch nobody asked for", serve: replies("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"), want: bad},
		{name: "endless body", serve: repeats("HTTP/1.1 200 OK\r\n\r\n", strings.Repeat("z", 32<<10), 0), want: bad},
		{name: "length over the limit", serve: replies("HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n"), want: bad},
		{name: "chunk over the limit", serve: replies("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n"), want: bad},
		{name: "chunk size overflows", serve: replies("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000002\r\nok\r\n"), want: bad},
		{name: "chunk size is no number", serve: replies("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"), want: bad},
		{name: "chunk size has a sign", serve: replies("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n+2\r\nok\r\n0\r\n\r\n"), want: bad},
		{name: "chunk longer than it says", serve: replies("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nokay\r\n0\r\n\r\n"), want: bad},
		{name: "endless chunk extension", serve: repeats("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", "xxxxxxxx", 0), want: bad},
		{name: "endless extensions of small chunks", serve: repeats("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "1;"+strings.Repeat("x", 200)+"\r\na\r\n", 0), want: bad},
		{name: "length and chunked", serve: replies("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), want: bad},
		{name: "two lengths", serve: replies("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok"), want: bad},
		{name: "list of lengths", serve: replies("HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok"), want: bad},
		{name: "negative length", serve: replies("HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok"), want: bad},
		{name: "other coding", serve: replies("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"), want: bad},
		{name: "chunked twice", serve: replies("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), want: bad},
		{name: "chunked in HTTP/1.0", serve: replies("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), want: bad},
		{name: "folded header", serve: replies("HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n"), want: bad},
		{name: "space before the colon", serve: replies("HTTP/1.1 200 OK\r\nContent-Length : 0\r\n\r\n"), want: bad},
		{name: "bare line feed", serve: replies("HTTP/1.1 200 OK\nContent-Length: 0\n\n"), want: bad},
		{name: "bare carriage return", serve: replies("HTTP/1.1 200 OK\r\nX: a\rContent-Length: 0\r\n\r\n"), want: bad},
		{name: "null in a header", serve: replies("HTTP/1.1 200 OK\r\nX: \x00\r\nContent-Length: 0\r\n\r\n"), want: bad},
		{name: "header without a name", serve: replies("HTTP/1.1 200 OK\r\n: x\r\n\r\n"), want: bad},
		{name: "other protocol", serve: replies("SSH-2.0-x"), want: bad},
		{name: "other version", serve: replies("HTTP/2.0 200 OK\r\n\r\n"), want: bad},
		{name: "short status", serve: replies("HTTP/1.1 20 OK\r\n\r\n"), want: bad},
		{name: "status out of range", serve: replies("HTTP/1.1 999 No\r\nContent-Length: 0\r\n\r\n"), want: bad},
		{name: "TLS where none was meant", serve: replies("\x15\x03\x01\x00\x02\x02\x28"), want: bad},
		{name: "random bytes", serve: replies("\xde\xad\xbe\xef\x00\r\n\r\n"), want: bad},

		{name: "close without an answer", serve: closes(""), want: record.Reset},
		{name: "reset without an answer", serve: resets(""), want: record.Reset},
		{name: "close in the status line", serve: closes("HTTP/1.1 2"), want: record.EarlyClose},
		{name: "close in the headers", serve: closes("HTTP/1.1 200 OK\r\nContent-"), want: record.EarlyClose},
		{name: "close in the body", serve: closes("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok"), want: record.EarlyClose},
		{name: "close in a chunk", serve: closes("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nok"), want: record.EarlyClose},
		{name: "close before the last chunk", serve: closes("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n"), want: record.EarlyClose},
		{name: "close after an interim response", serve: closes("HTTP/1.1 100 Continue\r\n\r\n"), want: record.EarlyClose},
		{name: "reset in the body", serve: resets("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok"), want: record.Reset},
		{name: "half close", serve: func(c net.Conn, _ string) bool {
			say(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok")
			_ = c.(*net.TCPConn).CloseWrite()
			return true
		}, want: record.EarlyClose},

		{name: "no answer", serve: replies(""), want: record.TimedOut},
		{name: "half an answer", serve: replies("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok"), want: record.TimedOut},
		{name: "slow drip", serve: repeats("HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n", "x", 5*time.Millisecond), want: record.TimedOut},
		{name: "slow drip of headers", serve: repeats("HTTP/1.1 200 OK\r\n", "A: b\r\n", 5*time.Millisecond), want: record.TimedOut},
	}
}

// TestConformance shows each behaviour to each engine between two good requests: it must be named for
// what it is, and must not touch the others.
func TestConformance(t *testing.T) {
	for name, run := range engines {
		for _, b := range behaviours() {
			t.Run(name+"/"+b.name, func(t *testing.T) {
				t.Parallel()
				conform(t, Config{}, b, run)
			})
		}
	}
}

func conform(t *testing.T, cfg Config, b behaviour, run engineFunc) {
	if b.method == "" {
		b.method = "GET"
	}
	addr := rawServer(t, func(c net.Conn, head string) bool {
		if strings.Contains(head, " /bad HTTP/1.1\r\n") {
			return b.serve(c, head)
		}
		return say(c, fine)
	})
	seen := &notes{}
	cfg.Target = admit(t, "http://"+addr, 0)
	cfg.Requests = lines{"GET /good", b.method + " /bad", "GET /good", "GET /good"}
	cfg.Schedule = &dues{at: []time.Duration{0, 30 * time.Millisecond, 100 * time.Millisecond, 110 * time.Millisecond}}
	cfg.Recorder, cfg.Limits = seen, engine.Limits{Timeout: quick, MaxBody: 4 << 20}
	r, err := run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	got := seen.sorted(t, 4)
	for _, i := range []int{0, 2, 3} {
		if got[i].Outcome != record.Answered || got[i].Status != 200 || got[i].BytesIn != uint64(len(fine)) {
			t.Errorf("a good request beside it became %+v", got[i])
		}
	}
	if got[1].Outcome != b.want || got[1].Status != b.status {
		t.Errorf("%s with status %d, want %s with %d", got[1].Outcome, got[1].Status, b.want, b.status)
	}
	if b.want == record.TimedOut && got[1].Response() != quick {
		t.Errorf("a time-out after %s, want %s from the due time", got[1].Response(), quick)
	}
	if b.stray != (r.Discarded > 0) {
		t.Errorf("%d connections were discarded", r.Discarded)
	}
	if r.Released != 4 || r.ConnPeak == 0 || r.ConnOpened == 0 || r.BytesOut == 0 {
		t.Errorf("result %+v", r)
	}
}

// TestEarlyCloseAtEachByte: only the whole answer is an answer.
func TestEarlyCloseAtEachByte(t *testing.T) {
	for name, run := range engines {
		whole := "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
		addr := rawServer(t, func(c net.Conn, head string) bool {
			var n int
			_, _ = fmt.Sscanf(head, "GET /%d ", &n)
			say(c, whole[:n])
			return false
		})
		var requests lines
		for i := range len(whole) + 1 {
			requests = append(requests, fmt.Sprintf("GET /%d", i))
		}
		seen := &notes{}
		if _, err := run(t.Context(), Config{Target: admit(t, "http://"+addr, 0), Requests: requests, Schedule: every(time.Millisecond, len(requests)), Recorder: seen}); err != nil {
			t.Fatal(err)
		}
		for i, s := range seen.sorted(t, len(requests)) {
			want := record.EarlyClose
			switch i {
			case 0:
				want = record.Reset
			case len(whole):
				want = record.Answered
			}
			if s.Outcome != want || s.BytesIn != uint64(i) {
				t.Errorf("%s: closed after %d bytes: %s with %d bytes, want %s", name, i, s.Outcome, s.BytesIn, want)
			}
		}
	}
}
