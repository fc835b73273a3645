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
	loopOpen               // it speaks HTTP/2; what is on its way is in mux
	loopDialling           // the connect is on its way
	loopShaking            // the TLS handshake is
	loopLeaving            // used up; the peer is to close first
	loopClosed
)

// loopConn is one connection of a loop.
type loopConn struct {
	fd               int
	slot, generation int32
	state            loopState
	asked            bool // opened for an arrival, which is given
	used             bool // a request was begun on it
	once             bool // it takes only one
	listed           bool // it is on the idle stack
	dirty            bool // it is among the loop's dirty ones
	writeErr         bool
	unread           bool // it is among the loop's unread ones
	over             bool // and its peer has closed

	given   waiting
	first   flight // the request of HTTP/1.1; its deadlines also serve the opening
	out     []byte // that request on its way
	written int    // bytes of it that are out
	parser  *Parser
	mux     *multiplex // HTTP/2

	began   time.Duration // of the connect
	connect time.Duration // what it took; for the first request
	shook   time.Duration
	link    *link // TLS; nil on plain connections
}

// takes tells whether a request can be begun now.
func (c *loopConn) takes() bool {
	if c.mux == nil {
		return c.state == loopIdle || c.state == loopReady
	}
	return c.state == loopOpen && !c.writeErr && !(c.once && c.used) && c.mux.conn.CanOpen()
}

// rests tells whether the connection stands and nothing is on its way.
func (c *loopConn) rests() bool {
	return c.state == loopIdle || c.state == loopOpen && c.mux.conn.Idle()
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

// dial opens a connection: for an arrival when asked says so, or because its own schedule wants it.
func (l *loop) dial(w waiting, asked bool) {
	c := l.newConn(w, asked)
	if err := c.dial(&l.where); err != nil {
		l.dialFailed(c, err)
		return
	}
	if err := l.poll.add(c.fd, c.slot, c.generation, everything); err != nil {
		l.dialFailed(c, err)
		return
	}
	l.ends.add(&c.first.end, w.Due+l.cfg.Limits.Timeout)
	if l.cfg.Limits.Connect < l.cfg.Limits.Timeout {
		l.dials.add(&c.first.stage, c.began+l.cfg.Limits.Connect)
	}
}

func (l *loop) newConn(w waiting, asked bool) *loopConn {
	l.born++
	c := &loopConn{fd: -1, generation: l.born, state: loopDialling, given: w, asked: asked, once: l.cfg.single(), began: l.epoch.Now()}
	c.first.conn = c
	c.first.end.owner, c.first.stage.owner = &c.first, &c.first
	if n := len(l.slots); n > 0 {
		c.slot, l.slots = l.slots[n-1], l.slots[:n-1]
	} else {
		c.slot = int32(len(l.conns))
		l.conns = append(l.conns, nil)
	}
	l.conns[c.slot] = c
	l.open++
	l.openings++
	l.result.ConnPeak = max(l.result.ConnPeak, l.open)
	return c
}

// dial begins to connect; nil when that is on its way.
func (c *loopConn) dial(e *endpoint) error {
	to, from := e.next()
	family, addr := sockaddr(to)
	if e.unix != "" {
		family, addr = unix.AF_UNIX, &unix.SockaddrUnix{Name: e.unix}
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	c.fd = fd
	if e.unix == "" {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	}
	if from.IsValid() {
		if err := bind(fd, from); err != nil {
			return err
		}
	}
	if err := unix.Connect(fd, addr); err != nil && err != unix.EINPROGRESS && err != unix.EINTR {
		return err
	}
	return nil
}

func sockaddr(a netip.AddrPort) (family int, addr unix.Sockaddr) {
	if ip := a.Addr().Unmap(); ip.Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Port: int(a.Port()), Addr: ip.As4()}
	}
	ip := a.Addr()
	return unix.AF_INET6, &unix.SockaddrInet6{Port: int(a.Port()), Addr: ip.As16(), ZoneId: zone(ip.Zone())}
}

// bind lets a socket connect from a local address. The port is chosen at the connect, so that it need
// only be unique for the peer.
func bind(fd int, from netip.Addr) error {
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
	_, addr := sockaddr(netip.AddrPortFrom(from, 0))
	return unix.Bind(fd, addr)
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
	c.first.stage.remove()
	switch {
	case l.tls != nil:
		l.startHandshake(c, spoke, now)
	case spoke && l.cfg.HTTP != HTTP2Prior && waitsToBeRead(c.fd): // it spoke before it was asked: that is no answer
		l.result.Discarded++
		l.unmade(connecting, errSpokeFirst)
		l.failed(c, record.InvalidResponse, now)
	default:
		l.established(c, l.cfg.HTTP == HTTP2Prior)
		if spoke && c.state != loopClosed { // no event will tell of it again
			l.read(c, true)
		}
	}
}

// waitsToBeRead tells whether bytes have arrived; the end of the stream is none.
func waitsToBeRead(fd int) bool {
	var b [1]byte
	n, _, err := unix.Recvfrom(fd, b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
	return err == nil && n > 0
}

// established begins what the connection was opened for.
func (l *loop) established(c *loopConn, two bool) {
	l.result.opened(c.connect, c.shook)
	l.openings--
	c.first.stage.remove()
	if two {
		c.mux, c.state = newMultiplex(l.two, l.out), loopOpen
		c.first.end.remove() // of the opening; requests have their own
		l.streams = c.mux.conn.Streams()
		if c.once {
			l.streams = 1
		}
		l.touch(c)
	} else {
		l.result.HTTP1++
		c.parser, c.state, l.streams = NewParser(l.cfg.Limits.MaxHeader, l.cfg.Limits.MaxBody), loopReady, 1
	}
	if c.asked {
		l.begin(c, c.given)
		return
	}
	l.unasked--
	l.account(c.given.Due).Opened++
	c.connect, c.shook = 0, 0
	c.first.end.remove()
	l.ready(c)
	l.evict(c)
}

func (l *loop) dialFailed(c *loopConn, err error) {
	o, lacks := connectOutcome(err)
	switch lacks {
	case lacksDescriptors:
		l.result.FDExhausted++
	case lacksPorts:
		l.result.PortsExhausted++
	}
	l.unmade(connecting, err)
	l.failed(c, o, l.epoch.Now())
}

// doing is what an opening connection is at.
func (c *loopConn) doing() string {
	if c.state == loopShaking {
		return shaking
	}
	return connecting
}

// unmade counts a connection that did not come about.
func (l *loop) unmade(doing string, err error) {
	l.result.ConnFailed++
	l.result.Why.note(doing, err)
}

// failed ends the arrival of a connection that did not come about.
func (l *loop) failed(c *loopConn, o record.Outcome, now time.Duration) {
	if !c.asked {
		l.missed(c.given.Due, o)
		l.replace(c)
		return
	}
	w := c.given
	l.cfg.Requests.At(w.Index, &l.req)
	s := record.Sample{Index: w.Index, Route: l.req.Route, Outcome: o, Due: w.Due, Done: max(now, w.Due), Wait: max(0, now-w.since-w.held), Connect: c.connect}
	if c.connect == 0 {
		s.Connect = max(1, now-c.began)
	} else {
		s.TLS = max(1, now-c.began-c.connect)
	}
	l.record(s)
	l.replace(c)
}

// missed counts a connection that its own schedule asked for, and that did not come about.
func (l *loop) missed(due time.Duration, o record.Outcome) {
	l.unasked--
	l.account(due).missed(o)
}

func (l *loop) account(due time.Duration) *ConnAccount { return l.result.account(&l.cfg, due) }

// drop closes a connection and forgets it.
func (l *loop) drop(c *loopConn) {
	c.first.end.remove()
	c.first.stage.remove()
	if c.state == loopDialling || c.state == loopShaking {
		l.openings--
	}
	l.endHandshake(c.link)
	if c.fd >= 0 {
		_ = unix.Close(c.fd)
	}
	l.conns[c.slot] = nil
	l.slots = append(l.slots, c.slot)
	l.open--
	c.state, c.fd, c.out, c.parser, c.mux = loopClosed, -1, nil, nil, nil // the idle stack may hold it for a while
}

// replace closes a connection; its place in the limit passes on to the first that waits.
func (l *loop) replace(c *loopConn) {
	l.drop(c)
	l.demand()
}

// leave waits for the peer to close a connection that is used up.
func (l *loop) leave(c *loopConn) {
	if !c.once && l.queue.n > 0 && l.open >= l.cfg.Limits.MaxConnections {
		l.replace(c)
		return
	}
	if gone(c.fd, l.buf) { // no event would tell of what came before
		l.replace(c)
		return
	}
	c.state = loopLeaving
	l.resid.add(&c.first.stage, l.epoch.Now()+leaveWait)
}

// maxFarewell is how often a connection that is used up is read before it is closed.
const maxFarewell = 4

// gone takes what still comes and tells whether it ended, or goes on for too long to be waited for.
func gone(fd int, buf []byte) bool {
	for range maxFarewell {
		if _, err := receive(fd, buf); err != nil {
			return !nothingNow(err)
		}
	}
	return true
}

// admit tells whether an arrival's request may be written now; otherwise it has ended it.
func (l *loop) admit(w waiting, now time.Duration) bool {
	switch {
	case l.stopped:
		l.unsent(w.Arrival, record.UnsentStop)
	case now >= w.Due+l.cfg.Limits.Timeout:
		l.overdue(w)
	case !l.cfg.Target.Write().Allow():
		l.result.RateLimited++
		l.unsent(w.Arrival, record.UnsentRate)
	default:
		return true
	}
	return false
}

// begin writes an arrival's request; one that may not be written makes way for the next that waits.
func (l *loop) begin(c *loopConn, w waiting) {
	if now := l.epoch.Now(); l.admit(w, now) {
		if l.start(c, w, now); c.mux == nil {
			return
		}
	}
	l.ready(c)
}

// ready gives a connection to what waits longest, as much as it takes, or to the idle stack.
func (l *loop) ready(c *loopConn) {
	for c.takes() {
		w, ok := l.first()
		if !ok {
			l.rest(c)
			return
		}
		if w.fresh && c.used {
			if c.mux == nil || c.mux.conn.Idle() {
				l.drop(c)
				l.dial(w, true)
				return
			}
			w.fresh = false // no place for another connection, and this one is in use
		}
		if now := l.epoch.Now(); l.admit(w, now) {
			l.start(c, w, now)
		}
	}
}

// rest puts a connection on the idle stack.
func (l *loop) rest(c *loopConn) {
	if c.mux == nil {
		c.first.end.remove()
		c.state = loopIdle
	}
	if !c.listed {
		c.listed = true
		l.idle = append(l.idle, c)
	}
}

// start writes the request, or hands it to HTTP/2.
func (l *loop) start(c *loopConn, w waiting, now time.Duration) {
	c.used = true
	if c.mux != nil {
		l.launch(c, w, now)
		return
	}
	f := &c.first
	l.cfg.Requests.At(w.Index, &f.req)
	c.out, c.written = l.out.append(c.out[:0], w.Index, &f.req), 0
	f.begin(w, now)
	c.parser.Reset(f.req.Method)
	c.parser.watch(&f.check)
	f.sample.Sent, f.sample.Connect, f.sample.TLS, f.sample.BytesOut = max(1, now), c.connect, c.shook, uint64(len(c.out))
	c.connect, c.shook, c.state = 0, 0, loopBusy
	if at := w.Due + l.cfg.Limits.Timeout; f.end.in == nil || f.end.at != at {
		l.ends.add(&f.end, at)
	}
	if l.cfg.Limits.FirstByte < l.cfg.Limits.Timeout {
		l.bytes.add(&f.stage, now+l.cfg.Limits.FirstByte)
	}
	l.write(c)
}

// unwritten tells whether bytes wait for the peer to take more.
func (c *loopConn) unwritten() bool {
	return c.written < len(c.out) || c.link != nil && len(c.link.out) > 0 || c.mux != nil && len(c.mux.conn.Out()) > 0
}

// write gives the peer what it takes of the request.
func (l *loop) write(c *loopConn) {
	switch {
	case c.mux != nil:
		l.writeMux(c)
		return
	case c.link != nil:
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
	if c.writeErr {
		return
	}
	c.written, c.writeErr = len(c.out), true
	if c.state == loopBusy || c.state == loopOpen {
		l.resid.add(&c.first.stage, l.epoch.Now()+afterWriteError)
	}
	l.late = append(l.late, c)
}

// read takes what arrived. over says that the peer has closed or that the connection is broken: then
// there is an end to be found behind the last byte.
func (l *loop) read(c *loopConn, over bool) {
	if c.link != nil {
		c.link.over, c.link.dry = over, false
	}
	for until := l.epoch.Now() + readSlice; ; {
		n, err := c.receive(l.buf)
		if c.mux != nil && !l.gotMux(c, n, err) || c.mux == nil && !l.got(c, n, err) {
			return
		}
		if err != nil || c.link == nil && !over && n < len(l.buf) {
			break // nothing more now
		}
		if c.state != loopReady && l.epoch.Now() > until { // a ready one is soon known to be at its end
			l.leaveUnread(c, over)
			break
		}
	}
	switch {
	case c.state == loopOpen:
		l.ready(c)
		l.demand() // what is to be sent again may have found no place here
	case c.state == loopReady:
		l.ready(c)
	}
}

// readSlice is how long one connection is read before the loop looks at the others, and at what is due: a
// peer that never stops sending must not have it to itself.
const readSlice = 200 * time.Microsecond

// leaveUnread has the loop read on in its next round.
func (l *loop) leaveUnread(c *loopConn, over bool) {
	c.over = c.over || over
	if !c.unread {
		c.unread = true
		l.unread = append(l.unread, c)
	}
}

// readOn reads what was left.
func (l *loop) readOn() {
	batch := l.unread
	l.unread = l.spare[:0]
	for _, c := range batch {
		over := c.over
		c.unread, c.over = false, false
		switch c.state {
		case loopIdle, loopBusy, loopReady, loopOpen:
			l.read(c, over)
		}
	}
	clear(batch)
	l.spare = batch
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
		return l.unwanted(c, n, err)
	}
	now := l.epoch.Now()
	s := &c.first.sample
	if n > 0 {
		if s.FirstByte == 0 {
			s.FirstByte = now
			if !c.writeErr {
				c.first.stage.remove()
			}
		}
		k, done, perr := c.parser.Feed(l.buf[:n])
		s.BytesIn += uint64(k)
		switch {
		case perr != nil:
			l.result.Why.note(answering, perr)
			l.end(c, record.InvalidResponse, now)
			l.replace(c)
			return false
		case done:
			return l.answered(c, k < n, err, now)
		}
	}
	switch {
	case nothingNow(err):
		return true
	case errors.Is(err, io.EOF) && !(c.link != nil && c.link.cut) && c.parser.EOF() == nil:
		l.end(c, record.Answered, now)
	default:
		o := l.broken(c, err)
		l.result.Why.broke(o, err)
		l.end(c, o, now)
	}
	l.replace(c)
	return false
}

func nothingNow(err error) bool { return err == nil || err == errAgain } //nolint:errorlint // our own, never wrapped

// unwanted handles what arrives while nothing is on its way: the connection is not used again, and
// bytes are never taken for the answer to a later request.
func (l *loop) unwanted(c *loopConn, n int, err error) bool {
	if n == 0 && nothingNow(err) {
		return true
	}
	if n > 0 {
		l.result.Discarded++
	}
	l.replace(c)
	return false
}

// answered ends a complete response; false when the connection takes no other request. err is what the
// last read gave beside the bytes: crypto/tls does that when an alert is right behind them, and no event
// will tell of it again.
func (l *loop) answered(c *loopConn, more bool, err error, now time.Duration) bool {
	clean := !more && nothingNow(err) && !c.writeErr && !c.unwritten()
	if more {
		l.result.Discarded++
	}
	kept := c.parser.Reusable()
	l.end(c, record.Answered, now)
	switch {
	case clean && kept && !c.once:
		c.state = loopReady
		return true
	case clean && !kept: // the peer has said that it will close
		l.leave(c)
	default:
		l.replace(c)
	}
	return false
}

// end records the arrival that is on its way. What was answered is still to be judged.
func (l *loop) end(c *loopConn, o record.Outcome, now time.Duration) {
	f := &c.first
	if o == record.Answered {
		o = f.judge(c.parser.Status())
	}
	l.finish(f, o, now)
}

// finish records how a request ended.
func (l *loop) finish(f *flight, o record.Outcome, now time.Duration) {
	s := &f.sample
	s.Outcome, s.Done = o, max(now, s.Sent)
	if o == record.CheckFailed {
		l.result.Why.note(answering, f.wrong)
	}
	if o == record.TimedOut {
		expired(s, l.cfg.Limits.Timeout)
	}
	f.end.remove()
	f.stage.remove()
	l.record(*s)
}

// broken tells what the end of a connection means for the request on its way.
func (l *loop) broken(c *loopConn, err error) record.Outcome {
	return brokenOutcome(err, c.first.sample.BytesIn > 0, c.writeErr)
}
