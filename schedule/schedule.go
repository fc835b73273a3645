// Package schedule says when each request is due. A schedule is a pure function of (seed, plan):
// arrival i has the same due time however many connections, workers or machines compute it.
package schedule

import "time"

// Arrival is one intended request.
type Arrival struct {
	Index uint64        // position in the whole run's sequence, from 0
	Due   time.Duration // offset from the run's epoch; never falls as Index grows
}

// Schedule yields arrivals in order of Due.
type Schedule interface {
	// Next gives the next arrival; false at the end. It does not allocate.
	Next() (Arrival, bool)
}

// Kind names an arrival process.
type Kind string

// The arrival processes of an open run.
const (
	Poisson Kind = "poisson"
	Even    Kind = "even"
	Bursty  Kind = "bursty"
)

// Open is the plan of an open-loop run's arrivals.
type Open struct {
	Kind       Kind
	Seed       uint64
	Rate       float64       // arrivals per second, > 0
	Duration   time.Duration // arrivals are due in [0, Duration)
	Dispersion float64       // bursty only: index of dispersion of per-second counts, >= 1
	AtLeast    uint64        // a smoke sends at least this many arrivals, evenly placed if the process gives fewer
}
