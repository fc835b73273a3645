package httpload

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"seatrial/engine"
	"seatrial/engine/httpload/http2"
	"seatrial/record"
	"seatrial/schedule"
)

// Portable sends the schedule with one goroutine per connection, on every system (EG-5). It returns
// when every arrival that was released has exactly one sample.
//
// An arrival that is due takes the connection that fell idle last, or a new one up to
// Limits.MaxConnections, or waits in a queue in order of due time; the wait is inside the response
// time. One that finds no connection within its time-out becomes UnsentLimit. No answer, however
// slow, delays what is due next.
//
// When ctx ends, nothing more is written: what waits becomes UnsentStop, the rest of the schedule is not
// released any more, and what is on its way is waited for during StopDrain and is then Abandoned.
//
// A request is never sent twice. When a server closes an idle connection in the very moment in which
// a request is written on it, that request is a Reset.
func Portable(ctx context.Context, cfg Config) (*Result, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	p, err := newPortable(cfg)
	if err != nil {
		return nil, err
	}
	stopped := make(chan struct{})
	watch := make(chan struct{})
	go func() {
		defer close(watch)
		select {
		case <-ctx.Done():
			p.halt()
		case <-stopped:
		}
	}()
	expiry := make(chan struct{})
	go func() { defer close(expiry); p.expire(stopped) }()
	var second sync.WaitGroup
	if cfg.Connections.Arrivals != nil {
		second.Go(func() { p.arrivals(ctx) })
	}
	p.dispatch(ctx)
	second.Wait()
	p.settle(ctx)
	close(stopped)
	<-watch
	<-expiry
	p.closeAll()
	p.goroutines.Wait()
	return p.result(), nil
}

// portable is one running engine.
type portable struct {
	cfg    Config
	epoch  engine.Epoch
	tls    *security
	out    *writer
	dialer context.Context // ends at a stop, so that connecting ends too
	undial context.CancelFunc

	two   *http2.Client
	dials atomic.Uint64 // TLS handshakes begun

	aim   sync.Mutex
	where endpoint

	pending    sync.WaitGroup // arrivals released and not yet recorded; connections of their schedule that do not stand yet
	goroutines sync.WaitGroup // connections and senders
	stopped    atomic.Bool    // nothing more is written

	mu       sync.Mutex
	conns    map[*conn]struct{} // every open or opening connection
	idle     []*conn            // the last one fell idle last; may hold dead ones
	shared   []*lane            // connections that carry several requests; the last one was opened last
	queue    queue
	openings int // connections that do not stand yet
	streams  int // requests that a new connection will take at once: 1 unless HTTP/2 or 3 is known to be spoken
	peak     int
	observed Result // what is not counted below

	saying  sync.Mutex // reasons; it may be taken with any other lock held
	reasons Reasons

	released, limitHit, ports, fds, rate, discarded, in, bytesOut atomic.Uint64
}

func newPortable(cfg Config) (*portable, error) {
	two, err := cfg.newClient()
	if err != nil {
		return nil, err
	}
	p := &portable{cfg: cfg, epoch: engine.NewEpoch(cfg.Epoch), tls: cfg.newSecurity(), two: two, where: newEndpoint(&cfg), streams: 1, conns: map[*conn]struct{}{}}
	if cfg.HTTP == HTTP2 || cfg.HTTP == HTTP2Prior || cfg.HTTP == HTTP3 {
		p.streams = cfg.Connections.Streams
	}
	p.out = newWriter(&p.cfg, uint64(p.epoch.Start().UnixNano()))
	p.dialer, p.undial = context.WithCancel(context.Background())
	return p, nil
}

// nextAddr gives where the next connection goes, and the address that it comes from; nil for the
// system's choice.
func (p *portable) nextAddr() (network, addr string, from net.Addr) {
	p.aim.Lock()
	defer p.aim.Unlock()
	to, local := p.where.next()
	if p.where.unix != "" {
		return "unix", p.where.unix, nil
	}
	if local.IsValid() {
		from = &net.TCPAddr{IP: local.AsSlice(), Zone: local.Zone()}
	}
	return "tcp", to.String(), from
}

// waiting is an arrival and the moment from which it waits for a connection.
type waiting struct {
	schedule.Arrival
	since  time.Duration
	held   time.Duration // of the time since then: what the generator's own work took from it
	found  bool          // a connection was idle: no wait
	fresh  bool          // it is to be sent on a connection of its own
	resent uint8
}

// queue is a FIFO ring that gives memory back when it has drained.
type queue struct {
	ring []waiting
	head int
	n    int
}

func (q *queue) push(w waiting) {
	q.room()
	q.ring[(q.head+q.n)%len(q.ring)] = w
	q.n++
}

// unpop puts an arrival in front of all others.
func (q *queue) unpop(w waiting) {
	q.room()
	q.head = (q.head + len(q.ring) - 1) % len(q.ring)
	q.ring[q.head] = w
	q.n++
}

func (q *queue) room() {
	if q.n < len(q.ring) {
		return
	}
	bigger := make([]waiting, max(64, 2*len(q.ring)))
	for i := range q.n {
		bigger[i] = q.ring[(q.head+i)%len(q.ring)]
	}
	q.ring, q.head = bigger, 0
}

func (q *queue) pop() (waiting, bool) {
	if q.n == 0 {
		return waiting{}, false
	}
	w := q.ring[q.head]
	q.head = (q.head + 1) % len(q.ring)
	if q.n--; q.n == 0 && len(q.ring) > 1<<16 {
		*q = queue{}
	}
	return w, true
}

// dispatch releases each arrival when it is due, until the end or a stop.
func (p *portable) dispatch(ctx context.Context) {
	w := engine.NewWaiter(p.epoch)
	defer w.Stop()
	var r Request // its buffers are reused
	for a, ok := p.cfg.Schedule.Next(); ok; a, ok = p.cfg.Schedule.Next() {
		if p.stopped.Load() || !w.Until(ctx, a.Due) {
			p.halt()
			return
		}
		if a.Index == schedule.Later {
			if !w.Until(ctx, p.epoch.Now()+schedule.LaterWait) {
				p.halt()
				return
			}
			continue
		}
		p.released.Add(1)
		p.pending.Add(1)
		p.release(a, &r)
	}
}

// release hands over one arrival that is due.
func (p *portable) release(a schedule.Arrival, r *Request) {
	p.cfg.Requests.At(a.Index, r)
	if !sendable(r) {
		p.refuse(a, r.Route, record.UnsentPolicy)
		return
	}
	if !p.cfg.Target.Release().Allow() {
		p.rate.Add(1)
		p.refuse(a, r.Route, record.UnsentRate)
		return
	}
	p.assign(waiting{Arrival: a, since: p.epoch.Now(), fresh: p.cfg.fresh(a.Index)})
}

// assign gives an arrival to an idle connection, a new one, or the queue.
func (p *portable) assign(w waiting) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.stopped.Load():
		p.unsent(w.Arrival, new(Request), record.UnsentStop)
	case w.fresh && (len(p.conns) < p.cfg.Limits.MaxConnections || p.evictLocked(nil)):
		if p.dial(w, true); !p.cfg.single() {
			p.evictLocked(nil)
		}
	case !w.fresh && p.reuse(w):
	default:
		p.queue.push(w)
		if len(p.conns) < p.cfg.Limits.MaxConnections {
			p.demand()
		} else {
			p.limitHit.Add(1)
		}
	}
}

// reuse gives an arrival to a connection that takes it; false when there is none. p.mu is held.
func (p *portable) reuse(w waiting) bool {
	w.found = w.since >= 0
	for len(p.idle) > 0 {
		c := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		if c.state.CompareAndSwap(stateIdle, stateBusy) {
			c.given = w
			p.goroutines.Add(1)
			go c.send()
			return true
		}
	}
	for i := len(p.shared) - 1; i >= 0; i-- {
		if p.shared[i].takes() {
			p.hand(p.shared[i], w)
			return true
		}
	}
	return false
}

// hand gives an arrival to a connection with room for it. p.mu is held.
func (p *portable) hand(x *lane, w waiting) {
	x.load++
	x.used = true
	p.goroutines.Add(1)
	go func() { defer p.goroutines.Done(); x.send(w) }()
}

// dial opens a connection. p.mu is held.
func (p *portable) dial(w waiting, asked bool) {
	c := newConn(p, asked)
	p.conns[c] = struct{}{}
	p.peak = max(p.peak, len(p.conns))
	p.openings++
	p.goroutines.Add(1)
	go c.run(w)
}

// demand opens connections while arrivals wait for one that none is on its way for. p.mu is held.
func (p *portable) demand() {
	for p.queue.n > p.openings*(p.streams-1) && len(p.conns) < p.cfg.Limits.MaxConnections {
		w, ok := p.first()
		if !ok {
			return
		}
		p.dial(w, true)
	}
}

// stands notes that the opening of a connection has ended, and how.
func (p *portable) stands(c *conn, two bool, o record.Outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.openings--
	if o != record.Answered {
		if o != record.UnsentStop {
			p.observed.ConnFailed++
			p.why(c.doing, c.cause)
		}
		return
	}
	p.observed.opened(c.connect, c.shake)
	p.streams = 1
	switch {
	case p.cfg.HTTP == HTTP3:
		p.observed.HTTP3++
	case !two:
		p.observed.HTTP1++
	}
	if two || p.cfg.HTTP == HTTP3 {
		if !p.cfg.single() {
			p.streams = p.cfg.Connections.Streams
		}
	}
}

// overtime gives the outcome of a request that a time-out ends now; some says that a part of the answer
// has come.
func (p *portable) overtime(s *record.Sample, some bool) record.Outcome {
	now, l := p.epoch.Now(), &p.cfg.Limits
	if first := s.Sent + l.FirstByte; !some && l.FirstByte < l.Timeout && first < s.Due+l.Timeout {
		return missed(record.TimedOutFirst, record.Unwatched, first, now)
	}
	return missed(record.TimedOut, record.Unwatched, s.Due+l.Timeout, now)
}

// why counts a failure.
func (p *portable) why(doing string, err error) {
	p.saying.Lock()
	defer p.saying.Unlock()
	p.reasons.note(doing, err)
}

// broke counts an answer that the end of its connection cut off or kept from coming.
func (p *portable) broke(o record.Outcome, err error) {
	p.saying.Lock()
	defer p.saying.Unlock()
	p.reasons.broke(o, err)
}

// next gives the arrival that waits longest; without one the connection falls idle. One that wants a
// connection of its own has this one end.
func (p *portable) next(c *conn) (waiting, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w, ok := p.first()
	switch {
	case !ok:
		c.state.Store(stateIdle)
		p.idle = append(p.idle, c)
	case w.fresh && c.used:
		p.queue.unpop(w)
		c.quit()
		return waiting{}, false
	}
	return w, ok
}

// after forgets a connection that has ended, and opens others while arrivals wait.
func (p *portable) after(c *conn) {
	c.writing.Lock()
	c.buf, c.out = nil, nil // the idle stack may hold it for a while
	c.writing.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
	p.demand()
}

// crowded tells whether an arrival waits for a connection because of the limit.
func (p *portable) crowded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue.n > 0 && len(p.conns) >= p.cfg.Limits.MaxConnections
}

// first takes the arrival that waits longest and is not past its time-out. p.mu is held.
func (p *portable) first() (waiting, bool) {
	for {
		w, ok := p.queue.pop()
		if !ok || p.epoch.Now() < w.Due+p.cfg.Limits.Timeout {
			return w, ok
		}
		p.overdue(w)
	}
}

// overdue ends an arrival that waited for a connection until its time-out.
func (p *portable) overdue(w waiting) {
	var r Request
	p.cfg.Requests.At(w.Index, &r)
	s := unmet(w, r.Route, p.cfg.Limits.Timeout, p.epoch.Now())
	p.record(&s)
}

// expireEvery is how often the queue is searched for arrivals past their time-out. Their samples say
// when the time-out was, so that this is not seen in any figure.
const expireEvery = noticed / 2

// expire ends queued arrivals that no connection comes free for.
func (p *portable) expire(stop <-chan struct{}) {
	tick := time.NewTicker(expireEvery)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		p.mu.Lock()
		for p.queue.n > 0 {
			w := p.queue.ring[p.queue.head]
			if p.epoch.Now() < w.Due+p.cfg.Limits.Timeout {
				break
			}
			p.queue.pop()
			p.overdue(w)
		}
		p.mu.Unlock()
	}
}

// halt stops all writing, and ends what waits for a connection.
func (p *portable) halt() {
	p.mu.Lock()
	if p.stopped.Swap(true) {
		p.mu.Unlock()
		return
	}
	drop := p.queue
	p.queue = queue{}
	p.mu.Unlock()
	p.undial()
	var r Request
	for w, ok := drop.pop(); ok; w, ok = drop.pop() {
		p.unsent(w.Arrival, &r, record.UnsentStop)
	}
}

// settle waits until every released arrival is recorded; after a stop no longer than StopDrain.
func (p *portable) settle(ctx context.Context) {
	all := make(chan struct{})
	go func() { p.pending.Wait(); close(all) }()
	select {
	case <-all:
		return
	case <-ctx.Done():
		p.halt()
	}
	drain := time.NewTimer(max(0, p.cfg.StopDrain))
	defer drain.Stop()
	select {
	case <-all:
	case <-drain.C:
		p.closeAll()
		<-all
	}
}

// closeAll closes every connection; what is on its way there is Abandoned.
func (p *portable) closeAll() {
	p.stopped.Store(true)
	p.undial()
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.abandon()
	}
}

func (p *portable) unsent(a schedule.Arrival, r *Request, o record.Outcome) {
	p.cfg.Requests.At(a.Index, r)
	p.refuse(a, r.Route, o)
}

// refuse records an arrival that is not sent.
func (p *portable) refuse(a schedule.Arrival, route uint32, o record.Outcome) {
	p.record(&record.Sample{Index: a.Index, Route: route, Outcome: o, Due: a.Due, Done: max(a.Due, p.epoch.Now())})
}

// record ends an arrival.
func (p *portable) record(s *record.Sample) {
	p.in.Add(s.BytesIn)
	p.bytesOut.Add(s.BytesOut)
	p.cfg.Recorder.Add(s)
	p.pending.Done()
}

func (p *portable) result() *Result {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.observed
	r.Released, r.ConnPeak, r.ConnLimitHit = p.released.Load(), p.peak, p.limitHit.Load()
	r.PortsExhausted, r.FDExhausted, r.RateLimited, r.Discarded = p.ports.Load(), p.fds.Load(), p.rate.Load(), p.discarded.Load()
	r.BytesIn, r.BytesOut = p.in.Load(), p.bytesOut.Load()
	p.saying.Lock()
	defer p.saying.Unlock()
	r.Why = p.reasons
	return &r
}
