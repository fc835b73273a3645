package traffic

import (
	"math"
	"time"
)

// ProfileVersion is the version that this build writes.
const ProfileVersion = 2

// oldestVersion is the oldest that it reads: version 1 had no popularity.
const oldestVersion = 1

// MinBaseline is how many times a route must have been seen with a duration to have a baseline (TR-5).
const MinBaseline = 20

// Profile is what production served: the committed file .seatrial/traffic.json. It holds routes and
// numbers, no identifier, no query string, no header, no address.
type Profile struct {
	Version         int           `json:"version"`
	Recorded        time.Time     `json:"recorded"` // when the profile was made, UTC
	Source          ProfileSource `json:"source"`
	Window          *Window       `json:"window"`                                 // nil when no time was readable
	Requests        uint64        `json:"requests"`                               // requests that make up the mix
	Rate            float64       `json:"rate_per_s"`                             // mean arrivals per second over the window
	RateAssumed     string        `json:"rate_assumed,omitempty"`                 // why the rate is assumed; empty when counted
	PerMinute       []uint64      `json:"requests_per_minute,omitempty"`          // arrivals in each minute (or longer bucket, see PerMinuteBucket) from the start of the window
	PerMinuteBucket float64       `json:"requests_per_minute_bucket_s,omitempty"` // seconds per element of PerMinute; 60 unless the window is very long
	Dispersion      float64       `json:"dispersion,omitempty"`                   // variance over mean of per-second counts; 1 for Poisson; 0 when unknown
	PeakConcurrency int           `json:"peak_concurrency,omitempty"`             // needs durations; 0 when unknown
	Gaps            []Gap         `json:"gaps,omitempty"`
	Routes          []Route       `json:"routes"` // sorted by path, then method
}

// ProfileSource tells where a profile came from and what was read and refused.
type ProfileSource struct {
	Kind       string           `json:"kind"`   // otel, access_log
	Format     string           `json:"format"` // as recognised
	Read       int64            `json:"read"`
	Unparsable int64            `json:"unparsable"`
	NotSent    map[string]int64 `json:"not_traffic,omitempty"` // Skips.Reasons
	OutOfOrder int64            `json:"out_of_order,omitempty"`
}

// Window is the span of the timestamps, first to last.
type Window struct {
	Start   time.Time `json:"start"`
	End     time.Time `json:"end"`
	Seconds float64   `json:"seconds"`
}

// Gap is a silence longer than ten times the median gap between arrivals (TR-10).
type Gap struct {
	Start   time.Time `json:"start"`
	Seconds float64   `json:"seconds"`
}

// Route is one method and path template with what was measured for it.
type Route struct {
	Method   string            `json:"method"`
	Path     string            `json:"path"` // template: literal segments, {name} placeholders, {name...} for a rest
	Requests uint64            `json:"requests"`
	Weight   float64           `json:"weight"`           // share of all requests
	Status   map[string]uint64 `json:"status,omitempty"` // "2xx".."5xx", "none"
	Latency  *Quantiles        `json:"latency_ms,omitempty"`
	Request  *Quantiles        `json:"request_bytes,omitempty"`
	Response *Quantiles        `json:"response_bytes,omitempty"`
	// Popularity tells by placeholder, named as Template.Keys does, how often its values come again.
	Popularity map[string]*Popularity `json:"popularity,omitempty"`
	// Unmatched marks requests for which the source declares that no route matched: they are part of
	// the mix's total and are never sent.
	Unmatched bool `json:"unmatched,omitempty"`
}

// Quantiles are nearest rank, x(ceil(p n)), of Samples values.
type Quantiles struct {
	Samples uint64  `json:"samples"`
	P50     float64 `json:"p50"`
	P95     float64 `json:"p95"`
	P99     float64 `json:"p99"`
	Max     float64 `json:"max"`
}

// Name is "METHOD /template".
func (r *Route) Name() string { return r.Method + " " + r.Path }

// Baseline is the route's p95 as production served it; false when it was seen fewer than
// MinBaseline times with a duration.
func (r *Route) Baseline() (time.Duration, bool) {
	if r.Latency == nil || r.Latency.Samples < MinBaseline {
		return 0, false
	}
	return time.Duration(math.Round(r.Latency.P95 * float64(time.Millisecond))), true
}
