package httpload

import (
	"errors"
	"sync"
	"time"

	"seatrial/engine/httpload/http2"
	"seatrial/record"
)

// lane is what the portable engine knows of a connection that carries several requests at once. Its mu
// guards all but the first two.
type lane struct {
	p *portable
	c *conn

	send        func(waiting) // begins a request, or ends or gives back its arrival; its place was taken by hand
	load, limit int           // requests that were handed over and have not ended; the most there may be
	used        bool          // one was handed over
	over        bool          // it takes no more
	full        bool          // it takes no more until something was written
}

// takes tells whether there is room for a request. The engine's mu is held.
func (x *lane) takes() bool {
	return !x.over && !x.full && x.load < x.limit && !(x.used && x.p.cfg.single())
}

// spent tells whether the one request that this connection was for has ended.
func (x *lane) spent() bool {
	x.p.mu.Lock()
	defer x.p.mu.Unlock()
	return x.p.cfg.single() && x.used && x.load == 0
}

// enter offers a connection that stands to what it was opened for, and to what waits.
func (p *portable) enter(x *lane, w waiting) {
	p.mu.Lock()
	p.shared = append(p.shared, x)
	if x.c.asked {
		p.hand(x, w)
	}
	p.fill(x)
	p.mu.Unlock()
	if !x.c.asked {
		p.evict(x.c)
	}
}

// admitted tells whether an arrival's request may be written now; otherwise it has ended it.
func (p *portable) admitted(w waiting, now time.Duration) bool {
	switch {
	case p.stopped.Load():
		p.unsent(w.Arrival, new(Request), record.UnsentStop)
	case now >= w.Due+p.cfg.Limits.Timeout:
		p.overdue(w)
	case !p.cfg.Target.Write().Allow():
		p.rate.Add(1)
		p.unsent(w.Arrival, new(Request), record.UnsentRate)
	default:
		return true
	}
	return false
}

// streams is an HTTP/2 connection of the portable engine: a reader, a writer, and a goroutine for each
// request while it is handed over.
type streams struct {
	*lane

	mu       sync.Mutex // everything below
	m        *multiplex
	connect  time.Duration // for the first request
	shake    time.Duration
	writeErr error
	ended    bool           // nothing more can be opened
	fate     record.Outcome // of what was handed over when it had ended without a word
	kick     chan struct{}  // something is to be written
	closed   chan struct{}  // nothing ever will be
}

func newStreams(c *conn) *streams {
	x := &streams{lane: &lane{p: c.p, c: c}, m: newMultiplex(c.p.two, c.p.out), connect: c.connect, shake: c.shake, kick: make(chan struct{}, 1), closed: make(chan struct{})}
	x.limit, x.send = x.m.conn.Streams(), x.begin
	return x
}

// serve carries requests until the connection ends.
func (x *streams) serve(w waiting) {
	written := make(chan struct{})
	go func() { defer close(written); x.write() }()
	x.p.enter(x.lane, w)
	x.wake()
	buf := make([]byte, lastBuffer)
	for {
		n, err := x.c.nc.Read(buf)
		if !x.got(buf[:n], err) {
			break
		}
	}
	x.p.leave(x.lane)
	_ = x.c.nc.SetWriteDeadline(time.Now().Add(afterWriteError)) // for a last word
	close(x.closed)
	<-written
}

// wake has the writer look at what is to be written.
func (x *streams) wake() {
	select {
	case x.kick <- struct{}{}:
	default:
	}
}

// write writes frames whenever there are any.
func (x *streams) write() {
	var b []byte
	for {
		select {
		case <-x.kick:
		case <-x.closed:
			x.flush(b)
			return
		}
		b = x.flush(b)
	}
}

// flush writes all frames that there are, through b.
func (x *streams) flush(b []byte) []byte {
	for {
		x.mu.Lock()
		b = append(b[:0], x.m.conn.Out()...)
		x.m.conn.Advance(len(b)) // before it is written: what the peer may have seen is never sent again
		x.m.sent(x.p.epoch.Now())
		failed := x.writeErr != nil
		x.mu.Unlock()
		if len(b) == 0 || failed {
			return b
		}
		if _, err := x.c.nc.Write(b); err != nil {
			x.mu.Lock()
			x.writeErr = err
			_ = x.c.nc.SetReadDeadline(time.Now().Add(afterWriteError)) // the peer may have said why
			x.mu.Unlock()
			continue
		}
		x.p.relieve(x.lane)
	}
}

// relieve lets requests in again after something was written.
func (p *portable) relieve(x *lane) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if x.full {
		x.full = false
		p.fill(x)
	}
}

// begin opens a request on the connection.
func (x *streams) begin(w waiting) {
	p := x.p
	f := &flight{}
	p.cfg.Requests.At(w.Index, &f.req)
	if now := p.epoch.Now(); p.admitted(w, now) {
		switch err := x.open(f, w, now); {
		case err == nil:
			x.wake()
			return
		case errors.Is(err, http2.ErrRequest):
			p.unsent(w.Arrival, new(Request), record.UnsentPolicy)
		case errors.Is(err, errNeverSpoke):
			p.record(&f.sample)
		case errors.Is(err, http2.ErrBusy):
			p.mu.Lock()
			x.full = true
			p.mu.Unlock()
			p.again(w)
		default:
			p.again(w)
		}
	}
	p.ended(x.lane, 1)
}

// errNeverSpoke says that a peer ended a connection without having said a word of HTTP/2 on it. What
// was to be sent there fails as what was sent there did: otherwise it would look for another such
// connection for ever.
var errNeverSpoke = errors.New("httpload: the connection ended without a word")

func (x *streams) open(f *flight, w waiting, now time.Duration) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	f.begin(w, now)
	switch {
	case x.ended && !x.m.spoke:
		f.sample.Outcome, f.sample.Done = x.fate, now
		f.sample.Connect, f.sample.TLS = x.connect, x.shake
		return errNeverSpoke
	case x.ended:
		return http2.ErrDraining
	}
	f.sample.Connect, f.sample.TLS = x.connect, x.shake
	if err := x.m.open(f); err != nil {
		return err
	}
	x.connect, x.shake = 0, 0
	f.timer = time.AfterFunc(min(w.Due+x.p.cfg.Limits.Timeout, now+x.p.cfg.Limits.FirstByte)-now, func() { x.expired(f) })
	return nil
}

// got handles what one read gave; false when the connection is to be closed.
func (x *streams) got(b []byte, err error) bool {
	p := x.p
	now := p.epoch.Now()
	x.mu.Lock()
	var violated error
	var over []*flight
	idle := x.m.conn.Idle()
	if len(b) > 0 {
		violated = x.m.feed(b, now)
		if violated != nil {
			p.why(answering, violated)
			x.fate = record.InvalidResponse
		} else if x.m.speaks() {
			p.spoke()
		}
		over = x.happened(over, now, violated)
	}
	if err != nil && violated == nil {
		x.fate = brokenOutcome(err, false, false)
		if !x.m.conn.Idle() || !x.m.spoke {
			p.broke(x.fate, err)
		}
		x.m.ended()
		over = x.happened(over, now, err)
	}
	open := err == nil && violated == nil && !(x.m.conn.Idle() && x.m.conn.Draining())
	limit, draining := x.m.conn.Streams(), x.m.conn.Draining()
	if !open {
		x.ended = true
	}
	x.mu.Unlock()
	if violated != nil && idle {
		p.discarded.Add(1)
	}
	x.settle(over, limit, draining || !open)
	x.wake()
	return open && !x.spent()
}

// happened acts on the events of the connection and adds the requests that have ended. x.mu is held.
func (x *streams) happened(over []*flight, now time.Duration, cause error) []*flight {
	for i := range x.m.events {
		f, what := x.m.apply(&x.m.events[i], now, cause, x.writeErr != nil)
		switch what {
		case begun:
			f.timer.Reset(f.sample.Due + x.p.cfg.Limits.Timeout - now)
		case ended, unseen:
			f.over = true
			f.timer.Stop()
			f.again = what == unseen
			if x.c.isGone() && cause != nil {
				f.again, f.sample.Outcome = false, record.Abandoned
			}
			over = append(over, f)
		}
	}
	return over
}

// spoke counts a connection on which the peer has spoken HTTP/2.
func (p *portable) spoke() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.observed.HTTP2++
}

// settle records what has ended and lets others in. x.mu is not held.
func (x *streams) settle(over []*flight, limit int, draining bool) {
	p := x.p
	p.mu.Lock()
	x.limit, x.full = limit, false
	x.over = x.over || draining
	p.mu.Unlock()
	for _, f := range over {
		if f.again {
			f.w.resent++
			p.again(f.w)
		} else {
			if f.sample.Outcome == record.CheckFailed {
				p.why(answering, f.wrong)
			}
			p.record(&f.sample)
		}
	}
	p.ended(x.lane, len(over))
}

// expired ends a request at its time-out.
func (x *streams) expired(f *flight) {
	p := x.p
	x.mu.Lock()
	if f.over || x.ended {
		x.mu.Unlock()
		return
	}
	now, s := p.epoch.Now(), &f.sample
	if s.FirstByte > 0 && now < s.Due+p.cfg.Limits.Timeout { // it came while this waited for its turn
		x.mu.Unlock()
		return
	}
	s.Outcome, s.Done = p.overtime(s, s.FirstByte > 0), max(now, s.Sent)
	if s.Outcome == record.TimedOut {
		expired(s, p.cfg.Limits.Timeout)
	}
	silent := s.Sent > x.m.lastIn
	x.m.cancel(f)
	f.over = true
	if silent { // ever since it was sent: the connection is trusted with no other
		x.m.conn.Shutdown()
	}
	limit, draining := x.m.conn.Streams(), x.m.conn.Draining()
	last := draining && x.m.conn.Idle()
	x.mu.Unlock()
	x.settle([]*flight{f}, limit, draining)
	x.wake()
	if last || x.spent() {
		x.c.quit()
	}
}

// again puts a request that no peer has looked at back to the front of the queue.
func (p *portable) again(w waiting) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped.Load() {
		p.unsent(w.Arrival, new(Request), record.UnsentStop)
		return
	}
	if w.resent > 0 {
		p.observed.Resent++
	}
	w.found = false
	p.queue.unpop(w)
	p.demand()
}

// ended notes that n requests of a connection have ended.
func (p *portable) ended(x *lane, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x.load -= n
	p.fill(x)
}

// fill gives a connection what waits. p.mu is held.
func (p *portable) fill(x *lane) {
	for x.takes() {
		w, ok := p.first()
		switch {
		case !ok:
			return
		case w.fresh && x.used && x.load == 0:
			x.over = true
			p.queue.unpop(w)
			x.c.quit()
			return
		}
		w.fresh = false
		p.hand(x, w)
	}
	p.demand()
}

// leave forgets a connection that has ended.
func (p *portable) leave(x *lane) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x.over = true
	for i, s := range p.shared {
		if s == x {
			p.shared = append(p.shared[:i], p.shared[i+1:]...)
			return
		}
	}
}
