package run

import (
	"fmt"
	"strings"

	"seatrial/compare"
	"seatrial/evidence"
	"seatrial/judge"
	"seatrial/plan"
	"seatrial/report/figure"
)

// fidelity says, dimension by dimension, what of production this run reproduced (LD-15). A dimension
// that nobody measured is called unmeasured, never reproduced or absent.
func (x *execution) fidelity() []evidence.Dimension {
	mix := trafficDimension(x.prep.plan.Mix)
	if !hasCheck(x.prep.plan, judge.P95Increase) { // TR-6
		mix.Text += "; no latency limit was in force, so the run is judged on its error rate"
	}
	return []evidence.Dimension{x.servicesDimension(), databaseDimension(), mix}
}

func (x *execution) servicesDimension() evidence.Dimension {
	d := evidence.Dimension{Name: "services", State: "unmeasured"}
	if x.aim.env == nil {
		d.Text = "the target was not brought up by this run: which build serves it, and what stands behind it, is not known"
		return d
	}
	info := x.aim.env.Info()
	d.State = "substituted"
	d.Text = fmt.Sprintf("%d of the manifest's services ran as processes on this machine instead of production's hosts; calls to the outside were not sandboxed", len(info.Services))
	return d
}

func databaseDimension() evidence.Dimension {
	return evidence.Dimension{Name: "database", State: "unmeasured",
		Text: "the manifest declares no database: whether the services use one, and with which rows, was not measured"}
}

func trafficDimension(m plan.Mix) evidence.Dimension {
	d := evidence.Dimension{Name: "traffic", State: "reproduced"}
	if m.Assumed {
		d.State = "substituted"
		d.Text = "an assumed smoke over declared routes in equal shares; this is not production's traffic"
		return d
	}
	if m.Requests == 0 {
		d.State, d.Text = "absent", "the source held no request"
		return d
	}
	d.Text = fmt.Sprintf("%s of production's requests are on routes that this run sends, at %s beside production's own %s", percent(m.Reached), figure.Rate(m.Rate), figure.Rate(m.ProductionRate))
	if m.ProductionSpan > 0 {
		d.Text += fmt.Sprintf(" (%s in %s)", figure.Counted(m.Requests, "request"), figure.Duration(m.ProductionSpan))
	}
	if m.RateAssumed != "" {
		d.Text = fmt.Sprintf("%s of production's requests are on routes that this run sends, at %s; the rate was assumed: %s", percent(m.Reached), figure.Rate(m.Rate), m.RateAssumed)
	}
	if m.HeaviestMissed != "" {
		d.Text += fmt.Sprintf("; the heaviest route that it never touches is %s (%s)", m.HeaviestMissed, percent(m.MissedShare))
	}
	if len(m.BaselineProfile) > 0 {
		d.Text += "; baselines from the committed profile: " + strings.Join(m.BaselineProfile, ", ")
	}
	d.Text += "; bodies, headers, query strings and the order of requests are not production's"
	return d
}

func percent(share float64) string { return fmt.Sprintf("%.3g%%", 100*share) }

// cannotControl states the limits of what one run can say.
func (x *execution) cannotControl() []string {
	out := []string{
		"The interval of a percentile is the sampling error of this run alone, and a floor: it does not hold drift of the host, neighbours or the difference between this machine and production's.",
		fmt.Sprintf("A p95 needs at least %d requests of a route to be bounded from above.", compare.Needed(compare.P95)),
		"Nothing here says that the answers were right: status and framing were checked, bodies were counted.",
		"It measures one build. Whether a change made it slower is a question for a comparison of two builds.",
	}
	if x.aim.notice != "" {
		out = append(out, x.aim.notice)
	}
	if p := x.prep.plan; !hasCheck(p, judge.P95Increase) {
		out = append(out, "No latency limit was in force: the source carries no durations and no profile stands in, so the run is judged on its error rate.")
	}
	for _, u := range x.health.Unmeasured {
		out = append(out, "Not measured on this machine: "+u+".")
	}
	return out
}

func hasCheck(p *plan.Plan, name string) bool {
	for _, k := range p.Checks {
		if k.Name == name {
			return true
		}
	}
	return false
}

// warnings are what a reader should know before the numbers.
func (x *execution) warnings() []string {
	var out []string
	if hit := x.health.ConnLimitHit; hit > 0 {
		out = append(out, fmt.Sprintf("%d requests waited for one of the %d connections (max_connections); the wait is inside their response time", hit, x.health.ConnLimit))
	}
	if redirects, answers := x.redirects(); redirects > 0 && 2*redirects >= answers {
		out = append(out, fmt.Sprintf("%s of %s were redirects, which are never followed: what stands behind them was not measured",
			figure.Count(redirects), figure.Counted(answers, "answer")))
	}
	if n := x.health.Unasked; n > 0 {
		out = append(out, fmt.Sprintf("%s given up because bytes came that belong to no request", figure.Counted(n, "connection")))
	}
	if x.aim.notice != "" {
		out = append(out, x.aim.notice)
	}
	return append(out, x.generatorCauses()...)
}

// redirects counts the judged answers of 3xx, and all.
func (x *execution) redirects() (redirects, answers uint64) {
	for i := range x.tally.Routes {
		redirects += x.tally.Routes[i].Status[3]
		answers += x.tally.Routes[i].Account.Answered
	}
	return redirects, answers
}
