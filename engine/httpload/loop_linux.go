package httpload

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"seatrial/engine"
	"seatrial/engine/httpload/http2"
	"seatrial/record"
	"seatrial/schedule"
)

// HasLoop tells whether Loop works on this system.
const HasLoop = true

// Loop sends the schedule from one thread with its own epoll instance, connections, idle stack, queue
// and clock (EG-1). Several loops with slices of one schedule use several cores; they share nothing.
// In steady state a request costs two system calls and its share of a wait, and no allocation, channel
// or lock.
//
// What it promises is what Portable promises, and one suite of tests holds both to it.
func Loop(ctx context.Context, cfg Config) (*Result, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if cfg.HTTP == HTTP3 {
		return nil, ErrLoopHTTP3
	}
	l, err := newLoop(cfg)
	if err != nil {
		return nil, err
	}
	stopped := make(chan struct{})
	watch := make(chan struct{})
	go func() {
		defer close(watch)
		select {
		case <-ctx.Done():
			l.halt.Store(true)
			l.poll.Wake()
		case <-stopped:
		}
	}()
	l.halt.Store(ctx.Err() != nil)
	free := engine.TakeThread()
	l.run()
	free()
	close(stopped)
	<-watch
	l.signing.Wait()
	l.poll.close()
	return &l.result, nil
}

// ErrLoopHTTP3 says that the event loop does not speak HTTP/3.
var ErrLoopHTTP3 = errors.New("httpload: HTTP/3 is sent by the portable engine")

// loop is one running engine. Everything belongs to its one goroutine but signatures.
type loop struct {
	cfg   Config
	epoch engine.Epoch
	out   *writer
	tls   *security
	two   *http2.Client // for connections that speak HTTP/2
	poll  *poller
	where endpoint

	conns    []*loopConn // by slot; nil where none is
	born     int32       // connections made until now: their generation
	filling  bool        // demand is at work
	late     []*loopConn // whose write failed in this round
	unread   []*loopConn // which have more to read than one round has time for
	spare    []*loopConn // for the next ones
	dirty    []*loopConn // with HTTP/2 frames to write in this round
	slots    []int32     // free ones
	flights  []*flight   // free ones, for HTTP/2
	open     int
	openings int         // connections that do not stand yet
	streams  int         // requests that a new connection will take at once: 1 unless HTTP/2 is known to be spoken
	idle     []*loopConn // can take a request; the last one fell idle last; may hold others
	queue    queue
	ends     deadlines // of requests, from their due time
	dials    deadlines // of connects
	shake    deadlines // of handshakes
	bytes    deadlines // of first bytes
	resid    deadlines // of the answers that may still come after a write failed, and of the peer's close

	next    schedule.Arrival // the next one that the schedule gives
	more    bool
	coming  schedule.Arrival // the next connection that its schedule gives
	comes   bool
	unasked int // connections of that schedule that do not stand yet
	pending int // released and not yet recorded
	stopped bool
	drain   time.Duration // when waiting for answers ends after a stop

	batch  []record.Sample
	flushd time.Duration
	req    Request // its buffers are reused
	buf    []byte
	result Result

	shaking  []handshake // that can go on
	shakers  []*shaker   // free ones
	stepping *loopConn   // whose handshake is at work

	halt    atomic.Bool // stop as soon as possible
	signing sync.WaitGroup
	mu      sync.Mutex
	signed  []handshake // whose signature is made
}

// batchSize is how many samples are handed to the recorder together, and flushEvery how long one may
// wait for that.
const (
	batchSize  = 256
	flushEvery = 20 * time.Millisecond
)

// batchRecorder is a Recorder that takes many samples at once.
type batchRecorder interface{ AddAll([]record.Sample) }

func newLoop(cfg Config) (*loop, error) {
	two, err := cfg.newClient()
	if err != nil {
		return nil, err
	}
	p, err := newPoller()
	if err != nil {
		return nil, err
	}
	l := &loop{cfg: cfg, epoch: engine.NewEpoch(cfg.Epoch), tls: cfg.newSecurity(), two: two, poll: p, where: newEndpoint(&cfg), streams: 1,
		conns: make([]*loopConn, 1), buf: make([]byte, lastBuffer), batch: make([]record.Sample, 0, batchSize)}
	if cfg.HTTP == HTTP2 || cfg.HTTP == HTTP2Prior {
		l.streams = cfg.Connections.Streams
	}
	if l.tls != nil {
		l.tls.sign(l.signBeside)
	}
	l.out = newWriter(&l.cfg, uint64(l.epoch.Start().UnixNano()))
	l.draw(0)
	if cfg.Connections.Arrivals != nil {
		l.coming, l.comes = cfg.Connections.Arrivals.Next()
	}
	return l, nil
}

// run works until every arrival that was released has been recorded.
func (l *loop) run() {
	for {
		now := l.epoch.Now()
		if !l.stopped && l.halt.Load() {
			l.stop(now)
		}
		l.expire(now)
		again := l.release(now)
		l.arrivals(now)
		if !l.more && l.pending == 0 && !l.comes && l.unasked == 0 {
			break
		}
		l.writeDirty()
		l.flush(now, false)
		wait := time.Duration(0)
		if !again {
			wait = l.until() - l.epoch.Now()
		}
		if l.cfg.Precise && wait > spin {
			wait -= spin
		} else if l.cfg.Precise {
			wait = 0
		}
		if len(l.late) > 0 || len(l.dirty) > 0 || len(l.shaking) > 0 || len(l.unread) > 0 {
			wait = 0
		}
		events := l.poll.wait(wait)
		l.readOn() // before the events, which may add to what is left
		for _, e := range events {
			l.handle(e)
		}
		l.readLate()
		l.shakeOne()
	}
	l.flush(0, true)
	for _, c := range l.conns {
		if c != nil {
			l.drop(c)
		}
	}
	for _, s := range l.shakers {
		s.stop()
	}
}

// releaseBatch is how many arrivals are released before the network is looked at again: a connection
// that was closed meanwhile must not be taken for an idle one.
const releaseBatch = 32

// release hands over what is due. It is true when it left some of that for the next round.
func (l *loop) release(now time.Duration) bool {
	for n := 0; l.more; n++ {
		a := l.next
		switch {
		case a.Due > now:
			return false
		case n == releaseBatch:
			return true
		case a.Index == schedule.Later:
			l.draw(now)
			continue
		}
		l.result.Released++
		l.pending++
		l.draw(now)
		l.hand(a)
	}
	return false
}

// draw takes the next arrival off the schedule.
func (l *loop) draw(now time.Duration) {
	if l.next, l.more = l.cfg.Schedule.Next(); l.next.Index == schedule.Later {
		l.next.Due = now + schedule.LaterWait
	}
}

// hand gives an arrival that is due to an idle connection, a new one, or the queue.
func (l *loop) hand(a schedule.Arrival) {
	l.cfg.Requests.At(a.Index, &l.req)
	if !sendable(&l.req) {
		l.refuse(a, l.req.Route, record.UnsentPolicy)
		return
	}
	if !l.cfg.Target.Release().Allow() {
		l.result.RateLimited++
		l.refuse(a, l.req.Route, record.UnsentRate)
		return
	}
	w := waiting{Arrival: a, since: l.epoch.Now(), fresh: l.cfg.fresh(a.Index)}
	if w.fresh && (l.open < l.cfg.Limits.MaxConnections || l.evict(nil)) {
		if l.dial(w, true); !l.cfg.single() {
			l.evict(nil)
		}
		return
	}
	if !w.fresh && l.reuse(w) {
		return
	}
	l.queue.push(w)
	if l.open < l.cfg.Limits.MaxConnections {
		l.demand()
	} else {
		l.result.ConnLimitHit++
	}
}

// reuse gives an arrival to the connection that fell idle last; false when none can take it.
func (l *loop) reuse(w waiting) bool {
	for n := len(l.idle); n > 0; n = len(l.idle) {
		c := l.idle[n-1]
		if c.mux == nil || !c.takes() {
			l.idle[n-1] = nil
			l.idle = l.idle[:n-1]
			c.listed = false
		}
		if c.takes() {
			w.found = w.since >= 0
			l.begin(c, w)
			return true
		}
	}
	return false
}

// evict closes the connection that has been idle longest, but not this one; false when there is none.
func (l *loop) evict(but *loopConn) bool {
	for k, c := range l.idle {
		if c == but || !c.rests() {
			continue
		}
		n := k // those before it stay, but for the closed ones
		for i := k - 1; i >= 0; i-- {
			if l.idle[i].state != loopClosed {
				l.idle[n] = l.idle[i]
				n--
			}
		}
		clear(l.idle[:n+1])
		l.idle = l.idle[n+1:]
		c.listed = false
		l.drop(c)
		return true
	}
	return false
}

// demand opens connections while arrivals wait for one that none is on its way for.
func (l *loop) demand() {
	if l.filling {
		return // a connect that fails at once must not nest
	}
	l.filling = true
	for l.queue.n > l.openings*(l.streams-1) && l.open < l.cfg.Limits.MaxConnections {
		w, ok := l.first()
		if !ok {
			break
		}
		l.dial(w, true)
	}
	l.filling = false
}

// arrivals opens the connections that are due.
func (l *loop) arrivals(now time.Duration) {
	for n := 0; n < releaseBatch && l.comes && l.coming.Due <= now; n++ {
		l.account(l.coming.Due).Due++
		l.arrive(l.coming.Due)
		l.coming, l.comes = l.cfg.Connections.Arrivals.Next()
	}
}

// arrive opens a connection that no request asked for.
func (l *loop) arrive(due time.Duration) {
	if !l.cfg.Target.Dial().Allow() || l.open >= l.cfg.Limits.MaxConnections && !l.evict(nil) {
		l.account(due).Unsent++
		return
	}
	l.unasked++
	l.dial(waiting{Arrival: schedule.Arrival{Due: due}}, false)
}

// first takes the arrival that waits longest and is not past its time-out.
func (l *loop) first() (waiting, bool) {
	for {
		w, ok := l.queue.pop()
		if !ok || l.epoch.Now() < w.Due+l.cfg.Limits.Timeout {
			return w, ok
		}
		l.overdue(w)
	}
}

// overdue ends an arrival that waited for a connection until its time-out.
func (l *loop) overdue(w waiting) {
	l.cfg.Requests.At(w.Index, &l.req)
	l.record(unmet(w, l.req.Route, l.cfg.Limits.Timeout, l.epoch.Now()))
}

// until is the offset of the next thing to be done without anything arriving.
func (l *loop) until() time.Duration {
	t := l.epoch.Now() + longWait
	if l.more {
		t = min(t, l.next.Due)
	}
	if l.comes {
		t = min(t, l.coming.Due)
	}
	if l.stopped {
		t = min(t, l.drain)
	}
	if l.queue.n > 0 {
		t = min(t, l.queue.ring[l.queue.head].Due+l.cfg.Limits.Timeout)
	}
	for _, d := range l.lists() {
		t = d.earliest(t)
	}
	if len(l.batch) > 0 {
		t = min(t, l.flushd+flushEvery)
	}
	return t
}

func (l *loop) lists() [5]*deadlines {
	return [...]*deadlines{&l.ends, &l.dials, &l.shake, &l.bytes, &l.resid}
}

// expire ends what is past its time.
func (l *loop) expire(now time.Duration) {
	for l.queue.n > 0 && l.queue.ring[l.queue.head].Due+l.cfg.Limits.Timeout <= now {
		w, _ := l.queue.pop()
		l.overdue(w)
	}
	for _, list := range l.lists() {
		for d := list.due(now); d != nil; d = list.due(now) {
			l.expired(d.owner, list, d.at, now)
		}
	}
	if l.stopped && now >= l.drain {
		for _, c := range l.conns {
			if c != nil && !c.rests() {
				l.abandon(c, now)
			}
		}
	}
}

// expired ends what a request or its connection was doing.
func (l *loop) expired(f *flight, list *deadlines, at, now time.Duration) {
	c := f.conn
	o := record.TimedOut
	if list == &l.bytes {
		o = record.TimedOutFirst
	}
	o = missed(o, record.Unwatched, at, now)
	switch {
	case c.state == loopDialling || c.state == loopShaking:
		l.unmade(c.doing(), errTooLong)
		l.failed(c, missed(record.TimedOutConnect, record.UnsentLate, at, now), now)
	case c.state == loopLeaving:
		l.replace(c)
	case c.mux != nil && list == &l.resid:
		l.ended(c, errWrite, now)
	case c.mux != nil:
		l.giveUp(c, f, o, now)
	case list == &l.resid:
		l.end(c, l.broken(c, errWrite), now)
		l.replace(c)
	default:
		l.end(c, o, now)
		l.replace(c)
	}
}

// stop ends all writing: what waits becomes unsent, and what is on its way may drain.
func (l *loop) stop(now time.Duration) {
	l.stopped, l.more, l.comes, l.drain = true, false, false, now+max(0, l.cfg.StopDrain)
	for w, ok := l.queue.pop(); ok; w, ok = l.queue.pop() {
		l.unsent(w.Arrival, record.UnsentStop)
	}
	for _, c := range l.conns {
		if c == nil || c.state != loopDialling && c.state != loopShaking {
			continue
		}
		if c.asked {
			l.unsent(c.given.Arrival, record.UnsentStop)
		} else {
			l.missed(c.given.Due, record.Abandoned)
		}
		l.drop(c)
	}
}

func (l *loop) unsent(a schedule.Arrival, o record.Outcome) {
	l.cfg.Requests.At(a.Index, &l.req)
	l.refuse(a, l.req.Route, o)
}

// refuse records an arrival that is not sent.
func (l *loop) refuse(a schedule.Arrival, route uint32, o record.Outcome) {
	l.record(record.Sample{Index: a.Index, Route: route, Outcome: o, Due: a.Due, Done: max(a.Due, l.epoch.Now())})
}

// record ends an arrival.
func (l *loop) record(s record.Sample) {
	l.pending--
	l.result.BytesIn += s.BytesIn
	l.result.BytesOut += s.BytesOut
	if len(l.batch) == cap(l.batch) {
		l.flush(0, true)
	}
	l.batch = append(l.batch, s)
}

// flush hands samples to the recorder.
func (l *loop) flush(now time.Duration, always bool) {
	if len(l.batch) == 0 || !always && now < l.flushd+flushEvery {
		return
	}
	if !always {
		l.flushd = now
	}
	if r, ok := l.cfg.Recorder.(batchRecorder); ok {
		r.AddAll(l.batch)
	} else {
		for i := range l.batch {
			l.cfg.Recorder.Add(&l.batch[i])
		}
	}
	l.batch = l.batch[:0]
}

// readLate reads from connections that took no more, until their end.
func (l *loop) readLate() {
	for i := 0; i < len(l.late); i++ { // it may grow meanwhile
		if c := l.late[i]; c.state == loopBusy || c.state == loopOpen {
			l.read(c, true)
		}
		l.late[i] = nil
	}
	l.late = l.late[:0]
}

// handle serves one event.
func (l *loop) handle(e unix.EpollEvent) {
	if e.Fd == 0 { // slot 0 is the wake-up
		l.poll.awake()
		l.haveSigned()
		return
	}
	c := l.conns[e.Fd]
	if c == nil || c.generation != e.Pad {
		return // closed since, in this very batch
	}
	switch c.state {
	case loopDialling:
		if e.Events&(unix.EPOLLOUT|unix.EPOLLERR|unix.EPOLLHUP) != 0 {
			l.dialled(c, e.Events&unix.EPOLLIN != 0 || over(e.Events))
		}
	case loopShaking:
		c.link.over, c.link.dry = c.link.over || over(e.Events), false
		l.goesOn(c, l.epoch.Now())
	case loopLeaving:
		if over(e.Events) || gone(c.fd, l.buf) {
			l.replace(c)
		}
	default:
		if e.Events&unix.EPOLLOUT != 0 && c.unwritten() {
			l.write(c)
		}
		if (e.Events&unix.EPOLLIN != 0 || over(e.Events)) && l.conns[e.Fd] == c && c.generation == e.Pad {
			l.read(c, over(e.Events))
		}
	}
}

// over tells whether the peer has closed, or the connection is broken.
func over(events uint32) bool {
	return events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0
}
