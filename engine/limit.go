package engine

import (
	"math"
	"sync"
	"time"
)

// maxRing bounds the memory of a limiter, in permissions that it remembers.
const maxRing = 1 << 20

// Limiter enforces a target's max_rate (SA-3): never more than floor(rate) permissions in any window
// of one second, however the window is placed; below one per second, one in 1/rate seconds. It
// remembers the times of that many permissions; above a million per second it splits the second into
// equal parts, which is only ever stricter. It counts by the monotonic clock and not by due times, so
// that arrivals that come late cannot be sent together.
//
// It is safe for concurrent use. A nil Limiter allows everything.
type Limiter struct {
	mu     sync.Mutex
	start  time.Time
	window time.Duration
	size   int             // most permissions in a window
	ring   []time.Duration // when, from start, the last permissions were given
	next   int             // the place of the oldest, once the ring is full
	full   bool
}

// NewLimiter makes a limiter of rate per second; nil when there is no limit.
func NewLimiter(rate float64) *Limiter {
	if !(rate > 0) || math.IsInf(rate, 1) {
		return nil
	}
	l := &Limiter{start: time.Now()}
	if rate < 1 {
		l.size, l.window = 1, time.Duration(min(1e9/rate, math.MaxInt64/2))
		return l
	}
	parts := math.Ceil(rate / maxRing)
	l.size, l.window = max(1, int(rate/parts)), time.Duration(math.Ceil(1e9/parts))
	return l
}

// Allow takes one permission, or is false when max_rate forbids it now.
func (l *Limiter) Allow() bool {
	if l == nil {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.take(time.Since(l.start))
}

func (l *Limiter) take(now time.Duration) bool {
	if l.ring == nil {
		l.ring = make([]time.Duration, l.size)
	}
	if l.full && now-l.ring[l.next] <= l.window {
		return false
	}
	l.ring[l.next] = now
	if l.next++; l.next == l.size {
		l.next, l.full = 0, true
	}
	return true
}
