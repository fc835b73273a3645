package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"seatrial/traffic"
)

// Where a route's values come from.
const (
	byParams = "params"
	bySource = "source"
)

// candidate is a route that passed the policy and has something to send.
type candidate struct {
	method string
	path   string // template
	weight float64
	values
}

func (s candidate) name() string { return s.method + " " + s.path }

// routes decides what is sent.
func (c *compiler) routes() {
	if c.in.Source == nil {
		c.assumed()
	} else {
		for i := range c.in.Source.Routes {
			c.route(&c.in.Source.Routes[i])
		}
	}
	slices.SortFunc(c.sent, func(a, b candidate) int { return cmp.Compare(a.name(), b.name()) })
	total := 0.0
	for _, s := range c.sent {
		total += s.weight
	}
	for i := range c.sent {
		c.sent[i].weight /= total
	}
}

// assumed is the mix of source none (TR-8): the literal GET and HEAD routes of safe_routes in equal
// parts, or the root. Patterns are filters, not URLs.
func (c *compiler) assumed() {
	seen := map[string]bool{}
	add := func(method, path string) {
		if name := method + " " + path; !seen[name] {
			seen[name] = true
			c.consider(&traffic.Route{Method: method, Path: path, Weight: 1})
		}
	}
	for _, p := range c.load.SafeRoutes {
		method, path, _ := strings.Cut(p, " ")
		if method == "*" {
			method = "GET"
		}
		switch {
		case strings.ContainsAny(path, "*{}?#"):
			c.warn("safe_routes %s names no single URL, so without a traffic source nothing is sent for it", p)
		case method == "GET" || method == "HEAD":
			add(method, path)
		default:
			c.warn("safe_routes %s is not sent: without a traffic source only GET and HEAD are", p)
		}
	}
	if len(seen) == 0 {
		add("GET", "/")
	}
}

// route considers one route of the source.
func (c *compiler) route(r *traffic.Route) {
	switch {
	case r.Requests == 0:
	case r.Unmatched:
		c.omit(r, "no route of the application matched it")
	case !sendable(r.Method):
		c.omit(r, "the method "+r.Method+" cannot be sent")
	default:
		c.consider(r)
	}
}

// sendable tells whether a method can be sent as a request of its own. CONNECT opens a tunnel.
func sendable(method string) bool {
	return method != "" && method != "CONNECT" && len(method) <= 32 &&
		!strings.ContainsFunc(method, func(r rune) bool { return r < 'A' || r > 'Z' })
}

// consider applies the policy and looks for values.
func (c *compiler) consider(r *traffic.Route) {
	t, err := traffic.ParseTemplate(r.Path)
	if err != nil {
		c.omit(r, "its path cannot be sent: "+err.Error())
		return
	}
	if c.in.Replay > 0 {
		c.considerRecorded(r)
		return
	}
	if t.Literal() {
		path := t.String()
		if d := c.decide(r.Method, path); !d.Safe {
			c.remove(r, d)
			return
		}
		c.sent = append(c.sent, candidate{method: r.Method, path: r.Path, weight: r.Weight, values: literalValue(path)})
		return
	}
	v, d, why := c.valuesOf(r, t)
	switch {
	case why != "":
		c.omit(r, why)
	case v.count == 0:
		c.remove(r, d)
	default:
		c.sent = append(c.sent, candidate{method: r.Method, path: r.Path, weight: r.Weight, values: v})
	}
}

// methods are those under which the policy must allow a request: its own, and any that a method
// override header would make of it.
func (c *compiler) methods(method string) []string { return append([]string{method}, c.overrides...) }

// decide asks the policy about a concrete path under every effective method.
func (c *compiler) decide(method, path string) traffic.Decision {
	var d traffic.Decision
	for _, m := range c.methods(method) {
		if d = c.policy.Decide(m, path); !d.Safe {
			return d
		}
	}
	return d
}

// decideTemplate asks it about every value that could stand in a template.
func (c *compiler) decideTemplate(method, path string) traffic.Decision {
	var d traffic.Decision
	for _, m := range c.methods(method) {
		if d = c.policy.DecideTemplate(m, path); !d.Safe {
			return d
		}
	}
	return d
}

// remove notes a route that the policy refused.
func (c *compiler) remove(r *traffic.Route, d traffic.Decision) {
	why := d.Why()
	c.omit(r, why)
	patterns := c.plan.Mix.Patterns
	i := slices.IndexFunc(patterns, func(x Removal) bool { return x.Pattern == why })
	if i < 0 {
		i = len(patterns)
		patterns = append(patterns, Removal{Pattern: why})
	}
	patterns[i].Share += r.Weight
	patterns[i].Routes++
	c.plan.Mix.Patterns = patterns
}

func (c *compiler) omit(r *traffic.Route, why string) {
	c.plan.Mix.NotSent = append(c.plan.Mix.NotSent, Omission{Route: r.Name(), Share: r.Weight, Reason: why})
}

// mix fills in the traffic part of the report (TR-34).
func (c *compiler) mix() {
	x, p := &c.plan.Mix, c.plan
	x.Source, x.Rate = c.load.Source, p.Open.Rate
	if p.Recorded {
		x.Source = "recording"
	}
	if c.in.Source == nil {
		x.Assumed = true
		x.RateAssumed = fmt.Sprintf("%g requests a second, because there is no source", AssumedRate)
	} else {
		x.ProductionRate, x.RateAssumed, x.Requests = c.in.Source.Rate, c.in.Source.RateAssumed, c.in.Source.Requests
	}
	shares := map[string]float64{}
	if ref := c.reference(); ref != nil {
		x.ProductionRate = ref.Rate
		if ref.Window != nil {
			x.ProductionSpan = ref.Window.End.Sub(ref.Window.Start)
		}
		for i := range ref.Routes {
			shares[ref.Routes[i].Name()] = ref.Routes[i].Weight
		}
	}
	if c.in.Profile != nil {
		x.Profile, x.ProfileAge = c.load.Traffic.Profile, max(0, c.in.Now.Sub(c.in.Profile.Recorded))
		c.missedOfProfile()
	}
	for _, s := range c.sent {
		x.Reached += shares[s.name()]
		p.Routes = append(p.Routes, Route{Name: s.name(), Method: s.method, Path: s.path, Weight: s.weight,
			Share: shares[s.name()], Values: s.count, ValuesBy: s.by, Pool: s.digest})
	}
	x.Reached = min(1, x.Reached)
	slices.SortStableFunc(x.NotSent, func(a, b Omission) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.Route, b.Route))
	})
	slices.SortStableFunc(x.Patterns, func(a, b Removal) int { return cmp.Compare(b.Share, a.Share) })
	if len(x.NotSent) > 0 && c.reference() != nil {
		x.HeaviestMissed, x.MissedShare = x.NotSent[0].Route, x.NotSent[0].Share
	}
}

// missedOfProfile restates what is not sent in the profile's shares: with a profile, it and not the
// source says what production serves.
func (c *compiler) missedOfProfile() {
	x := &c.plan.Mix
	why := map[string]string{}
	for _, o := range x.NotSent {
		why[o.Route] = o.Reason
	}
	sent := map[string]bool{}
	for _, s := range c.sent {
		sent[s.name()] = true
	}
	x.NotSent = nil
	for i := range c.in.Profile.Routes {
		r := &c.in.Profile.Routes[i]
		if sent[r.Name()] {
			continue
		}
		text := cmp.Or(why[r.Name()], "the source does not hold it")
		if c.in.Source == nil && why[r.Name()] == "" {
			text = "an assumed smoke sends only the literal routes of safe_routes"
		}
		c.omit(r, text)
	}
}

// sortedKeys gives a map's keys in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
