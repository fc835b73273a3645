package record

import (
	"sort"
	"time"
)

// liveWindow is how many whole seconds a live view looks back.
const liveWindow = 5

// Totals are counts since the start, warm-up included.
type Totals struct {
	Ended     uint64 // arrivals that ended, in whatever way
	Answered  uint64 // complete, valid responses
	Valid     uint64 // of those, below 500
	Responses uint64 // what counts for the error rate: Outcome.Response
	Errors    uint64 // of Responses: failures, time-outs, 5xx
	Unsent    uint64
	Abandoned uint64
}

func (c *Totals) add(s *Sample) {
	c.Ended++
	if s.Outcome == Answered {
		c.Answered++
		if !s.Error() {
			c.Valid++
		}
	}
	if s.Outcome.Response() {
		c.Responses++
	}
	if s.Error() {
		c.Errors++
	}
	if s.Outcome.Unsent() {
		c.Unsent++
	}
	if s.Outcome == Abandoned {
		c.Abandoned++
	}
}

func (c *Totals) merge(o Totals) {
	c.Ended += o.Ended
	c.Answered += o.Answered
	c.Valid += o.Valid
	c.Responses += o.Responses
	c.Errors += o.Errors
	c.Unsent += o.Unsent
	c.Abandoned += o.Abandoned
}

// Snapshot is a copy of a shard's running totals and its last few seconds, by the time at which the
// arrivals ended. Snapshots of several shards merge into one.
type Snapshot struct {
	Totals
	moments [liveWindow + 1]moment // a ring: second s of the run stands at s modulo the length
}

// moment is one second of the run, by the time at which arrivals ended.
type moment struct {
	second   int64 // -1: never used
	totals   Totals
	response *Histogram // coarse
	delay    *Histogram // coarse
	routes   []routeMoment
}

type routeMoment struct {
	timed uint64
	sum   time.Duration
	max   time.Duration
}

// live is the part of a shard that feeds a live view.
type live struct{ s Snapshot }

func newLive(routes int) live {
	var l live
	for i := range l.s.moments {
		l.s.moments[i] = moment{second: -1, response: NewCoarse(), delay: NewCoarse(), routes: make([]routeMoment, routes)}
	}
	return l
}

func (l *live) add(s *Sample) {
	if s.Outcome >= NumOutcomes {
		return
	}
	l.s.Totals.add(s)
	second := int64(max(0, s.Done) / time.Second)
	m := &l.s.moments[second%int64(len(l.s.moments))]
	if m.second > second {
		return // ended before the window
	}
	if m.second < second {
		m.restart(second)
	}
	m.add(s)
}

func (m *moment) restart(second int64) {
	m.second, m.totals = second, Totals{}
	m.response.Reset()
	m.delay.Reset()
	clear(m.routes)
}

func (m *moment) add(s *Sample) {
	m.totals.add(s)
	if s.Written() {
		m.delay.Record(s.SendDelay())
	}
	if !s.Outcome.Timed() {
		return
	}
	d := s.Response()
	m.response.Record(d)
	if int(s.Route) < len(m.routes) {
		m.routes[s.Route].merge(routeMoment{timed: 1, sum: d, max: d})
	}
}

func (r *routeMoment) merge(o routeMoment) {
	r.timed += o.timed
	r.sum += o.sum
	r.max = max(r.max, o.max)
}

func (m *moment) merge(o *moment) {
	m.totals.merge(o.totals)
	m.response.Merge(o.response)
	m.delay.Merge(o.delay)
	for i := range min(len(m.routes), len(o.routes)) {
		m.routes[i].merge(o.routes[i])
	}
}

func (m *moment) clone() moment {
	c := *m
	c.response, c.delay = m.response.Clone(), m.delay.Clone()
	c.routes = append([]routeMoment(nil), m.routes...)
	return c
}

func (l *live) snapshot() Snapshot {
	s := Snapshot{Totals: l.s.Totals}
	for i := range l.s.moments {
		s.moments[i] = l.s.moments[i].clone()
	}
	return s
}

// Merge adds another shard's snapshot. The zero Snapshot is a neutral element.
func (s *Snapshot) Merge(o Snapshot) {
	s.Totals.merge(o.Totals)
	for i := range s.moments {
		m, from := &s.moments[i], &o.moments[i]
		switch {
		case from.response == nil || from.second < 0:
		case m.response == nil || m.second < from.second:
			*m = from.clone()
		case m.second == from.second:
			m.merge(from)
		}
	}
}

// Recent is what the last few seconds came to.
type Recent struct {
	Span         time.Duration // the time that it covers
	Totals       Totals        // within Span
	P50          time.Duration // response time, 2 significant digits
	P99          time.Duration
	Max          time.Duration
	SendDelayP99 time.Duration // send delay p99
	Slowest      []RouteRecent // by mean response time, slowest first
}

// RouteRecent is one route's part of a Recent.
type RouteRecent struct {
	Route uint32
	Timed uint64 // arrivals with a response time
	Mean  time.Duration
	Max   time.Duration
}

// Recent sums up the last whole seconds before now, an offset from the run's epoch, with at most top
// routes. When nothing ended in them, a stalled target for instance, its counts are zero.
func (s *Snapshot) Recent(now time.Duration, top int) Recent {
	end := int64(max(0, now) / time.Second)
	start := max(0, end-liveWindow)
	sum := moment{response: NewCoarse(), delay: NewCoarse()}
	for i := range s.moments {
		m := &s.moments[i]
		if m.response == nil || m.second < start || m.second > end || (m.second == end && end > 0) {
			continue
		}
		if sum.routes == nil {
			sum.routes = make([]routeMoment, len(m.routes))
		}
		sum.merge(m)
	}
	span := time.Duration(end-start) * time.Second
	if end == 0 {
		span = max(0, now)
	}
	return Recent{Span: span, Totals: sum.totals, P50: sum.response.Quantile(1, 2), P99: sum.response.Quantile(99, 100),
		Max: sum.response.Max(), SendDelayP99: sum.delay.Quantile(99, 100), Slowest: slowest(sum.routes, top)}
}

func slowest(routes []routeMoment, top int) []RouteRecent {
	var out []RouteRecent
	for i, r := range routes {
		if r.timed > 0 {
			out = append(out, RouteRecent{Route: uint32(i), Timed: r.timed, Mean: r.sum / time.Duration(r.timed), Max: r.max})
		}
	}
	sort.SliceStable(out, func(a, b int) bool { return out[a].Mean > out[b].Mean })
	return out[:min(len(out), max(0, top))]
}
