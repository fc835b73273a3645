package http2

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	xhttp2 "golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// style is how a server writes the answer to request i, on a stream.
type style struct {
	name    string
	request func(i int) Request
	answer  func(s *server, stream uint32, i int)
	cut     int // the server's bytes come in pieces of this size; 0 means whole
}

func page(i int) Request {
	r := get(uint32(i))
	r.Fields = []Field{{"traceparent", []byte("00-0123456789abcdef0123456789abcdef-0123456789abcdef-00")}}
	return r
}

func post(n int) func(int) Request {
	body := make([]byte, n)
	return func(i int) Request {
		return Request{Tag: uint32(i), Method: "POST", Target: []byte("/orders"), Body: body}
	}
}

// nginxBlock writes literals that enter the table anew each time, as nginx does.
func nginxBlock(i int) []byte {
	b := []byte{0x88}
	for _, f := range [][2]string{{"\x76", "nginx/1.26.3"}, {"\x61", fmt.Sprintf("Mon, 01 Dec 2026 12:%02d:%02d GMT", i/60%60, i%60)},
		{"\x5f", "text/html"}, {"\x5c", "5"}, {"\x6c", fmt.Sprintf("Mon, 01 Dec %d", i)}} {
		b = append(b, f[0]...)
		b = hpack.AppendHuffmanString(appendInt(b, 0x80, 7, int(hpack.HuffmanEncodeLength(f[1]))), f[1])
	}
	return append(b, "\x00\x04etag\x0d\"5f3a-1a2b3c\""...)
}

func styles() []style {
	hello := []byte("hello")
	indexed := func(s *server, stream uint32, _ int) {
		s.headers(stream, false, ok, "server: chandlery", "content-type: application/json", "content-length: 5", "date: Tue, 01 Dec 2026 12:00:00 GMT")
		must(s.WriteData(stream, true, hello))
	}
	nginx := func(s *server, stream uint32, i int) {
		s.raw(frameHeaders, flagEndHeaders, stream, nginxBlock(i))
		must(s.WriteData(stream, true, hello))
	}
	return []style{
		{"from the table", page, indexed, 0},
		{"new entries each time", page, nginx, 0},
		{"in pieces", page, nginx, 7},
		{"large", page, func(s *server, stream uint32, i int) {
			s.headers(stream, false, ok, "x-request-id: "+strings.Repeat("ab", i%50))
			for range 5 {
				must(s.WriteData(stream, false, make([]byte, 16384)))
			}
			must(s.WriteData(stream, true, nil))
		}, 1 << 14},
		{"small bodies", post(300), indexed, 0},
		{"bodies that wait for the window", post(100_000), func(s *server, stream uint32, i int) {
			must(s.WriteWindowUpdate(stream, 50_000))
			must(s.WriteWindowUpdate(0, 100_000))
			indexed(s, stream, i)
		}, 13},
		{"refused", page, func(s *server, stream uint32, _ int) {
			must(s.WriteRSTStream(stream, xhttp2.ErrCodeRefusedStream))
			must(s.WritePing(false, [8]byte{1}))
		}, 0},
	}
}

// session is a style prepared: the bytes of n answers, and a connection that is greeted.
type session struct {
	style
	conn    *Conn
	answers [][]byte
	events  []Event
	i       int
	ends    int
}

const warm = 400 // until every buffer has grown, the decoder's table included

func newSession(t testing.TB, st style, n int) *session {
	t.Helper()
	s := newServer()
	x := &session{style: st, conn: client(t, func(c *Config) { c.Window, c.ConnWindow = 65535, 1<<20 }).Conn(nil)}
	must(s.WriteSettings())
	must(s.WriteWindowUpdate(0, 1<<20))
	x.feed(t, s.buf.Bytes())
	for i := range n {
		s.buf.Reset()
		st.answer(s, uint32(2*i+1), i)
		x.answers = append(x.answers, bytes.Clone(s.buf.Bytes()))
	}
	return x
}

func (x *session) feed(t testing.TB, b []byte) {
	for len(b) > 0 {
		n := len(b)
		if x.cut > 0 {
			n = min(n, x.cut)
		}
		var err error
		if x.events, err = x.conn.Feed(b[:n], x.events[:0]); err != nil {
			t.Fatal(err)
		}
		for i := range x.events {
			if k := x.events[i].Kind; k == End || k == Refused {
				x.ends++
			}
		}
		b = b[n:]
		x.flush()
	}
}

func (x *session) flush() {
	for out := x.conn.Out(); len(out) > 0; out = x.conn.Out() {
		x.conn.Advance(len(out))
	}
}

// next sends a request and takes its answer.
func (x *session) next(t testing.TB, r *Request) {
	if _, err := x.conn.Open(r); err != nil {
		t.Fatal(err)
	}
	x.flush()
	x.feed(t, x.answers[x.i])
	x.i++
}

// TestNothingIsAllocated: in steady state, whatever the server's way to write headers.
func TestNothingIsAllocated(t *testing.T) {
	for _, st := range styles() {
		t.Run(st.name, func(t *testing.T) {
			const n = 200
			x := newSession(t, st, warm+n+1)
			r := st.request(0)
			for range warm {
				x.next(t, &r)
			}
			if got := testing.AllocsPerRun(n, func() { x.next(t, &r) }); got != 0 {
				t.Errorf("%v allocations for each request", got)
			}
			if x.ends != warm+n+1 || !x.conn.Idle() {
				t.Errorf("%d of %d requests ended", x.ends, warm+n+1)
			}
		})
	}
}

// BenchmarkExchange is one request and its answer, of two frames in the small styles.
func BenchmarkExchange(b *testing.B) {
	for _, st := range styles() {
		b.Run(strings.ReplaceAll(st.name, " ", "-"), func(b *testing.B) {
			b.ReportAllocs()
			const n = 1000
			r := st.request(0)
			frames, size := 0, 0
			for i := 0; i < b.N; {
				b.StopTimer()
				x := newSession(b, st, n)
				for _, a := range x.answers {
					size += len(a)
					frames += countFrames(a)
				}
				b.StartTimer()
				for ; x.i < n && i < b.N; i++ {
					x.next(b, &r)
				}
			}
			sessions := (b.N + n - 1) / n
			b.ReportMetric(float64(frames)/float64(sessions*n), "frames/op")
			b.ReportMetric(float64(frames)/float64(sessions*n)*float64(b.N)/b.Elapsed().Seconds(), "frames/s")
			b.SetBytes(int64(size / (sessions * n)))
		})
	}
}

func countFrames(b []byte) (n int) {
	for len(b) > 0 {
		b = b[headerLen+int(parseHeader(b).length):]
		n++
	}
	return n
}

// BenchmarkDecoder compares ours with that of x/net on what nginx writes.
func BenchmarkDecoder(b *testing.B) {
	var blocks [][]byte
	size := 0
	for i := range 1000 {
		blocks = append(blocks, nginxBlock(i))
		size += len(blocks[i])
	}
	b.Run("ours", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(size / len(blocks)))
		d := newDecoder()
		for i := 0; b.Loop(); i++ {
			for p := blocks[i%len(blocks)]; len(p) > 0; {
				_, n, err := d.next(p)
				if err != nil {
					b.Fatal(err)
				}
				p = p[n:]
			}
		}
	})
	b.Run("x-net", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(size / len(blocks)))
		n := 0
		d := hpack.NewDecoder(tableSize, func(hpack.HeaderField) { n++ })
		for i := 0; b.Loop(); i++ {
			if _, err := d.Write(blocks[i%len(blocks)]); err != nil {
				b.Fatal(err)
			}
			if err := d.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
