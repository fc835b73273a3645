package httpload

import (
	"errors"
	"io"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"seatrial/record"
)

// The states of a loop's connection.
type loopState uint8

const (
	loopIdle     loopState = iota
	loopBusy               // a request is on its way
	loopReady              // answered; whether more came with the answer is not yet known
	loopDialling           // the connect is on its way
	loopShaking            // the TLS handshake is
	loopClosed
)

// loopConn is one connection of a loop.
type loopConn struct {
	fd               int
	slot, generation int32
	state            loopState
	writeErr         bool

	given   waiting // the arrival that it was opened for
	req     Request
	out     []byte // the request on its way
	written int    // bytes of it that are out
	parser  *Parser
	sample  record.Sample

	began   time.Duration // of the connect
	connect time.Duration // what it took; for the first request
	shook   time.Duration

	end, stage deadline
	link       *link // TLS; nil on plain connections
}

// errAgain says that there is nothing to read now. crypto/tls goes on after errors that call
// themselves temporary.
var errAgain error = again{}

type again struct{}

func (again) Error() string   { return "httpload: nothing to read now" }
func (again) Timeout() bool   { return false }
func (again) Temporary() bool { return true }

// errWrite says that the peer did not take the request and said nothing more either.
var errWrite = errors.New("httpload: the request was not taken")

// dial opens a connection for an arrival.
func (l *loop) dial(w waiting) {
	c := l.newConn(w)
	addr := l.addrs[l.nextAddr%len(l.addrs)]
	l.nextAddr++
	if err := c.dial(addr); err != nil {
		l.dialFailed(c, err)
		return
	}
	if err := l.poll.add(c.fd, c.slot, c.generation, everything); err != nil {
		l.dialFailed(c, err)
		return
	}
	l.ends.add(&c.end, w.Due+l.cfg.Limits.Timeout)
	if l.cfg.Limits.Connect < l.cfg.Limits.Timeout {
		l.dials.add(&c.stage, c.began+l.cfg.Limits.Connect)
	}
}

func (l *loop) newConn(w waiting) *loopConn {
	l.born++
	c := &loopConn{fd: -1, generation: l.born, state: loopDialling, given: w, began: l.epoch.Now(),
		parser: NewParser(l.cfg.Limits.MaxHeader, l.cfg.Limits.MaxBody)}
	c.end.owner, c.stage.owner = c, c
	if n := len(l.slots); n > 0 {
		c.slot, l.slots = l.slots[n-1], l.slots[:n-1]
	} else {
		c.slot = int32(len(l.conns))
		l.conns = append(l.conns, nil)
	}
	l.conns[c.slot] = c
	l.open++
	l.result.ConnPeak = max(l.result.ConnPeak, l.open)
	return c
}

// dial begins to connect; nil when that is on its way.
func (c *loopConn) dial(to netip.AddrPort) error {
	var addr unix.Sockaddr
	family := unix.AF_INET
	if ip := to.Addr().Unmap(); ip.Is4() {
		addr = &unix.SockaddrInet4{Port: int(to.Port()), Addr: ip.As4()}
	} else {
		family = unix.AF_INET6
		addr = &unix.SockaddrInet6{Port: int(to.Port()), Addr: ip.As16(), ZoneId: zone(ip.Zone())}
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	c.fd = fd
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	if err := unix.Connect(fd, addr); err != nil && err != unix.EINPROGRESS && err != unix.EINTR {
		return err
	}
	return nil
}

// dialled is called when the connect has ended. spoke says that there is something to read already.
func (l *loop) dialled(c *loopConn, spoke bool) {
	e, err := unix.GetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && e != 0 {
		err = unix.Errno(e)
	}
	if err != nil {
		l.dialFailed(c, err)
		return
	}
	now := l.epoch.Now()
	c.connect = max(1, now-c.began)
	c.stage.remove()
	if l.tls == nil {
		if spoke && waitsToBeRead(c.fd) { // it spoke before it was asked: that is no answer
			l.result.Discarded++
			l.failed(c, record.InvalidResponse, now)
			return
		}
		l.established(c)
		return
	}
	l.startHandshake(c, now)
}

// waitsToBeRead tells whether bytes have arrived; the end of the stream is none.
func waitsToBeRead(fd int) bool {
	var b [1]byte
	n, _, err := unix.Recvfrom(fd, b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
	return err == nil && n > 0
}

// established begins what the connection was opened for.
func (l *loop) established(c *loopConn) {
	l.result.ConnOpened++
	c.stage.remove()
	l.begin(c, c.given)
}

func (l *loop) dialFailed(c *loopConn, err error) {
	o, lacks := connectOutcome(err)
	switch lacks {
	case lacksDescriptors:
		l.result.FDExhausted++
	case lacksPorts:
		l.result.PortsExhausted++
	}
	l.failed(c, o, l.epoch.Now())
}

// failed ends the arrival of a connection that did not come about.
func (l *loop) failed(c *loopConn, o record.Outcome, now time.Duration) {
	w := c.given
	l.cfg.Requests.At(w.Index, &l.req)
	s := record.Sample{Index: w.Index, Route: l.req.Route, Outcome: o, Due: w.Due, Done: max(now, w.Due), Wait: max(0, now-w.since), Connect: c.connect}
	if c.connect == 0 {
		s.Connect = max(1, now-c.began)
	} else {
		s.TLS = max(1, now-c.began-c.connect)
	}
	l.record(s)
	l.replace(c)
}

// drop closes a connection and forgets it.
func (l *loop) drop(c *loopConn) {
	c.end.remove()
	c.stage.remove()
	if c.link != nil {
		c.link.fail()
	}
	if c.fd >= 0 {
		_ = unix.Close(c.fd)
	}
	l.conns[c.slot] = nil
	l.slots = append(l.slots, c.slot)
	l.open--
	c.state, c.fd, c.out, c.parser = loopClosed, -1, nil, nil // the idle stack may hold it for a while
}

// replace closes a connection; its place in the limit passes on to the first that waits.
func (l *loop) replace(c *loopConn) {
	l.drop(c)
	if l.filling {
		return // a connect that fails at once must not nest
	}
	l.filling = true
	for l.queue.n > 0 && l.open < l.cfg.Limits.MaxConnections {
		if w, ok := l.first(); ok {
			l.dial(w)
		}
	}
	l.filling = false
}

// begin writes an arrival's request; one that may not be written makes way for the next that waits.
func (l *loop) begin(c *loopConn, w waiting) {
	for ok := true; ok; w, ok = l.first() {
		now := l.epoch.Now()
		switch {
		case l.stopped:
			l.unsent(w.Arrival, record.UnsentStop)
		case now >= w.Due+l.cfg.Limits.Timeout:
			l.overdue(w)
		case !l.cfg.Target.Write().Allow():
			l.result.RateLimited++
			l.unsent(w.Arrival, record.UnsentRate)
		default:
			l.start(c, w, now)
			return
		}
	}
	l.rest(c)
}

// rest puts a connection on the idle stack.
func (l *loop) rest(c *loopConn) {
	c.end.remove()
	c.state = loopIdle
	l.idle = append(l.idle, c)
}

// start writes the request.
func (l *loop) start(c *loopConn, w waiting, now time.Duration) {
	l.cfg.Requests.At(w.Index, &c.req)
	c.out, c.written = l.out.append(c.out[:0], w.Index, &c.req), 0
	c.parser.Reset(c.req.Method)
	c.sample = record.Sample{Index: w.Index, Route: c.req.Route, Due: w.Due, Sent: max(1, now), Connect: c.connect, TLS: c.shook,
		BytesOut: uint64(len(c.out))}
	if !w.found {
		c.sample.Wait = max(0, now-w.since)
	}
	c.connect, c.shook, c.state = 0, 0, loopBusy
	if at := w.Due + l.cfg.Limits.Timeout; c.end.in == nil || c.end.at != at {
		l.ends.add(&c.end, at)
	}
	if l.cfg.Limits.FirstByte < l.cfg.Limits.Timeout {
		l.bytes.add(&c.stage, now+l.cfg.Limits.FirstByte)
	}
	l.write(c)
}

// unwritten tells whether bytes wait for the peer to take more.
func (c *loopConn) unwritten() bool {
	return c.written < len(c.out) || c.link != nil && len(c.link.out) > 0
}

// write gives the peer what it takes of the request.
func (l *loop) write(c *loopConn) {
	if c.link != nil {
		if !c.link.send(c) {
			l.writeFailed(c)
		}
		return
	}
	for c.written < len(c.out) {
		n, e := writeRaw(c.fd, c.out[c.written:])
		switch e {
		case 0:
			c.written += n
		case unix.EINTR:
		case unix.EAGAIN:
			return
		default:
			l.writeFailed(c)
			return
		}
	}
}

// writeFailed waits a moment for an answer that the peer may have sent before it closed. What is there
// already is read in the next round: here the loop may be in the middle of handing out work.
func (l *loop) writeFailed(c *loopConn) {
	c.written, c.writeErr = len(c.out), true
	if c.state == loopBusy {
		l.resid.add(&c.stage, l.epoch.Now()+afterWriteError)
	}
	l.late = append(l.late, c)
}

// read takes what arrived. over says that the peer has closed or that the connection is broken: then
// there is an end to be found behind the last byte.
func (l *loop) read(c *loopConn, over bool) {
	for {
		n, err := c.receive(l.buf)
		if !l.got(c, n, err) {
			return
		}
		if err != nil || c.link == nil && !over && n < len(l.buf) {
			break // nothing more now
		}
	}
	if c.state == loopReady {
		l.ready(c)
	}
}

// ready gives a connection that has answered to the arrival that waits longest, or to the idle stack.
func (l *loop) ready(c *loopConn) {
	if w, ok := l.first(); ok {
		l.begin(c, w)
		return
	}
	l.rest(c)
}

// receive reads once; errAgain when there is nothing now.
func (c *loopConn) receive(b []byte) (int, error) {
	if c.link != nil {
		return c.link.conn.Read(b)
	}
	return receive(c.fd, b)
}

func receive(fd int, b []byte) (int, error) {
	for {
		n, e := readRaw(fd, b)
		switch {
		case e == unix.EINTR:
		case e == unix.EAGAIN:
			return 0, errAgain
		case e != 0:
			return 0, e
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

// got handles what one read gave; false when the connection is gone.
func (l *loop) got(c *loopConn, n int, err error) bool {
	if c.state != loopBusy {
		return l.unasked(c, n, err)
	}
	now := l.epoch.Now()
	s := &c.sample
	if n > 0 {
		if s.FirstByte == 0 {
			s.FirstByte = now
			if !c.writeErr {
				c.stage.remove()
			}
		}
		k, done, perr := c.parser.Feed(l.buf[:n])
		s.BytesIn += uint64(k)
		switch {
		case perr != nil:
			l.end(c, record.InvalidResponse, now)
			l.replace(c)
			return false
		case done:
			return l.answered(c, k < n, now)
		}
	}
	switch {
	case err == nil || err == errAgain: //nolint:errorlint // our own, never wrapped
		return true
	case errors.Is(err, io.EOF) && c.parser.EOF() == nil:
		l.end(c, record.Answered, now)
	default:
		l.end(c, l.broken(c, err), now)
	}
	l.replace(c)
	return false
}

// unasked handles what arrives while nothing is on its way: the connection is not used again, and
// bytes are never taken for the answer to a later request.
func (l *loop) unasked(c *loopConn, n int, err error) bool {
	if n == 0 && (err == nil || err == errAgain) { //nolint:errorlint // our own, never wrapped
		return true
	}
	if n > 0 {
		l.result.Discarded++
	}
	l.replace(c)
	return false
}

// answered ends a complete response; false when the connection is gone.
func (l *loop) answered(c *loopConn, more bool, now time.Duration) bool {
	usable := !more && !c.writeErr && !c.unwritten() && c.parser.Reusable()
	if more {
		l.result.Discarded++
	}
	l.end(c, record.Answered, now)
	if !usable {
		l.replace(c)
		return false
	}
	c.state = loopReady
	return true
}

// end records the arrival that is on its way.
func (l *loop) end(c *loopConn, o record.Outcome, now time.Duration) {
	s := &c.sample
	s.Outcome, s.Done = o, max(now, s.Sent)
	if o == record.TimedOut {
		s.Done = max(s.Sent, s.Due+l.cfg.Limits.Timeout)
	}
	if o == record.Answered {
		s.Status = uint16(c.parser.Status())
	}
	c.end.remove()
	c.stage.remove()
	l.record(*s)
}

// broken tells what the end of a connection means for the request on its way.
func (l *loop) broken(c *loopConn, err error) record.Outcome {
	return brokenOutcome(err, c.sample.BytesIn > 0, c.writeErr)
}
