package plan

import (
	"fmt"
	"math"
	"strings"
	"time"

	"seatrial/compare"
	"seatrial/judge"
	"seatrial/traffic"
)

// fromWhere is a side that a baseline can come from.
type fromWhere struct {
	name   string
	routes map[string]*traffic.Route
}

// baselines gives the sides in the order in which they are asked: the source's own figures first,
// the committed profile's where the source has none (LD-7).
func (c *compiler) baselines() []fromWhere {
	var out []fromWhere
	for _, side := range []struct {
		name    string
		profile *traffic.Profile
	}{{"source", c.in.Source}, {"profile", c.in.Profile}} {
		if side.profile == nil {
			continue
		}
		routes := make(map[string]*traffic.Route, len(side.profile.Routes))
		for i := range side.profile.Routes {
			routes[side.profile.Routes[i].Name()] = &side.profile.Routes[i]
		}
		out = append(out, fromWhere{side.name, routes})
	}
	return out
}

// checks writes down what will be judged, before anything is sent.
func (c *compiler) checks() {
	sides, limits := c.baselines(), c.load.Thresholds
	if limits.ErrorRate != nil {
		c.plan.Checks = append(c.plan.Checks, judge.Check{Name: judge.ErrorRate, Route: -1, Limit: *limits.ErrorRate})
	}
	if limits.P95Increase != nil {
		c.p95(sides, *limits.P95Increase)
	}
	if limits.ClientErrorIncrease != nil && !c.plan.CountsClientErrors() { // elsewhere every 4xx is an error already
		for i := range c.plan.Routes {
			c.clientErrors(sides, i, *limits.ClientErrorIncrease)
		}
	}
}

// p95 adds a check for every route with a baseline. When none has one, a single check with Route -1
// stands for the threshold that is in force and has nothing to measure (LOD-016).
func (c *compiler) p95(sides []fromWhere, limit float64) {
	x := &c.plan.Mix
	found := false
	for i, r := range c.plan.Routes {
		k := judge.Check{Name: judge.P95Increase, Route: i, RouteName: r.Name, Quantile: 0.95, Limit: limit}
		if !p95Baseline(sides, r.Name, &k) {
			x.NoBaseline = append(x.NoBaseline, r.Name)
			continue
		}
		found = true
		if k.BaselineFrom == "profile" {
			x.BaselineProfile = append(x.BaselineProfile, r.Name)
		}
		k.LimitNanos = int64(math.Floor(min(k.Baseline*(1+limit), float64(math.MaxInt64/2))))
		c.plan.Checks = append(c.plan.Checks, k)
	}
	if !found {
		c.plan.Checks = append(c.plan.Checks, judge.Check{Name: judge.P95Increase, Route: -1, Quantile: 0.95, Limit: limit})
	}
}

func p95Baseline(sides []fromWhere, name string, k *judge.Check) bool {
	for _, side := range sides {
		if r := side.routes[name]; r != nil {
			if p95, ok := r.Baseline(); ok && p95 > 0 {
				k.Baseline, k.BaselineSamples, k.BaselineFrom = float64(p95), r.Latency.Samples, side.name
				return true
			}
		}
	}
	return false
}

// clientErrors adds LD-5's check for a route. Where no status was recorded there is no baseline, and 4xx
// answers beyond the limit prove nothing either way.
func (c *compiler) clientErrors(sides []fromWhere, i int, limit float64) {
	name := c.plan.Routes[i].Name
	for _, side := range sides {
		r := side.routes[name]
		if r == nil {
			continue
		}
		recorded := uint64(0)
		for class, n := range r.Status {
			if strings.HasSuffix(class, "xx") {
				recorded += n
			}
		}
		if recorded == 0 {
			continue
		}
		c.plan.Checks = append(c.plan.Checks, judge.Check{Name: judge.ClientErrorIncrease, Route: i, RouteName: name, Limit: limit,
			Baseline: float64(r.Status["4xx"]) / float64(recorded), BaselineSamples: recorded, BaselineFrom: side.name})
		return
	}
	c.plan.Checks = append(c.plan.Checks, judge.Check{Name: judge.ClientErrorIncrease, Route: i, RouteName: name, Limit: limit})
}

// RouteLimits gives, by route, the response times at or under which requests are counted exactly,
// for record.Config.Limits.
func (p *Plan) RouteLimits() [][]time.Duration {
	out := make([][]time.Duration, len(p.Routes))
	for _, k := range p.Checks {
		if k.Route >= 0 && k.LimitNanos > 0 {
			out[k.Route] = append(out[k.Route], time.Duration(k.LimitNanos))
		}
	}
	return out
}

// Describe says in one line what a check holds, for a page that lists the pass lines.
func Describe(k judge.Check) string {
	where := k.RouteName
	if where == "" {
		where = "the whole run"
	}
	switch k.Name {
	case judge.P95Increase:
		if k.Route < 0 {
			return "p95_increase: no route has a baseline"
		}
		return fmt.Sprintf("%s: p95 at most %s (%s's %s + %g%%)", where, time.Duration(k.LimitNanos), k.BaselineFrom, time.Duration(k.Baseline), 100*k.Limit)
	case judge.ClientErrorIncrease:
		return fmt.Sprintf("%s: share of 4xx at most %.4g (production's %.4g + %g)", where, k.Baseline+k.Limit, k.Baseline, k.Limit)
	default:
		return fmt.Sprintf("%s: %s at most %g", where, k.Name, k.Limit)
	}
}

// warnOfShortSamples says before the run which p95 limits it can hardly pass: an upper bound takes
// compare.Needed requests of the route, whatever they measure.
func (c *compiler) warnOfShortSamples() {
	need := float64(compare.Needed(compare.P95))
	var short []string
	longest := 0.0
	for _, k := range c.plan.Checks {
		if k.Name != judge.P95Increase || k.Route < 0 {
			continue
		}
		perSecond := c.plan.Routes[k.Route].Weight * c.plan.Open.Rate
		if perSecond*c.plan.Duration.Seconds() < need {
			short = append(short, k.RouteName)
			longest = max(longest, need/perSecond)
		}
	}
	if len(short) == 0 {
		return
	}
	c.warn("a p95 needs %d requests to be bounded, and this run sends fewer of %s; at this rate that takes a duration of %s",
		int(need), brief(short), time.Duration(math.Ceil(longest*1.2))*time.Second)
}
