package http2

import (
	"strconv"

	"golang.org/x/net/http2/hpack"
)

// Request is one request. Open keeps no part of it.
type Request struct {
	Tag    uint32 // comes back in the events
	Method string
	Target []byte  // path and query, escaped
	Fields []Field // besides those of the configuration
	Body   []byte
}

// Open queues a request and gives its stream. ErrBusy and ErrDraining say that the connection takes
// none, now or ever again; ErrRequest that it would become something else on the wire. After an error
// nothing is queued.
func (c *Conn) Open(r *Request) (uint32, error) {
	if err := c.admit(); err != nil {
		return 0, err
	}
	start := len(c.out)
	b, ok := c.appendRequest(append(c.out, make([]byte, headerLen)...), r)
	if c.out = b; !ok {
		c.out = b[:start]
		return 0, ErrRequest
	}
	c.shrink = false
	id := c.next
	c.next += 2
	c.ended.set(id, false)
	c.seal(start, id, len(r.Body) == 0)
	s, place := c.streams.add(id)
	s.tag, s.head = r.Tag, r.Method == "HEAD"
	s.credit, s.window = int32(c.cfg.Window), int64(c.peer.window)
	s.bytesOut = int64(len(c.out) - start)
	s.queued = c.written + uint64(c.backlog())
	body := r.Body
	for len(c.sending) == 0 && len(body) > 0 && c.backlog() < maxQueue {
		n := c.data(s, body)
		if n == 0 {
			break
		}
		body = body[n:]
	}
	if len(body) > 0 {
		s.unsent = append(s.unsent, body...)
		c.sending = append(c.sending, place)
	}
	return id, nil
}

// seal turns what was added to the output since start into HEADERS, and CONTINUATION for what one
// frame cannot hold.
func (c *Conn) seal(start int, id uint32, end bool) {
	flags := uint8(flagEndHeaders)
	if end {
		flags |= flagEndStream
	}
	n := len(c.out) - start - headerLen
	if n <= maxFrame {
		appendHeader(c.out[:start], n, frameHeaders, flags, id)
		return
	}
	c.scratch = append(c.scratch[:0], c.out[start+headerLen:]...)
	rest := c.scratch
	c.out = c.out[:start]
	kind := uint8(frameHeaders)
	flags &^= flagEndHeaders
	for len(rest) > 0 {
		n := min(len(rest), maxFrame)
		if n == len(rest) {
			flags |= flagEndHeaders
		}
		c.out = append(appendHeader(c.out, n, kind, flags, id), rest[:n]...)
		rest, kind, flags = rest[n:], frameContinuation, 0
	}
	if cap(c.scratch) > keepOut {
		c.scratch = nil
	}
}

// appendRequest adds the header block of a request. Nothing enters the peer's table, so that a block
// means the same wherever it stands.
func (c *Conn) appendRequest(b []byte, r *Request) ([]byte, bool) {
	if c.shrink {
		b = append(b, 0x20)
	}
	switch r.Method {
	case "GET":
		b = append(b, 0x82)
	case "POST":
		b = append(b, 0x83)
	default:
		if !isToken(r.Method) || r.Method == "CONNECT" {
			return b, false
		}
		b = append(appendInt(append(b, 0x02), 0, 7, len(r.Method)), r.Method...)
	}
	b = append(b, c.client.before...)
	if len(r.Target) == 0 || r.Target[0] != '/' && (r.Method != "OPTIONS" || string(r.Target) != "*") || !visible(r.Target) {
		return b, false
	}
	b = appendString(append(b, 0x04), r.Target)
	b = append(b, c.client.after...)
	for i := range r.Fields {
		f := &r.Fields[i]
		if !sendable(f) {
			return b, false
		}
		b = append(b, never(f.Name))
		b = appendInt(b, 0, 7, len(f.Name))
		for j := range len(f.Name) {
			b = append(b, folded[f.Name[j]])
		}
		b = appendString(b, f.Value)
	}
	// A method that usually has a body says that there is none: servers answer 411 otherwise.
	if len(r.Body) > 0 || r.Method == "POST" || r.Method == "PUT" || r.Method == "PATCH" {
		var digits [20]byte
		b = appendString(append(b, 0x0f, 28-15), strconv.AppendInt(digits[:0], int64(len(r.Body)), 10))
	}
	return b, true
}

// data frames as much of body as one frame and flow control allow; it gives how much. The frame ends
// the stream when it holds the rest.
func (c *Conn) data(s *stream, body []byte) int {
	n := int(min(int64(len(body)), maxFrame, s.window, c.window))
	if n <= 0 {
		return 0
	}
	flags := uint8(0)
	if n == len(body) {
		flags = flagEndStream
	}
	c.out = append(appendHeader(c.out, n, frameData, flags, s.id), body[:n]...)
	s.window -= int64(n)
	c.window -= int64(n)
	s.bytesOut += int64(headerLen + n)
	c.useful()
	return n
}

// pump adds what flow control lets through of the bodies that wait, a frame of each in turn.
func (c *Conn) pump() {
	for stuck := 0; stuck < len(c.sending) && c.window > 0 && c.backlog() < maxQueue; {
		if c.turn >= len(c.sending) {
			c.turn = 0
		}
		s := &c.streams.places[c.sending[c.turn]]
		n := c.data(s, s.unsent[s.sentBody:])
		if n == 0 {
			stuck++
			c.turn++
			continue
		}
		stuck = 0
		if s.sentBody += n; s.waits() {
			c.turn++
		} else {
			c.sending = append(c.sending[:c.turn], c.sending[c.turn+1:]...)
		}
	}
}

func (c *Conn) backlog() int { return len(c.out) - c.at }

// Out is what is to be written. It is valid until the next call of another method. It is to be called
// after each Feed: only here the peer is allowed to send more.
func (c *Conn) Out() []byte {
	c.refill()
	c.pump()
	return c.out[c.at:]
}

// Advance tells that the first n bytes of Out were written.
func (c *Conn) Advance(n int) {
	c.at += n
	c.written += uint64(n)
	switch {
	case c.at == len(c.out):
		if c.out, c.at = c.out[:0], 0; cap(c.out) > keepOut {
			c.out = nil
		}
	case c.at > len(c.out)/2: // the peer takes it slowly: what is written must not pile up
		c.out, c.at = c.out[:copy(c.out, c.out[c.at:])], 0
	}
}

// Cancel gives a request up, e.g. at its time-out: no event will tell of it. It does nothing when the
// stream has ended.
func (c *Conn) Cancel(stream uint32) {
	if s := c.streams.find(stream); s != nil {
		c.reset(s.id, CancelStream)
		c.release(s, true)
	}
}

// Bytes is what an open stream has taken in and given out until now, in frames; zero when it has ended.
func (c *Conn) Bytes(stream uint32) (in, out int64) {
	if s := c.streams.find(stream); s != nil {
		return s.bytesIn, s.bytesOut
	}
	return 0, 0
}

// Streams is the most requests that the connection takes at once: the peer's limit, or ours.
func (c *Conn) Streams() int { return int(min(int64(c.peer.streams), int64(c.cfg.Streams))) }

// Shutdown says goodbye to the peer: nothing can be opened any more, and what is on its way goes on.
func (c *Conn) Shutdown() {
	if c.err == nil && !c.draining {
		c.goAway(NoError)
	}
	c.draining = true
}

func (c *Conn) goAway(code Code) {
	c.out = appendHeader(c.out, 8, frameGoAway, 0, 0)
	c.out = append(c.out, 0, 0, 0, 0, byte(code>>24), byte(code>>16), byte(code>>8), byte(code))
}

func (c *Conn) reset(id uint32, code Code) {
	c.out = appendWord(c.out, frameReset, id, uint32(code))
}

// sendable tells whether a field may stand in a request as it is.
func sendable(f *Field) bool {
	if !isToken(f.Name) || !plain(f.Value) {
		return false
	}
	switch len(f.Name) { // the lengths of the names below, so that most names are not folded
	case 2, 4, 6, 7, 10, 14, 16, 17:
	default:
		return true
	}
	switch {
	case is(f.Name, "te"):
		return string(f.Value) == "trailers"
	case is(f.Name, "host"), is(f.Name, "expect"), is(f.Name, "upgrade"), is(f.Name, "connection"), is(f.Name, "keep-alive"),
		is(f.Name, "content-length"), is(f.Name, "proxy-connection"), is(f.Name, "transfer-encoding"):
		return false
	}
	return true
}

// never gives the first byte of a literal with a new name. What is secret is marked so that no proxy
// puts it into a table (RFC 7541, 7.1.3).
func never(name string) byte {
	switch len(name) {
	case 6, 13, 19:
		if is(name, "cookie") || is(name, "authorization") || is(name, "proxy-authorization") {
			return 0x10
		}
	}
	return 0
}

// is compares a name in any case with a word in lower case.
func is(name, word string) bool {
	if len(name) != len(word) {
		return false
	}
	for i := range len(name) {
		if folded[name[i]] != word[i] {
			return false
		}
	}
	return true
}

func isToken(s string) bool {
	for i := range len(s) {
		if folded[s[i]] == 0 {
			return false
		}
	}
	return s != ""
}

// visible tells whether b holds neither control characters nor spaces nor anything but ASCII.
func visible(b []byte) bool {
	for _, c := range b {
		if c <= ' ' || c >= 0x7f {
			return false
		}
	}
	return true
}

func lower(name string) string {
	b := []byte(name)
	for i, c := range b {
		b[i] = folded[c]
	}
	return string(b)
}

// appendInt adds a number behind the given bits of its first byte (RFC 7541, 5.1).
func appendInt(b []byte, first byte, prefix uint, n int) []byte {
	mask := 1<<prefix - 1
	if n < mask {
		return append(b, first|byte(n))
	}
	b = append(b, first|byte(mask))
	for n -= mask; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}

// appendString adds a literal as it is: what differs in each request is not worth compressing.
func appendString(b, s []byte) []byte {
	return append(appendInt(b, 0, 7, len(s)), s...)
}

// appendField adds a field that is the same in each request as short as the static table and the
// Huffman code make it.
func appendField(b []byte, name string, value []byte) []byte {
	index := 0
	for i, f := range static {
		if string(f.name) != name {
			continue
		}
		if string(f.value) == string(value) {
			return appendInt(b, 0x80, 7, i+1)
		}
		if index == 0 {
			index = i + 1
		}
	}
	b = appendInt(b, never(name), 4, index)
	if index == 0 {
		b = appendShort(b, name)
	}
	return appendShort(b, string(value))
}

func appendShort(b []byte, s string) []byte {
	if n := hpack.HuffmanEncodeLength(s); n < uint64(len(s)) {
		return hpack.AppendHuffmanString(appendInt(b, 0x80, 7, int(n)), s)
	}
	return appendString(b, []byte(s))
}
