package schedule

import "fmt"

// Shard gives slice k of n of a schedule: the arrivals whose place in it leaves remainder k. The
// slices together are the schedule, none shares an arrival with another, each keeps the order, and
// each has every n-th arrival, so that n workers are loaded alike at every moment. Each needs a
// schedule of its own to read from. It panics unless 0 <= k < n: that is a defect of the caller.
//
// A worker computes the arrivals of the others too and passes over them, at some 20 ns each.
func Shard(s Schedule, k, n int) Schedule {
	if n < 1 || k < 0 || k >= n {
		panic(fmt.Sprintf("schedule: there is no slice %d of %d", k, n))
	}
	if n == 1 {
		return s
	}
	return &slice{from: s, pass: uint64(k), every: uint64(n)}
}

type slice struct {
	from  Schedule
	pass  uint64 // arrivals to pass over before the next one
	every uint64
}

// Next implements Schedule.
func (s *slice) Next() (Arrival, bool) {
	skip(s.from, s.pass)
	s.pass = s.every - 1
	return s.from.Next()
}

// skipper is a schedule that passes over arrivals faster than by yielding them.
type skipper interface{ skip(n uint64) }

func skip(s Schedule, n uint64) {
	if f, ok := s.(skipper); ok {
		f.skip(n)
		return
	}
	for range n {
		if _, ok := s.Next(); !ok {
			return
		}
	}
}
