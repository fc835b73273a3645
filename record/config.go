package record

import "time"

// Config shapes shards and tallies; all shards of a run share one.
type Config struct {
	Routes     int               // number of routes
	Warmup     time.Duration     // arrivals due before it are counted apart and not judged
	End        time.Duration     // the last due time plus the drain; bounds the per-second series
	Limits     [][]time.Duration // per route, exact counters of response times at or under each; sorted
	SeriesStep time.Duration     // width of an element of Series; 0: one second, doubled until End fits in MaxSeries
}

// MaxSeries is the greatest number of elements of a tally's series. A run of more than 68 minutes
// has elements of two seconds, of more than 136 minutes of four, and so on, so that memory stays
// bounded for any duration.
const MaxSeries = 4096

// Step is the width of an element of the series.
func (c Config) Step() time.Duration {
	if c.SeriesStep > 0 {
		return c.SeriesStep
	}
	step := time.Second
	for c.End/step >= MaxSeries {
		step *= 2
	}
	return step
}

// bin is the element of the series for a due time. What is due past the last element stands in it.
func bin(due, step time.Duration) int {
	return min(int(max(0, due)/step), MaxSeries-1)
}

// limits are the declared limits of a route.
func (c Config) limits(route int) []time.Duration {
	if route < len(c.Limits) {
		return c.Limits[route]
	}
	return nil
}

// same tells whether two configurations shape the same tally.
func (c Config) same(o Config) bool {
	if c.Routes != o.Routes || c.Warmup != o.Warmup || c.Step() != o.Step() {
		return false
	}
	for r := range c.Routes {
		a, b := c.limits(r), o.limits(r)
		if len(a) != len(b) {
			return false
		}
		for i := range a {
			if a[i] != b[i] {
				return false
			}
		}
	}
	return true
}

// Intended is what the schedule meant to send, counted from the schedule itself and not from what was
// recorded: the other side of the account.
type Intended struct {
	Warmup uint64   // arrivals due in the warm-up, all routes
	Routes []uint64 // by route, arrivals due after it
	Series []uint64 // by element of the series, warm-up included; nil when not counted
}
