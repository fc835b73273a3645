package http2

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	xhttp2 "golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// server writes what a server sends, by an implementation that is not ours.
type server struct {
	buf bytes.Buffer
	*xhttp2.Framer
	enc   *hpack.Encoder
	block bytes.Buffer
}

func newServer() *server {
	s := &server{}
	s.Framer = xhttp2.NewFramer(&s.buf, nil)
	s.AllowIllegalWrites = true
	s.enc = hpack.NewEncoder(&s.block)
	return s
}

// fields encodes "name: value" pairs into a header block.
func (s *server) fields(pairs ...string) []byte {
	s.block.Reset()
	for _, p := range pairs {
		i := strings.Index(p[1:], ":") + 1
		must(s.enc.WriteField(hpack.HeaderField{Name: p[:i], Value: strings.TrimPrefix(p[i+1:], " ")}))
	}
	return bytes.Clone(s.block.Bytes())
}

// headers writes one HEADERS frame.
func (s *server) headers(stream uint32, end bool, pairs ...string) {
	must(s.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: stream, EndStream: end, EndHeaders: true, BlockFragment: s.fields(pairs...)}))
}

// raw writes a frame of any shape.
func (s *server) raw(kind, flags uint8, stream uint32, payload []byte) {
	must(s.WriteRawFrame(xhttp2.FrameType(kind), xhttp2.Flags(flags), stream, payload))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func client(t testing.TB, change func(*Config)) *Client {
	t.Helper()
	c := Config{Scheme: "http", Authority: "shop.test", Fields: []Field{{"User-Agent", []byte("seatrial")}, {"x-run", []byte("7")}}}
	if change != nil {
		change(&c)
	}
	k, err := NewClient(c)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func open(t testing.TB, c *Conn, r Request) uint32 {
	t.Helper()
	id, err := c.Open(&r)
	if err != nil {
		t.Fatalf("%s %s: %v", r.Method, r.Target, err)
	}
	return id
}

func get(tag uint32) Request { return Request{Tag: tag, Method: "GET", Target: []byte("/")} }

// told is an event in words.
func told(e Event) string {
	switch e.Kind {
	case FirstByte:
		return fmt.Sprintf("first %d", e.Stream)
	case Headers:
		return fmt.Sprintf("headers %d %d", e.Stream, e.Status)
	case End:
		return fmt.Sprintf("end %d %d body %d", e.Stream, e.Status, e.Body)
	case Reset:
		return fmt.Sprintf("reset %d %v", e.Stream, e.Code)
	case Refused:
		return fmt.Sprintf("refused %d %v", e.Stream, e.Code)
	case Invalid:
		return fmt.Sprintf("invalid %d: %v", e.Stream, e.Err)
	case Broken:
		return fmt.Sprintf("broken %d", e.Stream)
	case GoAway:
		return fmt.Sprintf("goaway %d %v", e.Last, e.Code)
	default:
		return fmt.Sprintf("unknown kind %d", e.Kind)
	}
}

func tell(events []Event) string {
	var words []string
	for _, e := range events {
		words = append(words, told(e))
	}
	return strings.Join(words, "; ")
}

// sent reads the output of a connection as frames, in words, by an implementation that is not ours.
// The preface and what comes with it are left out.
func sent(t testing.TB, c *Conn) string {
	t.Helper()
	out := c.Out()
	out, _ = bytes.CutPrefix(out, c.client.start)
	fr := xhttp2.NewFramer(nil, bytes.NewReader(out))
	fr.SetMaxReadFrameSize(maxFrame)
	var words []string
	for {
		f, err := fr.ReadFrame()
		if err != nil {
			break
		}
		switch f := f.(type) {
		case *xhttp2.RSTStreamFrame:
			words = append(words, fmt.Sprintf("RST %d %v", f.StreamID, f.ErrCode))
		case *xhttp2.GoAwayFrame:
			words = append(words, fmt.Sprintf("GOAWAY %v", f.ErrCode))
		case *xhttp2.WindowUpdateFrame:
			words = append(words, fmt.Sprintf("WINDOW %d %d", f.StreamID, f.Increment))
		case *xhttp2.SettingsFrame:
			words = append(words, "SETTINGS ack")
		case *xhttp2.PingFrame:
			words = append(words, fmt.Sprintf("PING ack %q", f.Data[:]))
		case *xhttp2.DataFrame:
			words = append(words, fmt.Sprintf("DATA %d %d %v", f.StreamID, f.Length, f.StreamEnded()))
		case *xhttp2.HeadersFrame:
			words = append(words, fmt.Sprintf("HEADERS %d", f.StreamID))
		default:
			words = append(words, f.Header().Type.String())
		}
	}
	return strings.Join(words, "; ")
}

// feed gives a stream to a connection in pieces of the given sizes, the last of which repeats.
func feed(c *Conn, b []byte, sizes ...int) ([]Event, error) {
	var events []Event
	var err error
	for i := 0; len(b) > 0 && err == nil; i++ {
		n := min(len(b), max(1, sizes[min(i, len(sizes)-1)]))
		piece := bytes.Clone(b[:n])
		events, err = c.Feed(piece, events)
		for j := range piece { // nothing may be kept of it
			piece[j] = 0xff
		}
		b = b[n:]
	}
	return events, err
}
