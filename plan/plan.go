// Package plan turns a manifest and what production served into an immutable Plan. Its digest covers
// the pass lines, so that they are written down before the run.
package plan

import (
	"time"

	"seatrial/engine"
	"seatrial/engine/httpload"
	"seatrial/judge"
	"seatrial/schedule"
	"seatrial/traffic"
)

// Plan is everything that decides what is sent and what is judged. Nothing changes it after Compile.
type Plan struct {
	Seed     uint64
	Open     schedule.Open // covers the warm-up and the judged part
	Warmup   time.Duration
	Duration time.Duration // judged part
	Smoke    bool
	Recorded bool    // requests and due times come from a recording: Schedule, At and what counts with them are not for it
	Routes   []Route // what is sent, sorted by name
	Checks   []judge.Check
	Limits   engine.Limits
	Headers  []httpload.Header // static, secrets included: never written anywhere
	Host     string
	Trace    float64
	Engine   httpload.Engine // what sends; changes nothing of what is sent
	Precise  bool
	HTTP     httpload.Version
	TLS      httpload.TLS // secrets included: never written anywhere
	// Connections is without its Arrivals: see ConnectionSchedule.
	Connections  httpload.Connections
	ConnArrivals schedule.Open // of connections by a schedule of their own; its rate is 0 when there is none
	Abort        Abort
	Mix          Mix
	Warnings     []string // said on the terminal and in the report
	Digest       string   // hex SHA-256 over all that decides, secrets excluded

	policy    *traffic.Policy
	overrides []string // methods that a header of the run would make of a request's own
	requests  *requests
	arrivals  uint64
	hidden    []bool // by header: its value is a secret
	secrets   []string
	carriage  string // digest of versions, connections, TLS, bodies and expectations
	trusted   string // digest of the certificates that are trusted
	shown     string // digest of the client's own
}

// CountsClientErrors tells whether a 4xx is an error of this run: it is in the assumed smoke of source
// none, since a page that a person names must exist. In an observed mix 4xx is production's own traffic,
// however short the run (LD-5).
func (p *Plan) CountsClientErrors() bool { return p.Mix.Assumed }

// Abort ends the run when the error share stays over Rate for For.
type Abort struct {
	Rate float64
	For  time.Duration
}

// Route is one route that the plan sends.
type Route struct {
	Name     string // "GET /users/{id}"
	Method   string
	Path     string
	Weight   float64 // share of what is sent; sums to 1
	Share    float64 // share of production's requests; 0 under source none
	Values   int     // distinct concrete requests that can be sent; 1 for a literal route
	ValuesBy string  // "", "params", "source"
	Pool     string  // digest of the pool; empty for a literal route
}

// Mix is what the plan sends of what production served: the traffic part of the fidelity section.
type Mix struct {
	Source          string        `json:"source"` // otel, access_log, none
	Assumed         bool          `json:"assumed_smoke"`
	ProductionRate  float64       `json:"production_rate_per_s"`          // 0 when unknown
	ProductionSpan  time.Duration `json:"production_window_ns,omitempty"` // first to last time stamp that the rate was counted over
	RateAssumed     string        `json:"rate_assumed,omitempty"`
	Rate            float64       `json:"rate_per_s"`
	Scale           float64       `json:"scale"`
	Requests        uint64        `json:"source_requests"`
	Reached         float64       `json:"reached_share"` // share of production's requests that this run sends
	HeaviestMissed  string        `json:"heaviest_route_not_sent,omitempty"`
	MissedShare     float64       `json:"heaviest_route_not_sent_share,omitempty"`
	NotSent         []Omission    `json:"not_sent,omitempty"` // heaviest first
	Patterns        []Removal     `json:"patterns,omitempty"`
	Profile         string        `json:"profile,omitempty"` // path of the committed profile, when one is declared
	ProfileAge      time.Duration `json:"profile_age_ns,omitempty"`
	BaselineProfile []string      `json:"baselines_from_profile,omitempty"` // routes whose baseline came from the profile
	NoBaseline      []string      `json:"routes_without_baseline,omitempty"`
}

// Omission is a route of production that the plan does not send, and why.
type Omission struct {
	Route  string  `json:"route"`
	Share  float64 `json:"share"`
	Reason string  `json:"reason"`
}

// Removal tells how much of the mix one pattern removed.
type Removal struct {
	Pattern string  `json:"pattern"` // "unsafe_routes: DELETE /**", or "not named in safe_routes"
	Share   float64 `json:"share"`
	Routes  int     `json:"routes"`
}
