package httpload

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
)

// verdictOf is what a parser makes of a response and what follows it.
type verdictOf struct {
	ok     bool
	status int
	body   int64
	reuse  bool
	err    error
}

// parseOurs parses with Parser, in pieces cut at random, until the response is complete or the bytes end.
func parseOurs(r *rand.Rand, method string, raw []byte) verdictOf {
	p := NewParser(0, 0)
	p.Reset(method)
	for b := raw; len(b) > 0; {
		n := 1 + r.IntN(len(b))
		k, done, err := p.Feed(b[:n])
		if err != nil {
			return verdictOf{err: err}
		}
		if done {
			return verdictOf{ok: true, status: p.Status(), body: p.Body(), reuse: p.Reusable()}
		}
		b = b[k:]
	}
	if err := p.EOF(); err != nil {
		return verdictOf{err: err}
	}
	return verdictOf{ok: true, status: p.Status(), body: p.Body(), reuse: p.Reusable()}
}

// parseTheirs parses with net/http, interim responses as its transport does.
func parseTheirs(method string, raw []byte) verdictOf {
	b := bufio.NewReader(bytes.NewReader(raw))
	for interim := 0; ; interim++ {
		resp, err := http.ReadResponse(b, &http.Request{Method: method})
		if err != nil {
			return verdictOf{err: err}
		}
		if resp.StatusCode >= 100 && resp.StatusCode < 200 && resp.StatusCode != http.StatusSwitchingProtocols {
			if interim > 100 {
				return verdictOf{err: errors.New("too many")}
			}
			continue
		}
		n, err := io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			return verdictOf{err: err}
		}
		return verdictOf{ok: true, status: resp.StatusCode, body: n, reuse: !resp.Close}
	}
}

// oneOf picks.
func oneOf[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// generated writes a response: mostly right, with the oddities that servers are known for.
func generated(r *rand.Rand) (method string, raw []byte) {
	method = oneOf(r, "GET", "GET", "GET", "POST", "HEAD")
	var b strings.Builder
	for range r.IntN(3) {
		if r.IntN(4) == 0 {
			fmt.Fprintf(&b, "HTTP/1.1 %d x\r\nA: b\r\n\r\n", oneOf(r, 100, 102, 103))
		}
	}
	status := oneOf(r, 200, 200, 200, 201, 204, 206, 301, 304, 404, 500, 503, 599, 101, 600, 999, 20)
	fmt.Fprintf(&b, "%s %d%s%s", oneOf(r, "HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/1.0", "HTTP/2.0", "HTTP/1.2", "http/1.1", "HTTPS/1.1"), status,
		oneOf(r, " OK", " OK", "", " ", "  two", " not found", "x"), oneOf(r, "\r\n", "\r\n", "\r\n", "\r\n", "\n"))
	body := strings.Repeat("x", r.IntN(20))
	n := fmt.Sprint(len(body))
	for range r.IntN(4) {
		b.WriteString(oneOf(r, "Content-Type: text/plain\r\n", "X: y\r\n", "Server: x\r\n", "Date: y\r\n", "X: y\r\n", "X: y\r\n", "X: y\r\n", "X: y\r\n", "X: y\r\n", "X: y\r\n", "connection: Close\r\n", "Connection: keep-alive\r\n", "Connection: keep-alive, close\r\n",
			"X : y\r\n", " folded\r\n", "A: b\r\n c\r\n", "NoColon\r\n", ": empty\r\n", "X: \x01\r\n", "X: \x80\r\n", "X:y\n", "Ümlaut: x\r\n", "X:\t y \t\r\n", "X: a\rb\r\n", "X: \x00\r\n"))
	}
	switch r.IntN(8) {
	case 0: // until the close
		b.WriteString("\r\n" + body)
	case 1, 2:
		b.WriteString("Transfer-Encoding: " + oneOf(r, "chunked", "chunked", "chunked", "Chunked", "gzip, chunked", "identity", "chunked, chunked", "") + "\r\n\r\n" + chunks(r, body))
	case 3:
		b.WriteString("Transfer-Encoding: chunked\r\nContent-Length: " + n + "\r\n\r\n" + chunks(r, body))
	case 4:
		fmt.Fprintf(&b, "Content-Length: %s\r\nContent-Length: %s\r\n\r\n%s", n, oneOf(r, n, "3"), body)
	default:
		fmt.Fprintf(&b, "Content-Length: %s\r\n\r\n%s", oneOf(r, n, n, n, n, " "+n+" ", "+"+n, "-1", "0"+n, n+", "+n, "", "1x", "99999999999999999999"), body)
	}
	raw = []byte(b.String())
	switch r.IntN(10) {
	case 0: // cut off
		raw = raw[:r.IntN(len(raw)+1)]
	case 1: // one byte is another
		if len(raw) > 0 {
			raw[r.IntN(len(raw))] = byte(r.IntN(256))
		}
	}
	return method, raw
}

func chunks(r *rand.Rand, body string) string {
	var b strings.Builder
	for len(body) > 0 {
		n := 1 + r.IntN(len(body))
		fmt.Fprintf(&b, "%s%s\r\n%s%s", oneOf(r, fmt.Sprintf("%x", n), fmt.Sprintf("%X", n), fmt.Sprintf("0%x", n), fmt.Sprintf("%x", n)), oneOf(r, "", "", "", ";a=b", " ;a", " ", ";\x01", "x"),
			body[:n], oneOf(r, "\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\n", "", "zz"))
		body = body[n:]
	}
	return b.String() + oneOf(r, "0\r\n\r\n", "0\r\n\r\n", "0\r\n\r\n", "0\r\nSum: 1\r\n\r\n", "0\n\n", "", "0\r\n", "0\r\nbad trailer\r\n\r\n", "-0\r\n\r\n")
}

// stricter names why we refuse what net/http takes. Each is a choice that Parser's documentation makes.
func stricter(err error, raw []byte) string {
	switch {
	case errors.Is(err, ErrStatusLine):
		return "status line"
	case errors.Is(err, ErrSwitch):
		return "switch of protocols"
	case errors.Is(err, ErrHeader):
		return "header line"
	case errors.Is(err, ErrFraming):
		return "framing"
	case errors.Is(err, ErrChunk):
		return "chunk"
	case errors.Is(err, ErrTruncated):
		return "truncated"
	}
	return ""
}

// difference compares the parsers on one response. It gives the reason of ours when only it refuses, and
// a problem when they contradict each other.
func difference(r *rand.Rand, method string, raw []byte) (reason, problem string) {
	a, b := parseOurs(r, method, raw), parseTheirs(method, raw)
	switch {
	case a.ok && b.ok:
		if a.status != b.status || a.body != b.body {
			return "", fmt.Sprintf("we read %d with %d bytes, net/http %d with %d", a.status, a.body, b.status, b.body)
		}
		if a.reuse && !b.reuse {
			return "", "we would use the connection again, net/http would not"
		}
	case a.ok:
		if why := laxer(b.err, raw); why == "" {
			return "", "net/http refuses what we take: " + b.err.Error()
		}
	case b.ok:
		if reason = stricter(a.err, raw); reason == "" {
			return "", "we refuse for no reason that has a name: " + a.err.Error()
		}
	}
	return reason, ""
}

// laxer names why net/http refuses what we take; "" for anything else. RFC 9112, 7.1.1, allows white space
// before a chunk extension.
func laxer(err error, raw []byte) string {
	if strings.Contains(err.Error(), "invalid byte in chunk length") && bytes.Contains(raw, []byte(" ;")) {
		return "white space before a chunk extension"
	}
	return ""
}

// TestParserAgainstNetHTTP: whatever both parsers take, they read alike; whatever only we refuse has a
// name; and we take nothing that net/http refuses.
func TestParserAgainstNetHTTP(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	refused, both, problems := map[string]int{}, 0, 0
	for range 200_000 {
		method, raw := generated(r)
		reason, problem := difference(r, method, raw)
		if problem != "" {
			problems++
			if problems < 15 {
				t.Errorf("%s %q: %s", method, raw, problem)
			}
		}
		if reason != "" {
			refused[reason]++
		} else if parseOurs(r, method, raw).ok {
			both++
		}
	}
	if both < 10_000 {
		t.Errorf("only %d responses were taken by both", both)
	}
	for _, reason := range []string{"status line", "switch of protocols", "header line", "framing", "chunk"} {
		if refused[reason] == 0 {
			t.Errorf("nothing was refused for its %s", reason)
		}
	}
}

// FuzzParserAgainstNetHTTP looks for contradictions that the generator does not write.
func FuzzParserAgainstNetHTTP(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		method, raw := generated(r)
		f.Add(uint64(1), method == "HEAD", raw)
	}
	f.Fuzz(func(t *testing.T, seed uint64, head bool, raw []byte) {
		method := "GET"
		if head {
			method = "HEAD"
		}
		if _, problem := difference(rand.New(rand.NewPCG(seed, 1)), method, raw); problem != "" {
			t.Errorf("%s %q: %s", method, raw, problem)
		}
	})
}
