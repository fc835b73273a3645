// Package evidence holds everything that a run writes down. A verdict without its evidence is not a
// verdict: run.json is written first as incomplete and replaced atomically at the end.
package evidence

import (
	"time"

	"seatrial/engine"
	"seatrial/engine/httpload"
	"seatrial/internal/replay"
	"seatrial/judge"
	"seatrial/plan"
	"seatrial/record"
)

// SchemaVersion is the version of run.json that this build writes.
const SchemaVersion = 1

// Run is run.json. Tally is kept beside it for renderers that need histograms.
type Run struct {
	Schema   int             `json:"schema"`
	ID       string          `json:"id"`      // name of the run's folder
	Command  string          `json:"command"` // run, smoke, ci, demo
	Tool     string          `json:"tool"`    // "seatrial VERSION"
	Complete bool            `json:"complete"`
	Started  time.Time       `json:"started"`
	Ended    *time.Time      `json:"ended,omitempty"`
	Verdict  judge.Verdict   `json:"verdict"`
	Sentence string          `json:"sentence"` // the verdict in one sentence
	Causes   []Cause         `json:"causes,omitempty"`
	Findings []judge.Finding `json:"findings,omitempty"`
	Warnings []string        `json:"warnings,omitempty"`
	// StoppedAfter is when sending ended early, by an interrupt or an abort, in seconds since the first
	// request could be due; 0 when it came to its end. Rates and the series reach until then.
	StoppedAfter float64 `json:"stopped_after_s,omitempty"`

	Plan        PlanInfo       `json:"plan"`
	Traffic     *plan.Mix      `json:"traffic,omitempty"`
	Target      TargetInfo     `json:"target"`
	Environment *Environment   `json:"environment,omitempty"`
	Host        Host           `json:"host"`
	Generator   *engine.Health `json:"generator,omitempty"`

	Connections *Connections `json:"connections,omitempty"`
	Replay      *Replay      `json:"replay,omitempty"`

	Account record.Account    `json:"account"` // judged arrivals
	Warmup  record.Account    `json:"warmup_account"`
	Rates   Rates             `json:"rates"`
	Errors  map[string]uint64 `json:"errors_by_class,omitempty"` // judged, by class
	Total   *Latency          `json:"total,omitempty"`
	Routes  []RouteResult     `json:"routes,omitempty"`
	Series  []Second          `json:"series,omitempty"`

	TotalService *Latency     `json:"total_service,omitempty"`
	SendDelayP99 float64      `json:"send_delay_p99_ms"`          // judged arrivals of all routes that were written
	SeriesStep   int          `json:"series_step_s,omitempty"`    // seconds per element of Series; 0 reads as 1
	Curve        []CurvePoint `json:"percentile_curve,omitempty"` // of all routes, ever finer towards 100%

	Fidelity  []Dimension `json:"fidelity,omitempty"`
	Limits    []string    `json:"cannot_control,omitempty"` // what this run cannot control or did not measure
	Reproduce string      `json:"reproduce"`                // the plain command that runs it again
	Leftovers []string    `json:"leftovers,omitempty"`

	Tally *record.Tally `json:"-"`
}

// Cause is one reason for the verdict or the exit code.
type Cause struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Next    string `json:"next,omitempty"`
}

// PlanInfo is what was decided before the run.
type PlanInfo struct {
	Digest         string            `json:"digest"`
	ScheduleDigest string            `json:"schedule_digest"` // over (due, route, values) of the first million arrivals
	Seed           uint64            `json:"seed"`
	Arrivals       uint64            `json:"arrivals"` // of the whole schedule, warm-up included
	Process        string            `json:"process"`  // poisson, even, bursty
	Rate           float64           `json:"rate_per_s"`
	Warmup         time.Duration     `json:"warmup_ns"`
	Duration       time.Duration     `json:"duration_ns"`
	Timeout        time.Duration     `json:"timeout_ns"`
	MaxConnections int               `json:"max_connections"`
	Engine         string            `json:"engine"` // portable
	Checks         []judge.Check     `json:"checks"`
	Pools          map[string]string `json:"value_pools,omitempty"` // route -> digest of its values
}

// TargetInfo is where the load went and why that was allowed.
type TargetInfo struct {
	URL     string   `json:"url"` // without user info and query
	Addrs   []string `json:"addresses,omitempty"`
	Proof   string   `json:"proof"`
	Kind    string   `json:"kind"` // environment or consent
	MaxRate float64  `json:"max_rate_per_s,omitempty"`
}

// Replay is what became of a recording that was sent again.
type Replay struct {
	Pace     string          `json:"pace"`
	Loops    int             `json:"loops"`
	Counts   replay.Counts   `json:"counts"`
	Fidelity replay.Fidelity `json:"fidelity"`
}

// Connections is what became of connections, warm-up included.
type Connections struct {
	HTTP              string            `json:"http"`     // the version that was asked for
	Insecure          bool              `json:"insecure"` // any certificate was accepted
	Opened            uint64            `json:"opened"`
	Failed            uint64            `json:"failed"` // did not come about; not among those opened
	HTTP1             uint64            `json:"http_1"` // of those opened
	HTTP2             uint64            `json:"http_2"` // on which the target spoke it
	HTTP3             uint64            `json:"http_3"`
	FullHandshakes    uint64            `json:"tls_full_handshakes"`
	ResumedHandshakes uint64            `json:"tls_resumed_handshakes"`
	Connect           *Latency          `json:"connect,omitempty"` // of those opened; over QUIC with the handshake
	TLS               *Latency          `json:"tls_handshake,omitempty"`
	Resent            uint64            `json:"resent"` // requests sent again because the target had said that it never looked at them
	Arrivals          *ConnArrivals     `json:"arrivals,omitempty"`
	Why               map[string]uint64 `json:"failures,omitempty"` // in words: of connections that did not come about, and of answers that did not arrive whole
}

// ConnArrivals is the account of the connections that came by a schedule of their own behind the warm-up
// (EG-9).
type ConnArrivals struct {
	Process string               `json:"process"` // poisson, even
	Rate    float64              `json:"rate_per_s"`
	Account httpload.ConnAccount `json:"account"`
}

// Times sets what the connections that were opened took; a histogram may be empty.
func (k *Connections) Times(connect, shake *record.Histogram) {
	k.Connect, k.TLS = latencyPointer(connect), latencyPointer(shake)
}

// Environment is what was brought up.
type Environment struct {
	Name      string             `json:"name"`
	Driver    string             `json:"driver"`
	Revision  string             `json:"revision,omitempty"`     // commit, empty outside git
	Dirty     string             `json:"dirty_digest,omitempty"` // digest of what differs from the commit; empty when clean
	Services  map[string]string  `json:"services,omitempty"`     // name -> URL
	StartupMS map[string]float64 `json:"startup_ms,omitempty"`
}

// Host is the machine that sent.
type Host struct {
	OS     string  `json:"os"`
	Arch   string  `json:"arch"`
	Kernel string  `json:"kernel,omitempty"`
	CPU    string  `json:"cpu,omitempty"`
	Cores  int     `json:"cores"`
	Load1  float64 `json:"load1_before"`
	Steal  float64 `json:"steal_share"` // during the run; negative when unmeasured
	Go     string  `json:"go"`
}

// Rates are per second over the judged window.
type Rates struct {
	Offered    float64 `json:"offered"`  // due
	Achieved   float64 `json:"achieved"` // answered
	Valid      float64 `json:"valid"`    // answered below 500 (smoke: below 400)
	ErrorShare float64 `json:"error_share"`
}

// Latency holds quantiles in milliseconds, nearest rank from histograms of 3 significant digits.
type Latency struct {
	Samples uint64  `json:"samples"`
	P50     float64 `json:"p50_ms"`
	P95     float64 `json:"p95_ms"`
	P99     float64 `json:"p99_ms"`
	P999    float64 `json:"p99_9_ms"`
	Max     float64 `json:"max_ms"`
	Mean    float64 `json:"mean_ms"`
}

// RouteResult is one route's judged arrivals.
type RouteResult struct {
	Name            string            `json:"name"`
	Account         record.Account    `json:"account"`
	Errors          map[string]uint64 `json:"errors_by_class,omitempty"`
	Status          map[string]uint64 `json:"status,omitempty"` // "2xx"...
	ErrorShare      float64           `json:"error_share"`
	Response        Latency           `json:"response"`
	Service         Latency           `json:"service"`
	FirstByte       Latency           `json:"first_byte"`
	Wait            Latency           `json:"connection_wait"`
	SendDelayP99    float64           `json:"send_delay_p99_ms"`
	BytesIn         uint64            `json:"bytes_in"`
	BytesOut        uint64            `json:"bytes_out"`
	P95Lo           float64           `json:"p95_lo_ms,omitempty"` // 98% order-statistic interval of this run's own sample
	P95Hi           float64           `json:"p95_hi_ms,omitempty"`
	P95Bounded      bool              `json:"p95_bounded"` // false: too few samples for an upper bound
	Baseline        float64           `json:"baseline_p95_ms,omitempty"`
	BaselineSamples uint64            `json:"baseline_samples,omitempty"`
	BaselineFrom    string            `json:"baseline_from,omitempty"`
	Share           float64           `json:"production_share,omitempty"`
}

// Second is one second of the run, by due time.
type Second struct {
	T            int               `json:"t"`     // seconds from the epoch
	Phase        string            `json:"phase"` // warmup, judged, drain
	Offered      uint64            `json:"offered"`
	Achieved     uint64            `json:"achieved"`
	Valid        uint64            `json:"valid"`
	Errors       uint64            `json:"errors"`
	ByClass      map[string]uint64 `json:"errors_by_class,omitempty"`
	Samples      uint64            `json:"samples"` // behind the percentiles, which have 2 significant digits
	P50          float64           `json:"p50_ms"`
	P95          float64           `json:"p95_ms"`
	P99          float64           `json:"p99_ms"`
	Max          float64           `json:"max_ms"`
	SendDelayMax float64           `json:"send_delay_max_ms"`
	CPU          float64           `json:"generator_cpu_share"` // negative when unmeasured
}

// CurvePoint is one point of the percentile curve: nearest rank, in milliseconds.
type CurvePoint struct {
	Percentile float64 `json:"percentile"` // 0..100
	Response   float64 `json:"response_ms"`
	Service    float64 `json:"service_ms"`
}

// Dimension is one line of the fidelity section (LD-15). State is reproduced, substituted, absent or
// unmeasured; an unmeasured one is never turned into either answer.
type Dimension struct {
	Name  string `json:"name"` // services, database, traffic
	State string `json:"state"`
	Text  string `json:"text"`
}
