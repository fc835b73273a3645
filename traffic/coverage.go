package traffic

import (
	"cmp"
	"slices"
	"strings"
)

// Coverage tells which of what production serves a policy lets a run reach (TR-32).
type Coverage struct {
	Requests     uint64          `json:"requests"`
	Reached      float64         `json:"reached_share"` // share of all requests, 0..1
	Routes       []CoveredRoute  `json:"routes"`        // busiest first
	Heaviest     string          `json:"heaviest_route_missed,omitempty"`
	HeaviestPart float64         `json:"heaviest_route_missed_share,omitempty"`
	Suggested    []string        `json:"suggested_safe_routes,omitempty"`  // for routes that only read, busiest first
	Writes       []string        `json:"suggested_write_routes,omitempty"` // for routes of any other method: to be weighed one by one
	Removed      []RemovedByRule `json:"removed,omitempty"`                // most requests first
}

// CoveredRoute is one route of the profile and what the policy says of it.
type CoveredRoute struct {
	Name     string  `json:"name"`
	Requests uint64  `json:"requests"`
	Share    float64 `json:"share"`
	Reached  bool    `json:"reached"`
	Why      string  `json:"why,omitempty"`  // why it is not reached: "unsafe_routes: DELETE /**", "not named in safe_routes", ...
	Note     string  `json:"note,omitempty"` // what else stands in the way of sending it: NoteWildcard
	P95      float64 `json:"p95_ms,omitempty"`
}

// NoteWildcard is said of a route that ends in a wildcard: the source names no path under it.
const NoteWildcard = "a wildcard; cannot be replayed without values in load.params"

// RemovedByRule is how much of the mix one reason keeps out.
type RemovedByRule struct {
	Pattern  string  `json:"pattern"` // as CoveredRoute.Why
	Routes   int     `json:"routes"`
	Requests uint64  `json:"requests"`
	Share    float64 `json:"share"`
}

// The reasons for which no pattern is to blame.
const (
	WhyNotNamed  = "not named in safe_routes"
	WhyUnmatched = "no route of the source matched"
)

// Why words a decision that is not safe; empty for one that is.
func (d Decision) Why() string {
	switch {
	case d.Safe:
		return ""
	case d.List == UnsafeRoutes && d.Partial:
		return UnsafeRoutes + ": " + d.Pattern + " (for some values)"
	case d.List == UnsafeRoutes:
		return UnsafeRoutes + ": " + d.Pattern
	case d.Reason != "":
		return d.Reason
	}
	return WhyNotNamed
}

// Cover compares a profile with a policy. It is a pure function and writes nothing.
func Cover(p *Profile, policy *Policy) Coverage {
	c := Coverage{Requests: p.Requests, Routes: make([]CoveredRoute, 0, len(p.Routes))}
	order := slices.Clone(p.Routes)
	slices.SortStableFunc(order, func(a, b Route) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Method, b.Method))
	})
	removed := map[string]*RemovedByRule{}
	var reached uint64
	for i := range order {
		r := &order[i]
		row := CoveredRoute{Name: r.Name(), Requests: r.Requests, Share: share01(r.Requests, p.Requests)}
		if r.Latency != nil {
			row.P95 = r.Latency.P95
		}
		if t, err := ParseTemplate(r.Path); err == nil && t.Rest() {
			row.Note = NoteWildcard
		}
		decision := Decision{}
		if row.Why = WhyUnmatched; !r.Unmatched {
			decision = policy.DecideTemplate(r.Method, r.Path)
			row.Why = decision.Why()
		}
		if row.Reached = row.Why == ""; row.Reached {
			reached += r.Requests
		} else {
			c.miss(r, &row, removed)
			if row.Why == WhyNotNamed {
				c.suggest(r)
			}
		}
		c.Routes = append(c.Routes, row)
	}
	c.Reached = share01(reached, p.Requests)
	for _, r := range removed {
		r.Share = share01(r.Requests, p.Requests)
		c.Removed = append(c.Removed, *r)
	}
	slices.SortFunc(c.Removed, func(a, b RemovedByRule) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Pattern, b.Pattern))
	})
	return c
}

func share01(part, whole uint64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

func (c *Coverage) miss(r *Route, row *CoveredRoute, removed map[string]*RemovedByRule) {
	if c.Heaviest == "" && !r.Unmatched {
		c.Heaviest, c.HeaviestPart = row.Name, row.Share
	}
	by := removed[row.Why]
	if by == nil {
		by = &RemovedByRule{Pattern: row.Why}
		removed[row.Why] = by
	}
	by.Routes++
	by.Requests += r.Requests
}

// suggest adds the safe_routes line that would cover a route.
func (c *Coverage) suggest(r *Route) {
	t, err := ParseTemplate(r.Path)
	if err != nil {
		return
	}
	if t.Rest() && len(t.segs) == 1 {
		return // its line would name every path there is
	}
	line := r.Method + " " + t.pattern()
	if alone, err := NewPolicy([]string{line}, nil); err != nil || !alone.DecideTemplate(r.Method, r.Path).Safe {
		return // a path that servers read in different ways: no line would cover it
	}
	list := &c.Writes
	if r.Method == "GET" || r.Method == "HEAD" || r.Method == "OPTIONS" {
		list = &c.Suggested
	}
	if !slices.Contains(*list, line) {
		*list = append(*list, line)
	}
}

// pattern spells the template as a line of safe_routes.
func (t *Template) pattern() string {
	var b strings.Builder
	for i := range t.segs {
		b.WriteByte('/')
		switch s := &t.segs[i]; s.kind {
		case literal:
			b.WriteString(strings.ReplaceAll(s.text, "*", "%2A"))
		case rest:
			b.WriteString("**")
		default:
			b.WriteByte('*')
		}
	}
	return b.String()
}
