// Package judge turns what was measured into findings and one verdict. It is pure: it reads no
// clock, no file and no environment.
package judge

// Verdict is the answer of a check or of a run. The zero value is Unverified, on purpose: what
// nobody measured is never a pass.
type Verdict uint8

// The verdicts.
const (
	Unverified Verdict = iota
	Pass
	Fail
	Blocked
)

// String gives the word that people and files see.
func (v Verdict) String() string {
	switch v {
	case Pass:
		return "pass"
	case Fail:
		return "fail"
	case Blocked:
		return "blocked"
	default:
		return "unverified"
	}
}

// MarshalText implements encoding.TextMarshaler.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler; an unknown word reads as Unverified.
func (v *Verdict) UnmarshalText(b []byte) error {
	*v = Unverified
	for _, c := range []Verdict{Pass, Fail, Blocked} {
		if c.String() == string(b) {
			*v = c
		}
	}
	return nil
}

// Finding is one judged check: what was declared, what was measured, and the answer.
type Finding struct {
	Check           string  `json:"check"`           // e.g. "p95_increase", "error_rate", "client_error_increase", "generator"
	Route           string  `json:"route,omitempty"` // "GET /users/{id}"; empty when it concerns the whole run
	Verdict         Verdict `json:"verdict"`
	Code            string  `json:"code,omitempty"` // stable code behind a verdict that is not pass
	Unit            string  `json:"unit,omitempty"` // "ms", "share", "ratio"
	Measured        float64 `json:"measured"`       // in Unit
	Baseline        float64 `json:"baseline,omitempty"`
	Limit           float64 `json:"limit"`               // in Unit
	Lo              float64 `json:"lo,omitempty"`        // interval of Measured, in Unit
	Hi              float64 `json:"hi,omitempty"`        // +Inf is written as 0 with Unbounded
	Unbounded       bool    `json:"unbounded,omitempty"` // the sample is too small for an upper bound
	Samples         uint64  `json:"samples"`
	BaselineSamples uint64  `json:"baseline_samples,omitempty"`
	BaselineFrom    string  `json:"baseline_from,omitempty"`   // "source" or "profile"
	Generator       float64 `json:"generator_share,omitempty"` // the generator's share of the measured percentile, 0..1
	Reason          string  `json:"reason"`                    // one sentence for people
}
