package httpload

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"seatrial/engine"
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
	p := newPortable(cfg)
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
	p.dispatch(ctx)
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

	addrs    []string
	nextAddr atomic.Uint32

	pending    sync.WaitGroup // arrivals released and not yet recorded
	goroutines sync.WaitGroup // connections and senders
	stopped    atomic.Bool    // nothing more is written

	mu    sync.Mutex
	conns map[*conn]struct{} // every open or opening connection
	idle  []*conn            // the last one fell idle last; may hold dead ones
	queue queue
	peak  int

	released, opened, limitHit, ports, fds, rate, discarded, in, bytesOut atomic.Uint64
}

func newPortable(cfg Config) *portable {
	p := &portable{cfg: cfg, epoch: engine.NewEpoch(cfg.Epoch), tls: cfg.newSecurity(), conns: map[*conn]struct{}{}}
	p.out = newWriter(&p.cfg, uint64(p.epoch.Start().UnixNano()))
	p.dialer, p.undial = context.WithCancel(context.Background())
	for _, a := range cfg.Target.Addrs() {
		p.addrs = append(p.addrs, a.String())
	}
	return p
}

// waiting is an arrival and the moment from which it waits for a connection.
type waiting struct {
	schedule.Arrival
	since  time.Duration
	found  bool // a connection was idle: no wait
	fresh  bool // it is to be sent on a connection of its own
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
	p.assign(waiting{Arrival: a, since: p.epoch.Now()})
}

// assign gives an arrival to an idle connection, a new one, or the queue.
func (p *portable) assign(w waiting) {
	p.mu.Lock()
	if p.stopped.Load() {
		p.mu.Unlock()
		p.unsent(w.Arrival, new(Request), record.UnsentStop)
		return
	}
	for len(p.idle) > 0 {
		c := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		if c.state.CompareAndSwap(stateIdle, stateBusy) {
			w.found = w.since >= 0
			c.given = w
			p.goroutines.Add(1)
			p.mu.Unlock()
			go c.send()
			return
		}
	}
	if len(p.conns) < p.cfg.Limits.MaxConnections {
		c := newConn(p)
		p.conns[c] = struct{}{}
		p.peak = max(p.peak, len(p.conns))
		p.goroutines.Add(1)
		p.mu.Unlock()
		go c.run(w)
		return
	}
	p.limitHit.Add(1)
	p.queue.push(w)
	p.mu.Unlock()
}

// next gives the arrival that waits longest; without one the connection falls idle.
func (p *portable) next(c *conn) (waiting, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w, ok := p.first()
	if !ok {
		c.state.Store(stateIdle)
		p.idle = append(p.idle, c)
	}
	return w, ok
}

// after replaces a connection that has ended when an arrival waits, and else forgets it.
func (p *portable) after(c *conn) (*conn, waiting, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
	c.buf, c.out = nil, nil // the idle stack may hold it for a while
	w, ok := p.first()
	if ok {
		c = newConn(p)
		p.conns[c] = struct{}{}
	}
	return c, w, ok
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
	done := w.Due + p.cfg.Limits.Timeout
	p.record(&record.Sample{Index: w.Index, Route: r.Route, Outcome: record.UnsentLimit, Due: w.Due, Done: done,
		Wait: max(0, done-w.since)})
}

// expireEvery is how often the queue is searched for arrivals past their time-out. Their samples say
// when the time-out was, so that this is not seen in any figure.
const expireEvery = 20 * time.Millisecond

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
	return &Result{Released: p.released.Load(), ConnPeak: p.peak, ConnOpened: p.opened.Load(), ConnLimitHit: p.limitHit.Load(),
		PortsExhausted: p.ports.Load(), FDExhausted: p.fds.Load(), RateLimited: p.rate.Load(), Discarded: p.discarded.Load(),
		BytesIn: p.in.Load(), BytesOut: p.bytesOut.Load()}
}
