package http2

import "encoding/binary"

// frameReader is where Feed stands in the stream of frames.
type frameReader struct {
	head    [headerLen]byte
	gotHead int
	inFrame bool
	frame   header
	left    int // bytes of the payload to come
	part    []byte
	padding int // of DATA: bytes at its end that are no data; -1 until the length is known
}

// Feed takes bytes that were read, all of them, and adds what happened to events. How the bytes are
// cut changes nothing. An error is a *ConnError and ends the connection: every request on its way is
// Broken, and the output holds a GOAWAY to send before closing.
func (c *Conn) Feed(b []byte, events []Event) ([]Event, error) {
	c.events = events
	for c.err == nil && len(b) > 0 {
		b = c.step(b)
	}
	events, c.events = c.events, nil
	if c.err != nil {
		return events, c.err
	}
	return events, nil
}

// Close tells that the transport ended, and adds how the requests on their way end: Refused when the
// transport did not even take the whole header block of the request, and Broken otherwise.
func (c *Conn) Close(events []Event) []Event {
	c.events = events
	c.draining = true
	c.abandon()
	events, c.events = c.events, nil
	return events
}

func (c *Conn) abandon() {
	for i := range c.streams.places {
		s := &c.streams.places[i]
		switch {
		case s.id == 0:
		case s.queued > c.written && !s.answered:
			c.end(s, Event{Kind: Refused}, true)
		default:
			c.end(s, Event{Kind: Broken}, true)
		}
	}
}

// fail ends the connection.
func (c *Conn) fail(code Code, reason string) {
	if c.err != nil {
		return
	}
	c.err = &ConnError{code, reason}
	c.abandon()
	c.goAway(code)
}

// step takes a part of b, which is not empty, and gives the rest.
func (c *Conn) step(b []byte) []byte {
	if !c.inFrame {
		n := copy(c.head[c.gotHead:], b)
		b = b[n:]
		if c.gotHead += n; c.gotHead < headerLen {
			return b
		}
		c.gotHead, c.inFrame = 0, true
		c.frame = parseHeader(c.head[:])
		c.left = int(c.frame.length)
		if c.begin(); c.err != nil {
			return b
		}
	}
	n := min(len(b), c.left)
	piece := b[:n]
	c.left -= n
	switch {
	case c.frame.kind == frameData:
		c.dataPiece(piece)
	case c.frame.kind > frameContinuation: // unknown: ignored
	case c.left == 0 && len(c.part) == 0:
		c.handle(piece)
	default:
		c.part = append(c.part, piece...)
		if c.left == 0 {
			c.handle(c.part)
			c.part = trimmed(c.part)
		}
	}
	if c.left == 0 && c.err == nil {
		c.inFrame = false
		if c.frame.kind == frameData {
			c.dataEnd()
		}
	}
	return b[n:]
}

// trimmed empties a buffer and gives a large one back.
func trimmed(b []byte) []byte {
	if cap(b) > keepBuffer {
		return nil
	}
	return b[:0]
}

// begin judges a frame by its head.
func (c *Conn) begin() {
	f := &c.frame
	switch {
	case !c.greeted && (f.kind != frameSettings || f.has(flagAck)):
		c.fail(ProtocolError, "the peer does not begin with SETTINGS")
	case f.length > maxFrame:
		c.fail(FrameSizeError, "a frame exceeds the size that we announced")
	case c.pending != 0 && (f.kind != frameContinuation || f.stream != c.pending):
		c.fail(ProtocolError, "a frame interrupts a header block")
	case f.kind == frameHeaders:
		if s := c.own(); s != nil && !s.answered {
			s.answered = true
			c.event(s, Event{Kind: FirstByte})
		}
	case f.kind == frameContinuation:
		if c.pending == 0 {
			c.fail(ProtocolError, "CONTINUATION without a header block")
			return
		}
		c.own()
	case f.kind == frameData:
		c.dataBegin()
	case f.kind > frameContinuation:
		c.wasted()
	}
}

// own gives the stream of the frame, if it is open, and counts the frame's head.
func (c *Conn) own() *stream {
	s := c.streams.find(c.frame.stream)
	if s != nil {
		s.bytesIn += headerLen
	}
	return s
}

// dataBegin checks DATA before its first byte, and takes it out of the windows as a whole.
func (c *Conn) dataBegin() {
	f := &c.frame
	c.padding = 0
	if c.credit -= int64(f.length); c.credit < 0 {
		c.fail(FlowControlError, "the peer exceeds the window of the connection")
		return
	}
	c.taken += int64(f.length)
	s := c.own()
	if s == nil {
		c.late()
		return
	}
	if s.credit -= int32(f.length); s.credit < 0 {
		c.invalid(s, FlowControlError, ErrWindow)
		return
	}
	switch {
	case !s.final:
		c.invalid(s, ProtocolError, ErrOrder)
	case f.has(flagPadded):
		if c.padding = -1; f.length == 0 {
			c.fail(FrameSizeError, "DATA is too short for its padding")
		}
	default:
		c.dataSize(s, int64(f.length))
	}
}

// dataSize checks the size of the data in a frame against what the response may hold.
func (c *Conn) dataSize(s *stream, n int64) {
	switch {
	case n > 0 && s.bare:
		c.invalid(s, ProtocolError, ErrBodyless)
	case n > 0 && s.length >= 0 && s.body+n > s.length:
		c.invalid(s, ProtocolError, ErrLength)
	case s.body+n > c.cfg.MaxBody:
		c.invalid(s, CancelStream, ErrBody)
	case n > 0 || c.frame.has(flagEndStream):
		c.useful()
	default:
		c.wasted()
	}
}

// dataPiece takes a part of the payload of DATA; c.left is what follows it.
func (c *Conn) dataPiece(b []byte) {
	s := c.streams.find(c.frame.stream)
	if s == nil || len(b) == 0 { // it ended before the frame, or with its head, or was cancelled since
		return
	}
	if c.padding < 0 {
		c.padding = int(b[0])
		b = b[1:]
		s.bytesIn++
		if c.padding > int(c.frame.length)-1 {
			c.fail(ProtocolError, "the padding is longer than the frame")
			return
		}
		if c.dataSize(s, int64(c.frame.length)-1-int64(c.padding)); s.id == 0 {
			return
		}
	}
	s.bytesIn += int64(len(b))
	if over := c.padding - c.left; over > 0 {
		b = b[:max(0, len(b)-over)]
	}
	s.body += int64(len(b))
	if c.observer != nil && len(b) > 0 {
		c.observer.Data(s.tag, b)
	}
}

// dataEnd ends the response if the frame does.
func (c *Conn) dataEnd() {
	s := c.streams.find(c.frame.stream)
	switch {
	case s == nil:
	case c.frame.has(flagEndStream):
		c.complete(s)
	case s.credit <= int32(c.cfg.Window/2) && !s.owed:
		s.owed = true
		c.owed = append(c.owed, s.id)
	}
}

// refill gives the windows back, in large pieces. What was sent before this cannot have known of it.
func (c *Conn) refill() {
	if c.err != nil {
		return
	}
	if c.taken >= int64(c.cfg.ConnWindow)/2 {
		c.credit += c.taken
		c.out = appendWord(c.out, frameWindowUpdate, 0, uint32(c.taken))
		c.taken = 0
	}
	for _, id := range c.owed {
		if s := c.streams.find(id); s != nil {
			c.out = appendWord(c.out, frameWindowUpdate, id, c.cfg.Window-uint32(s.credit))
			s.credit, s.owed = int32(c.cfg.Window), false
		}
	}
	c.owed = c.owed[:0]
}

// handle takes a frame that is neither DATA nor unknown, whole.
func (c *Conn) handle(p []byte) {
	switch c.frame.kind {
	case frameHeaders:
		c.headersFrame(p)
	case frameContinuation:
		c.continuation(p)
	case framePriority:
		c.priority()
	case frameReset:
		c.resetFrame(p)
	case frameSettings:
		c.settings(p)
	case framePushPromise:
		c.fail(ProtocolError, "the peer pushes though we refused that")
	case framePing:
		c.ping(p)
	case frameGoAway:
		c.goAwayFrame(p)
	case frameWindowUpdate:
		c.windowUpdate(p)
	}
}

func (c *Conn) priority() {
	s := c.streams.find(c.frame.stream)
	switch {
	case c.frame.stream == 0:
		c.fail(ProtocolError, "PRIORITY on stream 0")
	case c.frame.length != 5 && s != nil:
		c.invalid(s, FrameSizeError, ErrFrameSize)
	default:
		c.wasted()
	}
}

func (c *Conn) resetFrame(p []byte) {
	switch {
	case len(p) != 4:
		c.fail(FrameSizeError, "RST_STREAM of a wrong size")
		return
	case c.idle():
		c.fail(ProtocolError, "RST_STREAM on a stream that was never opened")
		return
	}
	s := c.streams.find(c.frame.stream)
	if s == nil {
		c.wasted()
		return
	}
	c.useful()
	code := Code(binary.BigEndian.Uint32(p))
	if code == RefusedStream && !s.answered {
		c.end(s, Event{Kind: Refused, Code: code}, true)
		return
	}
	c.end(s, Event{Kind: Reset, Code: code}, true)
}

// idle tells whether the frame's stream was never opened: only we open any.
func (c *Conn) idle() bool { return c.frame.stream&1 == 0 || c.frame.stream >= c.next }

// late judges DATA or HEADERS on a stream that is not open: it may have been sent before the peer
// learnt that the stream ended, unless it was the peer that ended it.
func (c *Conn) late() {
	switch id := c.frame.stream; {
	case c.idle():
		c.fail(ProtocolError, "a frame on a stream that was never opened")
	case !c.ended.early(id, c.next):
		c.fail(StreamClosed, "a frame on a stream that the peer had ended")
	default:
		c.wasted()
	}
}

func (c *Conn) settings(p []byte) {
	switch {
	case c.frame.stream != 0:
		c.fail(ProtocolError, "SETTINGS on a stream")
	case c.frame.has(flagAck):
		if len(p) != 0 {
			c.fail(FrameSizeError, "SETTINGS acknowledged with a payload")
		}
		c.wasted()
	case len(p)%6 != 0:
		c.fail(FrameSizeError, "SETTINGS of a wrong size")
	default:
		c.applySettings(p)
	}
}

func (c *Conn) applySettings(p []byte) {
	if !c.greeted { // now it has said how many, or else does not care
		c.greeted, c.peer.streams = true, 1<<32-1
	} else {
		c.wasted()
	}
	window := c.peer.window
	for ; len(p) > 0; p = p[6:] {
		v := binary.BigEndian.Uint32(p[2:])
		switch binary.BigEndian.Uint16(p) {
		case settingTable:
			if v < c.peer.table {
				c.shrink, c.peer.table = true, 0
			}
		case settingPush:
			if v != 0 {
				c.fail(ProtocolError, "a server that asks to be pushed to")
			}
		case settingStreams:
			c.peer.streams = v
		case settingWindow:
			if window = v; v > maxWindow {
				c.fail(FlowControlError, "the peer's window is too large")
			}
		case settingFrame:
			if v < maxFrame || v > 1<<24-1 {
				c.fail(ProtocolError, "the peer's frame size is out of bounds")
			}
		}
		if c.err != nil {
			return
		}
	}
	c.moveWindows(window)
	if c.reply() {
		c.out = appendHeader(c.out, 0, frameSettings, flagAck, 0)
	}
}

// moveWindows applies a new initial window to the open streams (RFC 9113, 6.9.2).
func (c *Conn) moveWindows(window uint32) {
	delta := int64(window) - int64(c.peer.window)
	if c.peer.window = window; delta == 0 {
		return
	}
	for i := range c.streams.places {
		s := &c.streams.places[i]
		if s.id == 0 {
			continue
		}
		if s.window += delta; s.window > maxWindow {
			c.fail(FlowControlError, "a change of the window overflows that of a stream")
			return
		}
	}
}

func (c *Conn) ping(p []byte) {
	switch {
	case len(p) != 8:
		c.fail(FrameSizeError, "PING of a wrong size")
	case c.frame.stream != 0:
		c.fail(ProtocolError, "PING on a stream")
	default:
		c.wasted()
		if !c.frame.has(flagAck) && c.reply() {
			c.out = append(appendHeader(c.out, 8, framePing, flagAck, 0), p...)
		}
	}
}

func (c *Conn) goAwayFrame(p []byte) {
	switch {
	case c.frame.stream != 0:
		c.fail(ProtocolError, "GOAWAY on a stream")
		return
	case len(p) < 8:
		c.fail(FrameSizeError, "GOAWAY is too short")
		return
	}
	c.wasted()
	last := binary.BigEndian.Uint32(p) & maxStream
	code := Code(binary.BigEndian.Uint32(p[4:]))
	if last > c.last { // what we believed unprocessed may have been processed
		c.fail(ProtocolError, "a second GOAWAY takes back the first")
		return
	}
	c.draining, c.last = true, last
	c.events = append(c.events, Event{Kind: GoAway, Last: last, Code: code})
	for i := range c.streams.places {
		s := &c.streams.places[i]
		switch {
		case s.id <= last:
		case s.answered: // which gives the lie to the GOAWAY
			c.end(s, Event{Kind: Reset, Code: code}, true)
		default:
			c.end(s, Event{Kind: Refused, Code: code}, true)
		}
	}
}

func (c *Conn) windowUpdate(p []byte) {
	if len(p) != 4 {
		c.fail(FrameSizeError, "WINDOW_UPDATE of a wrong size")
		return
	}
	c.wasted()
	n := int64(binary.BigEndian.Uint32(p) & maxWindow)
	if c.frame.stream == 0 {
		if c.window += n; n == 0 {
			c.fail(ProtocolError, "WINDOW_UPDATE of 0")
		} else if c.window > maxWindow {
			c.fail(FlowControlError, "the window of the connection overflows")
		}
		return
	}
	if c.idle() {
		c.fail(ProtocolError, "WINDOW_UPDATE on a stream that was never opened")
		return
	}
	s := c.streams.find(c.frame.stream)
	if s == nil {
		return
	}
	if s.window += n; n == 0 {
		c.invalid(s, ProtocolError, ErrWindow)
	} else if s.window > maxWindow {
		c.invalid(s, FlowControlError, ErrWindow)
	}
}

// wasted counts a frame that brings no response forward. A peer that sends many of them is not
// waited for: otherwise it could keep us busy for ever.
func (c *Conn) wasted() {
	if c.waste++; c.waste > maxWaste {
		c.fail(EnhanceYourCalm, "the peer floods the connection with frames that mean nothing")
	}
}

// useful counts a frame that does.
func (c *Conn) useful() { c.waste = max(0, c.waste-wastePaid) }

// reply tells whether there is room for an answer that the peer asked for.
func (c *Conn) reply() bool {
	if c.err == nil && c.backlog() > 2*maxBacklog {
		c.fail(EnhanceYourCalm, "the peer asks for answers and does not read them")
	}
	return c.err == nil
}
