package schedule

import (
	"errors"
	"fmt"
	"time"
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

// The bounds of a plan. They keep every due time exact to the nanosecond and every count far from
// overflow.
const (
	MaxRate       = 1e9
	MaxDuration   = 366 * 24 * time.Hour
	MaxDispersion = 1e6
	MaxArrivals   = 1e12
)

// Validate gives every problem of the plan at once.
func (o Open) Validate() error {
	var errs []error
	switch o.Kind {
	case Poisson, Even, Bursty:
	default:
		errs = append(errs, fmt.Errorf("schedule: there is no arrival process %q", string(o.Kind)))
	}
	if !(o.Rate > 0) || o.Rate > MaxRate { // also catches NaN
		errs = append(errs, fmt.Errorf("schedule: rate %v is not in (0, %g] per second", o.Rate, float64(MaxRate)))
	}
	if o.Duration <= 0 || o.Duration > MaxDuration {
		errs = append(errs, fmt.Errorf("schedule: duration %s is not in (0, %s]", o.Duration, MaxDuration))
	}
	if mean := o.Rate * o.Duration.Seconds(); len(errs) == 0 && mean > MaxArrivals {
		errs = append(errs, fmt.Errorf("schedule: %.3g arrivals are more than %g", mean, float64(MaxArrivals)))
	}
	if o.Kind == Bursty && (!(o.Dispersion >= 1) || o.Dispersion > MaxDispersion) {
		errs = append(errs, fmt.Errorf("schedule: dispersion %v is not in [1, %g]", o.Dispersion, float64(MaxDispersion)))
	}
	if o.AtLeast > MaxArrivals {
		errs = append(errs, fmt.Errorf("schedule: at least %d arrivals are more than %g", o.AtLeast, float64(MaxArrivals)))
	}
	return errors.Join(errs...)
}

// reaches tells whether the process gives at least n arrivals.
func (o Open) reaches(n uint64) bool {
	if n == 0 {
		return true
	}
	if o.Kind == Even {
		return evenCount(o) >= n
	}
	b := newBlocks(o)
	var sum uint64
	for k := uint64(0); k < b.n && sum < n; k++ {
		sum += b.count(k)
	}
	return sum >= n
}
