// Package schedule says when each request is due. A schedule is a pure function of (seed, plan):
// arrival i has the same due time however many connections, workers or machines compute it, on any
// architecture: every operation on floating-point numbers is one that IEEE 754 defines to the bit,
// and none can be fused with another.
package schedule

import (
	"math"
	"time"
)

// Arrival is one intended request.
type Arrival struct {
	Index uint64        // position in the whole run's sequence, from 0
	Due   time.Duration // offset from the run's epoch; never falls as Index grows
}

// Later is the index of an arrival that is none: a schedule that is fed while it runs does not know its
// next arrival yet, and is to be asked again after LaterWait.
const Later = math.MaxUint64

// LaterWait is how long one that asks such a schedule again waits between two times.
const LaterWait = time.Millisecond

// Schedule yields arrivals in order of Due.
type Schedule interface {
	// Next gives the next arrival; false at the end. It does not allocate and does not wait: see Later.
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

// New gives the whole schedule of an open run from its first arrival. Any number of them can be made;
// they are independent and equal. It costs nothing that grows with the run, unless AtLeast is set:
// then arrivals are counted until there are enough.
func New(o Open) (Schedule, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if !o.reaches(o.AtLeast) {
		return &spread{n: o.AtLeast, total: uint64(o.Duration)}, nil
	}
	if o.Kind == Even {
		return &even{n: evenCount(o), rate: o.Rate}, nil
	}
	return &stream{blocks: newBlocks(o)}, nil
}

// Count is the number of arrivals of an open run.
func Count(o Open) (uint64, error) {
	x, err := NewIndex(o)
	if err != nil {
		return 0, err
	}
	return x.Count(), nil
}
