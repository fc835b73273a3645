package http2

import "math"

// headersFrame takes HEADERS, whole.
func (c *Conn) headersFrame(p []byte) {
	f := &c.frame
	if f.has(flagPadded) {
		if len(p) == 0 {
			c.fail(FrameSizeError, "HEADERS is too short for its padding")
			return
		}
		n := int(p[0])
		if p = p[1:]; n > len(p) {
			c.fail(ProtocolError, "the padding is longer than the frame")
			return
		}
		p = p[:len(p)-n]
	}
	if f.has(flagPriority) {
		if len(p) < 5 {
			c.fail(FrameSizeError, "HEADERS is too short for its priority")
			return
		}
		p = p[5:]
	}
	if s := c.streams.find(f.stream); s != nil {
		s.bytesIn += int64(f.length)
		c.useful()
	} else if c.late(); c.err != nil {
		return
	}
	if f.has(flagEndHeaders) {
		c.block(f.stream, p, f.has(flagEndStream))
		return
	}
	c.pending, c.pendEnd = f.stream, f.has(flagEndStream)
	c.fragment = append(c.fragment[:0], p...)
}

func (c *Conn) continuation(p []byte) {
	if s := c.streams.find(c.frame.stream); s != nil {
		s.bytesIn += int64(len(p))
	}
	if c.wasted(); c.err != nil {
		return
	}
	if len(c.fragment)+len(p) > max(c.cfg.MaxHeader, maxFrame) {
		c.fail(EnhanceYourCalm, "a header block exceeds the limit")
		return
	}
	c.fragment = append(c.fragment, p...)
	if c.frame.has(flagEndHeaders) {
		id := c.pending
		c.pending = 0
		c.block(id, c.fragment, c.pendEnd)
		c.fragment = trimmed(c.fragment)
	}
}

// block decodes a header block. That of a stream which is not open any more is decoded too, because
// it may change the table.
func (c *Conn) block(id uint32, b []byte, end bool) {
	s := c.streams.find(id)
	l := list{limit: c.cfg.MaxHeader, length: -1, code: ProtocolError}
	if s != nil {
		l.used, l.trailer = s.headers, s.final
	}
	n, err := c.dec.begin(b)
	for b = b[n:]; err == nil && len(b) > 0; b = b[n:] {
		var f field
		if f, n, err = c.dec.next(b); err != nil {
			break
		}
		if l.add(&f); l.used > bomb*l.limit {
			c.fail(EnhanceYourCalm, "a header block expands beyond all bounds")
			return
		}
		if s != nil && c.observer != nil && l.err == nil && f.class != status && !l.trailer && l.status >= 200 {
			c.observer.Field(s.tag, f.name, f.value)
		}
	}
	c.dec.name, c.dec.value = trimmed(c.dec.name), trimmed(c.dec.value)
	switch {
	case err != nil:
		c.fail(CompressionError, "a header block cannot be decoded")
	case s != nil:
		s.headers = l.used
		c.received(s, &l, end)
	}
}

// received acts on a whole list of fields.
func (c *Conn) received(s *stream, l *list, end bool) {
	err, code := l.err, l.code
	switch {
	case err != nil:
	case l.trailer && !end:
		err = ErrOrder
	case l.trailer:
		c.complete(s)
		return
	case l.status == 0:
		err = ErrPseudo
	case l.status == 101:
		err = ErrPseudo // there is no switching of protocols in HTTP/2
	case l.status < 200 && end:
		err = ErrOrder
	case l.status < 200:
		if s.interim++; s.interim <= maxInterim {
			return
		}
		err, code = ErrInterim, CancelStream
	}
	if err != nil {
		c.invalid(s, code, err)
		return
	}
	s.final, s.status, s.length = true, l.status, l.length
	s.bare = s.head || l.status == 204 || l.status == 304
	c.event(s, Event{Kind: Headers})
	switch {
	case end:
		c.complete(s)
	case !s.bare && s.length > c.cfg.MaxBody:
		c.invalid(s, CancelStream, ErrBody)
	}
}

// list is what matters of one header block.
type list struct {
	limit   int
	used    int
	trailer bool
	regular bool // a field that is no pseudo-header was seen
	status  uint16
	length  int64
	err     error
	code    Code // to give the stream up with, should there be an error
}

// add takes one field; the first error stays. Beyond the limit nothing is looked at any more.
func (l *list) add(f *field) {
	if l.used += f.size(); l.err == nil && l.used > l.limit {
		l.err, l.code = ErrHeaders, CancelStream
	}
	if l.err != nil {
		return
	}
	switch f.class {
	case ordinary:
	case status:
		l.err = l.setStatus(f.value)
		return
	case length:
		if !l.trailer {
			l.err = l.setLength(f.value)
		}
	case te:
		if string(f.value) != "trailers" {
			l.err = ErrConnection
		}
	case pseudo:
		l.err = ErrPseudo
	case hop:
		l.err = ErrConnection
	default:
		l.err = ErrField
	}
	l.regular = true
}

// setStatus takes the one pseudo-header of a response: once, first, three digits.
func (l *list) setStatus(v []byte) error {
	if l.trailer || l.regular || l.status != 0 || len(v) != 3 {
		return ErrPseudo
	}
	n := 0
	for _, c := range v {
		if c < '0' || c > '9' {
			return ErrPseudo
		}
		n = 10*n + int(c-'0')
	}
	if n < 100 || n > 599 {
		return ErrPseudo
	}
	l.status = uint16(n)
	return nil
}

func (l *list) setLength(v []byte) error {
	if len(v) == 0 {
		return ErrLength
	}
	var n int64
	for _, c := range v {
		if c < '0' || c > '9' || n > (math.MaxInt64-9)/10 {
			return ErrLength
		}
		n = 10*n + int64(c-'0')
	}
	if l.length >= 0 && l.length != n {
		return ErrLength
	}
	l.length = n
	return nil
}

// complete ends a response at the peer's END_STREAM. One that comes before the whole request is sent
// is an answer all the same; the rest of the request is given up (RFC 9113, 8.1).
func (c *Conn) complete(s *stream) {
	waits := s.waits()
	if !s.bare && s.length >= 0 && s.body != s.length {
		if waits {
			c.reset(s.id, ProtocolError)
		}
		c.end(s, Event{Kind: Invalid, Code: ProtocolError, Err: ErrLength}, false)
		return
	}
	if waits {
		c.reset(s.id, CancelStream)
	}
	c.end(s, Event{Kind: End}, false)
}

// invalid gives a malformed response up, and only it.
func (c *Conn) invalid(s *stream, code Code, err error) {
	c.reset(s.id, code)
	c.end(s, Event{Kind: Invalid, Code: code, Err: err}, true)
}

// end adds the event that ends a request; early when the peer may still send frames on its stream.
func (c *Conn) end(s *stream, e Event, early bool) {
	c.event(s, e)
	c.release(s, early)
}

// event adds an event with what is known of its stream.
func (c *Conn) event(s *stream, e Event) {
	e.Stream, e.Tag, e.Status = s.id, s.tag, s.status
	e.Body, e.BytesIn, e.BytesOut = s.body, s.bytesIn, s.bytesOut
	c.events = append(c.events, e)
}

// release frees the place of a stream.
func (c *Conn) release(s *stream, early bool) {
	c.ended.set(s.id, early)
	if s.waits() {
		for i, place := range c.sending {
			if c.streams.places[place].id == s.id {
				c.sending = append(c.sending[:i], c.sending[i+1:]...)
				break
			}
		}
	}
	c.streams.remove(s)
}
