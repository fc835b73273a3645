package evidence

import (
	"cmp"
	"math"
	"slices"

	"seatrial/judge"
)

// Move is one route's p95 against what it was in production.
type Move struct {
	Route           string
	Verdict         judge.Verdict // of the route's p95_increase
	Judged          bool          // false: no check was declared for it
	Baseline        float64       // ms
	BaselineSamples uint64
	BaselineFrom    string
	P95             float64 // ms
	Samples         uint64
	Change          float64 // P95/Baseline - 1
	Lo, Hi          float64 // interval of Change: this run's sampling error only
	Bounded         bool    // false: too few samples for Hi
	Direction       string  // "slower", "faster", "cannot tell": where the interval lies against the baseline
}

// Moves compares each route that has a baseline and was measured, those that moved most to the slow
// side first.
func (run *Run) Moves() []Move {
	judged := map[string]judge.Finding{}
	for _, f := range run.Findings {
		if f.Check == judge.P95Increase && f.Route != "" {
			judged[f.Route] = f
		}
	}
	var out []Move
	for i := range run.Routes {
		r := &run.Routes[i]
		if r.Baseline <= 0 || r.Response.Samples == 0 {
			continue
		}
		f, ok := judged[r.Name]
		out = append(out, move(r, f, ok))
	}
	slices.SortStableFunc(out, func(a, b Move) int {
		return cmp.Or(cmp.Compare(b.Change, a.Change), cmp.Compare(a.Route, b.Route))
	})
	return out
}

func move(r *RouteResult, f judge.Finding, judged bool) Move {
	lo, hi, bounded := r.P95Lo, r.P95Hi, r.P95Bounded
	if judged && lo == 0 && hi == 0 {
		lo, hi, bounded = f.Lo, f.Hi, !f.Unbounded
	}
	m := Move{Route: r.Name, Verdict: f.Verdict, Judged: judged, Baseline: r.Baseline, BaselineSamples: r.BaselineSamples,
		BaselineFrom: r.BaselineFrom, P95: r.Response.P95, Samples: r.Response.Samples, Bounded: bounded && hi > 0,
		Change: r.Response.P95/r.Baseline - 1, Lo: lo/r.Baseline - 1, Hi: hi/r.Baseline - 1}
	switch {
	case lo > r.Baseline:
		m.Direction = "slower"
	case m.Bounded && hi < r.Baseline:
		m.Direction = "faster"
	default:
		m.Direction = "cannot tell"
	}
	if math.IsInf(m.Change, 0) || math.IsNaN(m.Change) {
		m.Change = 0 // a hostile run.json; a baseline of next to nothing
	}
	return m
}

// Slowest gives the indices of Routes by p99 of the response time, slowest first.
func (run *Run) Slowest() []int {
	out := make([]int, len(run.Routes))
	for i := range out {
		out[i] = i
	}
	slices.SortStableFunc(out, func(a, b int) int {
		return cmp.Compare(run.Routes[b].Response.P99, run.Routes[a].Response.P99)
	})
	return out
}
