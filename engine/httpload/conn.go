package httpload

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"seatrial/record"
)

// States of a connection. Whoever moves it from idle owns what happens next: the dispatcher by
// giving it an arrival, its reader by finding it closed.
const (
	stateBusy int32 = iota
	stateIdle
	stateDead
)

const (
	firstBuffer = 4 << 10
	lastBuffer  = 64 << 10
)

// conn is one connection. Its reader goroutine reads at all times, so that a close by the peer is
// seen while the connection is idle; a request is written by the goroutine that hands it over.
type conn struct {
	p     *portable
	state atomic.Int32
	given waiting // by the dispatcher, before sendGiven
	send  func()  // sendGiven as a value, so that starting it does not allocate

	writing sync.Mutex // held while a request is written
	out     []byte
	req     Request
	check   checker
	used    bool // a request was written before
	asked   bool // it was opened for an arrival
	peeked  bool // result of look: nothing waits to be read
	spoke   bool // and bytes do, not only the end of the stream
	look    func(fd uintptr)

	mu       sync.Mutex // everything below
	nc       net.Conn
	raw      syscall.RawConn // of the TCP connection, for a look at what arrived
	buf      []byte
	parser   *Parser
	sample   record.Sample
	inFlight bool
	broken   bool // the reader found the connection unusable before the request was begun
	gone     bool // given up at the end of the run
	writeErr error
	connect  time.Duration // of the handshake, for the first request
	shake    time.Duration
	leaving  bool   // answered for the last time: the peer is to close first
	below    *below // TLS; nil on others
	end3     func() // ends an HTTP/3 connection; nil on others
	doing    string // why it did not come about: what it was at
	cause    error  // and what happened then
}

// below is the connection below TLS. Its reader alone looks at cut.
type below struct {
	net.Conn
	cut bool // the end came without the peer saying so in TLS: somebody may have cut the rest off
}

// Read implements net.Conn.
func (b *below) Read(p []byte) (int, error) {
	n, err := b.Conn.Read(p)
	b.cut = b.cut || errors.Is(err, io.EOF)
	return n, err
}

func newConn(p *portable, asked bool) *conn {
	c := &conn{p: p, asked: asked, parser: NewParser(p.cfg.Limits.MaxHeader, p.cfg.Limits.MaxBody), buf: make([]byte, firstBuffer)}
	c.send, c.look = c.sendGiven, c.peek
	return c
}

// run opens the connection for an arrival, or because its own schedule wants it, and serves until it
// ends. Its place in the limit passes on to what waits. A connection that was open is replaced and not
// reused, because a sender may still find out that it is closed.
func (c *conn) run(w waiting) {
	p := c.p
	defer p.goroutines.Done()
	defer p.after(c)
	if p.cfg.HTTP == HTTP3 {
		c.overQUIC(w)
		return
	}
	two, o := c.open(w)
	p.stands(c, two, o)
	switch {
	case !c.asked:
		p.arrived(w.Due, o)
		c.connect, c.shake = 0, 0
		if o != record.Answered {
			return
		}
	case o != record.Answered:
		c.failed(w, o)
		return
	}
	defer func() { _ = c.nc.Close() }()
	switch {
	case two:
		newStreams(c).serve(w)
	case c.asked:
		c.begin(w)
		c.serve()
	default:
		if w, ok := p.next(c); ok {
			c.begin(w)
		}
		p.evict(c)
		c.serve()
	}
}

// failed ends the arrival that the connection was opened for.
func (c *conn) failed(w waiting, o record.Outcome) {
	var r Request
	c.p.cfg.Requests.At(w.Index, &r)
	now := c.p.epoch.Now()
	s := record.Sample{Index: w.Index, Route: r.Route, Outcome: o, Due: w.Due, Done: max(now, w.Due), Wait: max(0, now-w.since),
		Connect: c.connect, TLS: c.shake}
	if o == record.UnsentStop {
		s.Connect, s.TLS = 0, 0
	}
	c.p.record(&s)
}

// open connects; two says that HTTP/2 is to be spoken. Answered means that the connection stands.
func (c *conn) open(w waiting) (two bool, o record.Outcome) {
	p := c.p
	start := p.epoch.Now()
	nc, raw, two, o := c.dial(w.Due + p.cfg.Limits.Timeout)
	if o != record.Answered {
		if c.connect == 0 {
			c.connect = max(1, p.epoch.Now()-start)
		}
		return false, o
	}
	c.mu.Lock()
	c.nc, c.raw = nc, raw
	gone := c.gone
	c.mu.Unlock()
	if gone {
		_ = nc.Close()
	}
	return two, o
}

// dial makes the connection and the handshake; Answered means that it stands.
func (c *conn) dial(deadline time.Duration) (net.Conn, syscall.RawConn, bool, record.Outcome) {
	p := c.p
	c.connect, c.shake, c.below = 0, 0, nil
	if p.stopped.Load() {
		return nil, nil, false, record.UnsentStop
	}
	start := p.epoch.Now()
	network, addr, from := p.nextAddr()
	d := net.Dialer{Deadline: p.epoch.At(min(deadline, start+p.cfg.Limits.Connect)), KeepAlive: -1, LocalAddr: from}
	nc, err := d.DialContext(p.dialer, network, addr)
	if err != nil {
		c.doing, c.cause = connecting, err
		return nil, nil, false, c.dialFailed(err)
	}
	connected := p.epoch.Now()
	c.connect = max(1, connected-start)
	var raw syscall.RawConn
	if t, ok := nc.(syscall.Conn); ok {
		raw, _ = t.SyscallConn()
	}
	if p.tls == nil {
		return nc, raw, p.cfg.HTTP == HTTP2Prior, record.Answered
	}
	c.below = &below{Conn: nc}
	t := tls.Client(c.below, p.tls.config(p.dials.Add(1)))
	ctx, cancel := context.WithDeadline(p.dialer, p.epoch.At(min(deadline, connected+p.cfg.Limits.TLS)))
	defer cancel()
	err = t.HandshakeContext(ctx)
	c.shake = max(1, p.epoch.Now()-connected)
	c.doing, c.cause = shaking, cmp.Or(err, errNotAgreed)
	if err == nil {
		state := t.ConnectionState()
		two, ok := p.cfg.HTTP.agreed(&state)
		if ok {
			p.shook(&state)
			return t, raw, two, record.Answered
		}
	}
	_ = nc.Close()
	switch {
	case p.stopped.Load():
		return nil, nil, false, record.UnsentStop
	case ctx.Err() != nil || isTimeout(err):
		c.cause = errTooLong
		return nil, nil, false, record.TimedOutConnect
	default:
		return nil, nil, false, record.TLSFailed
	}
}

// dialFailed classifies, and counts what this machine lacks.
func (c *conn) dialFailed(err error) record.Outcome {
	if c.p.stopped.Load() {
		return record.UnsentStop
	}
	o, lacks := connectOutcome(err)
	switch lacks {
	case lacksDescriptors:
		c.p.fds.Add(1)
	case lacksPorts:
		c.p.ports.Add(1)
	}
	return o
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, syscall.ETIMEDOUT) || errors.As(err, &n) && n.Timeout()
}

// sendGiven writes what the dispatcher gave.
func (c *conn) sendGiven() {
	defer c.p.goroutines.Done()
	c.begin(c.given)
}

// begin writes an arrival's request; one that may not be written makes way for the next that waits.
// When the connection turns out to be closed before anything was written, the arrival goes back for
// another one; once a byte is out it never does.
func (c *conn) begin(w waiting) {
	for ok := true; ok; {
		switch outcome := c.write(w); outcome {
		case record.Answered:
			return
		case record.Lost:
			w.found = false
			c.p.assign(w)
			return
		case record.UnsentLimit:
			c.p.overdue(w)
		default:
			c.p.unsent(w.Arrival, new(Request), outcome)
		}
		w, ok = c.p.next(c)
	}
}

// write writes the request if it may be written: Answered when it did, Lost when the connection is
// unusable and nothing was written, else how the arrival ends.
func (c *conn) write(w waiting) record.Outcome {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.p.cfg.Requests.At(w.Index, &c.req)
	c.out = c.p.out.append(c.out[:0], w.Index, &c.req)
	c.mu.Lock()
	outcome := c.admit(w)
	if outcome != record.Answered {
		c.mu.Unlock()
		return outcome
	}
	c.start(w)
	nc := c.nc
	c.mu.Unlock()
	if _, err := nc.Write(c.out); err != nil {
		c.writeFailed(err)
	}
	return record.Answered
}

// admit tells whether the request may be written now: Answered when it may, Lost when the connection
// is unusable, else how the arrival ends.
func (c *conn) admit(w waiting) record.Outcome {
	p := c.p
	switch {
	case p.stopped.Load() || c.gone:
		return record.UnsentStop
	case c.broken || c.used && !c.quiet():
		if !c.broken {
			c.broken = true
			_ = c.nc.SetReadDeadline(past) // the reader ends the connection
		}
		return record.Lost
	case !c.used && !c.quiet() && c.spoke: // it spoke before it was asked: that is no answer
		c.broken = true
		p.discarded.Add(1)
		p.why(connecting, errSpokeFirst)
		_ = c.nc.SetReadDeadline(past)
		return record.InvalidResponse
	case p.epoch.Now() >= w.Due+p.cfg.Limits.Timeout:
		return record.UnsentLimit
	case !p.cfg.Target.Write().Allow():
		p.rate.Add(1)
		return record.UnsentRate
	}
	return record.Answered
}

// past is a deadline that has passed.
var past = time.Unix(1, 0)

// start notes the request as on its way.
func (c *conn) start(w waiting) {
	p := c.p
	c.parser.Reset(c.req.Method)
	c.check.reset(c.req.Expect)
	c.parser.watch(&c.check)
	now := p.epoch.Now()
	c.sample = record.Sample{Index: w.Index, Route: c.req.Route, Due: w.Due, Sent: max(1, now), Connect: c.connect, TLS: c.shake,
		BytesOut: uint64(len(c.out))}
	if !w.found {
		c.sample.Wait = max(0, now-w.since)
	}
	c.connect, c.shake = 0, 0
	c.inFlight, c.used, c.writeErr = true, true, nil
	end := w.Due + p.cfg.Limits.Timeout
	_ = c.nc.SetWriteDeadline(p.epoch.At(end))
	_ = c.nc.SetReadDeadline(p.epoch.At(min(end, now+p.cfg.Limits.FirstByte)))
}

// afterWriteError is how long an answer is waited for that the peer may have sent before it closed.
const afterWriteError = 20 * time.Millisecond

func (c *conn) writeFailed(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inFlight && !isTimeout(err) {
		c.writeErr = err
		_ = c.nc.SetReadDeadline(time.Now().Add(afterWriteError))
	}
}

// serve reads until the connection ends.
func (c *conn) serve() {
	for {
		n, err := c.nc.Read(c.buf)
		now := c.p.epoch.Now()
		if !c.got(n, err, now) {
			return
		}
		if n == len(c.buf) && n < lastBuffer {
			c.buf = make([]byte, 2*n)
		}
	}
}

// got handles what one read gave; false when the connection is to be closed.
func (c *conn) got(n int, err error, now time.Duration) bool {
	c.mu.Lock()
	if !c.inFlight {
		defer c.mu.Unlock()
		return c.unasked(n, err)
	}
	s := &c.sample
	if n > 0 {
		if s.FirstByte == 0 {
			s.FirstByte = now
			_ = c.nc.SetReadDeadline(c.p.epoch.At(s.Due + c.p.cfg.Limits.Timeout))
		}
		k, done, perr := c.parser.Feed(c.buf[:n])
		s.BytesIn += uint64(k)
		switch {
		case perr != nil:
			c.p.why(answering, perr)
			c.end(record.InvalidResponse, now)
			return false
		case done:
			return c.answered(k < n, err, now)
		}
	}
	if err == nil {
		c.mu.Unlock()
		return true
	}
	if errors.Is(err, io.EOF) && !(c.below != nil && c.below.cut) && c.parser.EOF() == nil {
		c.end(record.Answered, now)
		return false
	}
	o := c.classify(err)
	c.p.broke(o, err)
	c.end(o, now)
	return false
}

// unasked handles what arrives while nothing is on its way: the connection is not used again, and
// bytes are never taken for the answer to a later request.
func (c *conn) unasked(n int, err error) bool {
	if c.leaving && n == 0 {
		return false
	}
	if n == 0 && err == nil || n == 0 && isTimeout(err) && !c.broken && !c.gone {
		return true
	}
	if n > 0 {
		c.p.discarded.Add(1)
	}
	c.broken = true
	c.state.CompareAndSwap(stateIdle, stateDead) // else a sender has it, and sees broken
	return false
}

// answered ends a complete response. c.mu is held and is given back.
func (c *conn) answered(more bool, err error, now time.Duration) bool {
	clean := !more && err == nil
	kept := c.parser.Reusable()
	usable := clean && kept && !c.p.cfg.single()
	if more {
		c.p.discarded.Add(1)
	}
	switch {
	case usable:
		_ = c.nc.SetReadDeadline(time.Time{})
	case clean && !kept: // the peer has said that it will close
		c.leaving = true
		_ = c.nc.SetReadDeadline(time.Now().Add(leaveWait))
	}
	c.end(record.Answered, now)
	if !usable {
		return clean && !kept && (c.p.cfg.single() || !c.p.crowded())
	}
	// The whole request must be out before another can follow it.
	c.writing.Lock()
	c.mu.Lock()
	ok := c.writeErr == nil
	c.mu.Unlock()
	c.writing.Unlock()
	if ok {
		if w, waits := c.p.next(c); waits {
			c.begin(w)
		}
	}
	return ok
}

// leaveWait is how long a peer that is to close first may take. Who closes first keeps the pair of ports
// occupied for a while, and here ports are what runs out.
const leaveWait = 200 * time.Millisecond

func (c *conn) isGone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gone
}

// quit ends an idle connection: its reader closes it.
func (c *conn) quit() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken = true
	if c.end3 != nil {
		c.end3()
		return
	}
	_ = c.nc.SetReadDeadline(past)
}

// end records the arrival that is on its way. c.mu is held and is given back.
func (c *conn) end(o record.Outcome, now time.Duration) {
	s := &c.sample
	s.Outcome, s.Done = o, max(now, s.Sent)
	if o == record.Answered && s.Done > s.Due+c.p.cfg.Limits.Timeout { // the deadline's own wake-up is on its way
		o = c.p.overtime(s, true)
		s.Outcome = o
	}
	if o == record.TimedOut {
		expired(s, c.p.cfg.Limits.Timeout)
	}
	if o == record.Answered {
		s.Status = uint16(c.parser.Status())
		s.Expected = c.check.named()
		if err := c.check.wrong(c.parser.Status()); err != nil {
			s.Outcome = record.CheckFailed
			c.p.why(answering, err)
		}
	}
	c.inFlight = false
	done := *s
	c.mu.Unlock()
	c.p.record(&done)
}

// classify tells what the end of a connection means for the request on its way. c.mu is held.
func (c *conn) classify(err error) record.Outcome {
	some := c.sample.BytesIn > 0
	switch {
	case c.gone:
		return record.Abandoned
	case c.writeErr == nil && isTimeout(err):
		return c.p.overtime(&c.sample, some)
	default:
		return brokenOutcome(err, some, c.writeErr != nil)
	}
}

// abandon closes the connection at the end of the run.
func (c *conn) abandon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = true
	if c.end3 != nil {
		c.end3()
	}
	if c.nc != nil {
		_ = c.nc.Close()
	}
}
