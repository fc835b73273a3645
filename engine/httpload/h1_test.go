package httpload

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// outcome is everything that a parser says of a stream.
type outcome struct {
	used, status int
	body         int64
	done, reuse  bool
	err          error
}

var errInvalid = errors.New("any refusal: they are one outcome")

// feed gives a stream to a parser in pieces of the given sizes, the last of which repeats.
func feed(p *Parser, method string, stream []byte, sizes ...int) outcome {
	p.Reset(method)
	var o outcome
	for i := 0; len(stream) > 0 && !o.done && o.err == nil; i++ {
		n := min(len(stream), max(1, sizes[min(i, len(sizes)-1)]))
		var k int
		k, o.done, o.err = p.Feed(stream[:n])
		o.used += k
		stream = stream[n:]
	}
	if !o.done && o.err == nil && len(stream) == 0 {
		o.err = p.EOF()
		o.done = o.err == nil
	}
	o.status, o.body, o.reuse = p.Status(), p.Body(), o.err == nil && p.Reusable()
	if o.err != nil { // what an interrupted parse has counted, and what it met first, depends on the cut
		o.used, o.body, o.status = 0, 0, 0
		if !errors.Is(o.err, ErrTruncated) {
			o.err = errInvalid
		}
	}
	return o
}

func seeds() [][]byte {
	return [][]byte{
		[]byte(fine), []byte("HTTP/1.1 200 OK\r\n\r\nrest"), []byte("HTTP/1.0 204 X\r\nConnection: keep-alive\r\n\r\n"),
		[]byte("HTTP/1.1 100 Continue\r\n\r\n" + fine + "more"),
		[]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\nok\r\n00\r\nT: 1\r\n\r\n"),
		[]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nokX"), []byte("HTTP/1.1 200 OK\nA:b\r\n\r\n"),
		[]byte("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n"), []byte("\x16\x03\x01\x02"), {}, append(bytes.Repeat([]byte("\x16"), 1500), '\n'),
	}
}

// FuzzParser: no stream makes it panic or take more than it is given, and how the stream is cut
// changes nothing.
func FuzzParser(f *testing.F) {
	for _, s := range seeds() {
		f.Add(s, false, uint8(1))
		f.Add(s, true, uint8(3))
	}
	f.Fuzz(func(t *testing.T, stream []byte, head bool, size uint8) {
		method := "GET"
		if head {
			method = "HEAD"
		}
		p := NewParser(1<<10, 1<<12)
		whole := feed(p, method, stream, max(1, len(stream)))
		cut := feed(p, method, stream, int(size))
		if whole != cut {
			t.Fatalf("in one piece %+v, in pieces of %d %+v", whole, size, cut)
		}
		if whole.used > len(stream) || whole.body > int64(len(stream)) || cap(p.line) > 8<<10 {
			t.Fatalf("%+v of %d bytes, line buffer %d", whole, len(stream), cap(p.line))
		}
		agree(t, whole, stream, method)
	})
}

// agree compares with net/http: whatever this parser accepts, that one accepts too and reads the same.
func agree(t *testing.T, o outcome, stream []byte, method string) {
	if !o.done {
		return
	}
	r := bufio.NewReader(bytes.NewReader(stream))
	for {
		resp, err := http.ReadResponse(r, &http.Request{Method: method})
		if err != nil {
			t.Fatalf("accepted with %+v, and net/http says %v", o, err)
		}
		if resp.StatusCode < 200 {
			continue
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != o.status || int64(len(body)) != o.body {
			t.Fatalf("accepted with %+v; net/http: status %d, body %d, %v", o, resp.StatusCode, len(body), err)
		}
		if o.reuse && resp.Close {
			t.Fatalf("net/http would close the connection: %+v", o)
		}
		return
	}
}

// response draws a valid response and what must be read of it.
func response(t *rapid.T) (stream []byte, method string, status int, body int) {
	var b strings.Builder
	for range rapid.IntRange(0, 3).Draw(t, "interim") {
		b.WriteString("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
	}
	method = rapid.SampledFrom([]string{"GET", "HEAD", "POST"}).Draw(t, "method")
	status = rapid.SampledFrom([]int{200, 201, 204, 301, 304, 404, 500, 503}).Draw(t, "status")
	body = rapid.IntRange(0, 3000).Draw(t, "body")
	fmt.Fprintf(&b, "HTTP/1.1 %d Reason here\r\n", status)
	for i := range rapid.IntRange(0, 5).Draw(t, "headers") {
		fmt.Fprintf(&b, "X-%d:\t%s \r\n", i, strings.Repeat("v", rapid.IntRange(0, 200).Draw(t, "value")))
	}
	none := method == "HEAD" || status == 204 || status == 304
	if rapid.Bool().Draw(t, "chunked") && status != 204 {
		b.WriteString("transfer-encoding: Chunked\r\n\r\n")
		if !none {
			for left := body; left > 0; {
				n := rapid.IntRange(1, left).Draw(t, "chunk")
				fmt.Fprintf(&b, "%x\r\n%s\r\n", n, strings.Repeat("b", n))
				left -= n
			}
			b.WriteString("0\r\nTrailer: x\r\n\r\n")
		}
	} else {
		fmt.Fprintf(&b, "CONTENT-LENGTH: %d\r\n\r\n", body)
		if !none {
			b.WriteString(strings.Repeat("b", body))
		}
	}
	if none {
		body = 0
	}
	return []byte(b.String()), method, status, body
}

// TestValidResponses: what net/http reads of a valid response is what this parser reads, however the
// stream is cut and whatever follows it.
func TestValidResponses(t *testing.T) {
	p := NewParser(0, 0)
	rapid.Check(t, func(t *rapid.T) {
		stream, method, status, body := response(t)
		follow := rapid.SampledFrom([]string{"", "x", fine}).Draw(t, "follow")
		sizes := rapid.SliceOfN(rapid.IntRange(1, 700), 1, 20).Draw(t, "sizes")
		o := feed(p, method, append(stream, follow...), sizes...)
		want := outcome{used: len(stream), status: status, body: int64(body), done: true, reuse: true}
		if o != want {
			t.Fatalf("%+v, want %+v", o, want)
		}
		r := bufio.NewReader(bytes.NewReader(stream))
		for {
			resp, err := http.ReadResponse(r, &http.Request{Method: method})
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode < 200 {
				continue
			}
			n, err := io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			if err != nil || resp.StatusCode != status || n != int64(body) {
				t.Fatalf("net/http reads status %d and %d bytes (%v), want %d and %d", resp.StatusCode, n, err, status, body)
			}
			break
		}
	})
}

func TestParserDoesNotAllocate(t *testing.T) {
	p := NewParser(0, 0)
	stream := []byte("HTTP/1.1 200 OK\r\nServer: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n")
	whole := func() { feed(p, "GET", stream, len(stream)) }
	pieces := func() { feed(p, "GET", stream, 7) }
	pieces()
	for name, f := range map[string]func(){"whole": whole, "pieces": pieces} {
		if n := testing.AllocsPerRun(200, f); n != 0 {
			t.Errorf("%s: %v allocations for each response", name, n)
		}
	}
}

func TestRequestBytes(t *testing.T) {
	c := Config{Host: "shop.test", UserAgent: "seatrial/1", Headers: []Header{{"X-A", "b"}}, Seed: 7, Trace: 0.25}
	w := newWriter(&c, 1)
	sampled := 0
	seen := map[string]bool{}
	for i := range uint64(4000) {
		r := &Request{Method: "PUT", Target: []byte("/a?b=c")}
		req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(w.append(nil, i, r))))
		if err != nil {
			t.Fatal(err)
		}
		trace := req.Header.Get("Traceparent")
		if req.Method != "PUT" || req.RequestURI != "/a?b=c" || req.Host != "shop.test" || req.Header.Get("X-A") != "b" ||
			req.UserAgent() != "seatrial/1" || req.ContentLength != 0 || len(trace) != 55 || seen[trace[3:35]] {
			t.Fatalf("request %d: %+v", i, req)
		}
		seen[trace[3:35]] = true
		if strings.HasSuffix(trace, "-01") {
			sampled++
		}
	}
	if sampled < 850 || sampled > 1150 {
		t.Errorf("%d of 4,000 are sampled, want about a quarter", sampled)
	}
	buf := make([]byte, 0, 1024)
	r := &Request{Method: "GET", Target: []byte("/")}
	if n := testing.AllocsPerRun(100, func() { buf = w.append(buf[:0], 3, r) }); n != 0 {
		t.Errorf("%v allocations for each request", n)
	}
}

func TestSendable(t *testing.T) {
	for _, r := range []Request{{}, {Method: "GET"}, {Method: "GET", Target: []byte("a")}, {Method: "GET", Target: []byte("/a b")},
		{Method: "GET", Target: []byte("/\r\nX: y")}, {Method: "G T", Target: []byte("/")}, {Method: "CONNECT", Target: []byte("/")},
		{Method: "GET", Target: []byte("/"), Refuse: true}, {Method: "GET", Target: []byte("/\xff")}} {
		if sendable(&r) {
			t.Errorf("%q %q would be sent", r.Method, r.Target)
		}
	}
	if !sendable(&Request{Method: "GET", Target: []byte("/a?b=%20")}) {
		t.Error("a proper request would not be sent")
	}
}

func BenchmarkParser(b *testing.B) {
	p := NewParser(0, 0)
	stream := []byte("HTTP/1.1 200 OK\r\nServer: x\r\nDate: Tue, 01 Dec 2026 06:00:00 GMT\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\nok")
	b.ReportAllocs()
	b.SetBytes(int64(len(stream)))
	for b.Loop() {
		p.Reset("GET")
		if _, done, err := p.Feed(stream); !done || err != nil {
			b.Fatal(done, err)
		}
	}
}
