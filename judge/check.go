package judge

// Check is one declared limit, fixed before the run; the plan's digest covers it.
type Check struct {
	Name            string  `json:"name"`  // "p95_increase", "error_rate", "client_error_increase"
	Route           int     `json:"route"` // index into the plan's routes; -1: the whole run
	RouteName       string  `json:"route_name,omitempty"`
	Quantile        float64 `json:"quantile,omitempty"`         // p95_increase: 0.95
	Limit           float64 `json:"limit"`                      // as declared: ratio increase, or share
	Baseline        float64 `json:"baseline,omitempty"`         // p95_increase: ns; client_error_increase: production's 4xx share
	BaselineSamples uint64  `json:"baseline_samples,omitempty"` // requests behind Baseline
	BaselineFrom    string  `json:"baseline_from,omitempty"`    // "source" or "profile"
	LimitNanos      int64   `json:"limit_ns,omitempty"`         // p95_increase: baseline x (1 + limit), in ns; an exact counter stands here
}
