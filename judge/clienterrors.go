package judge

import (
	"fmt"
	"math"

	"seatrial/compare"
	"seatrial/fault"
)

// judgeClientErrors is LD-5: a breach needs both an excess over production's recorded share and one
// that chance does not explain, by Fisher's exact test with Holm over the routes. It is one limit over
// all routes: one finding says what held, and each breach and each route that was asked and never
// answered is a finding of its own. Routes too rare for the test to find anything on them, even if every
// answer were a 4xx, are judged together as one. A route of which the schedule drew no request is
// counted, and says nothing either way.
func judgeClientErrors(checks []Check, c Case) []Finding {
	if len(checks) == 0 {
		return nil
	}
	j := clientErrors{whole: Finding{Check: ClientErrorIncrease, Unit: "share", Limit: checks[0].Limit}}
	var p []float64
	var alone []Finding // of the routes that can be judged by themselves
	level := holmLevel / float64(len(checks))
	for _, k := range checks {
		r := c.Routes[k.Route]
		f := clientErrorFinding(k, r)
		switch recorded := k.recorded(); {
		case r.Due == 0:
			j.undrawn++
		case r.Answered == 0:
			f.Code, f.Reason = string(fault.GEN003), "no answer of this route was measured"
			j.named = append(j.named, f)
		case k.BaselineSamples == 0 && f.Measured > f.Limit:
			f.Code = string(fault.GEN003)
			f.Reason = fmt.Sprintf("%d of %d answers were 4xx, and production's share is not known: the source recorded no status", r.ClientErrors, r.Answered)
			j.named = append(j.named, f)
		case compare.FisherGreater(r.Answered, r.Answered, recorded, k.BaselineSamples) > level:
			j.rare.add(r, recorded, k)
		default:
			p = append(p, compare.FisherGreater(r.ClientErrors, r.Answered, recorded, k.BaselineSamples))
			alone = append(alone, f)
			j.add(r.ClientErrors, r.Answered, k.Baseline)
		}
	}
	together, judged := j.rare.finding(checks[0].Limit, len(alone) == 0)
	p = append(p, j.rare.p())
	rejected := compare.Holm(p, holmLevel)
	for i, f := range alone {
		if f.Measured > f.Limit && rejected[i] {
			f.Verdict, f.Code = Fail, string(fault.LOD011)
			j.breach(f)
		}
	}
	switch {
	case judged && together.Measured > together.Limit && rejected[len(alone)]:
		together.Verdict, together.Code = Fail, string(fault.LOD011)
		j.breach(together)
	case judged && together.Code != "":
		j.breach(together)
	}
	return j.findings()
}

// recorded is how many of the recorded answers were 4xx.
func (k Check) recorded() uint64 { return uint64(math.Round(k.Baseline * float64(k.BaselineSamples))) }

// clientErrors gathers what the one limit over all routes says.
type clientErrors struct {
	whole                   Finding
	named                   []Finding
	routes, undrawn         int
	hits, answers, expected float64
	rare                    rareRoutes
}

// add counts a route that can be judged by itself.
func (j *clientErrors) add(hits, answers uint64, baseline float64) {
	j.routes++
	j.hits += float64(hits)
	j.answers += float64(answers)
	j.expected += baseline * float64(answers)
}

// breach is a finding of its own; what it was over is no longer among what held.
func (j *clientErrors) breach(f Finding) {
	j.named = append(j.named, f)
	if f.Route == RareRoutes {
		j.rare = rareRoutes{}
		return
	}
	j.routes--
	j.hits -= f.Measured * float64(f.Samples)
	j.answers -= float64(f.Samples)
	j.expected -= f.Baseline * float64(f.Samples)
}

// RareRoutes stands for the routes that are judged together.
const RareRoutes = "(rare routes together)"

// rareRoutes adds up routes with too few answers, here or in production, to be judged alone.
type rareRoutes struct {
	routes                        int
	hits, answers, recorded, base uint64
	expected                      float64
}

func (x *rareRoutes) add(r RouteCase, recorded uint64, k Check) {
	x.routes++
	x.hits += r.ClientErrors
	x.answers += r.Answered
	x.recorded += recorded
	x.base += k.BaselineSamples
	x.expected += k.Baseline * float64(r.Answered)
}

func (x *rareRoutes) p() float64 { return compare.FisherGreater(x.hits, x.answers, x.recorded, x.base) }

// finding is over the rare routes together; false when there are none. When nothing else could be judged
// and they cannot tell either, an excess over the limit is unverified.
func (x *rareRoutes) finding(limit float64, alone bool) (Finding, bool) {
	if x.answers == 0 {
		return Finding{}, false
	}
	n := float64(x.answers)
	f := Finding{Check: ClientErrorIncrease, Route: RareRoutes, Unit: "share", Measured: float64(x.hits) / n, Baseline: x.expected / n,
		BaselineSamples: x.base, Limit: x.expected/n + limit, Samples: x.answers}
	f.Reason = fmt.Sprintf("%d of %d answers on %s were 4xx, against %s in production", x.hits, x.answers, counted(x.routes, "rare route"), percent(f.Baseline))
	blind := compare.FisherGreater(x.answers, x.answers, x.recorded, x.base) > holmLevel
	if alone && blind && f.Measured > f.Limit {
		f.Code = string(fault.GEN005)
		f.Reason += "; too few to tell"
	}
	return f, true
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// findings are what held, and everything else by name.
func (j *clientErrors) findings() []Finding {
	f := j.whole
	routes, answers := j.routes+j.rare.routes, j.answers+float64(j.rare.answers)
	if routes == 0 {
		if len(j.named) > 0 {
			return j.named // they say it
		}
		f.Code, f.Reason = string(fault.GEN003), "no answer was measured"
		return []Finding{f}
	}
	f.Verdict, f.Samples = Pass, uint64(answers)
	f.Measured = max(0, j.hits+float64(j.rare.hits)-j.expected-j.rare.expected) / answers
	f.Reason = fmt.Sprintf("on %s no excess of 4xx over production's share that is both over the limit and beyond chance; measured is the excess over all of them", counted(routes, "route"))
	if j.undrawn > 0 {
		f.Reason += fmt.Sprintf("; %s had no request in this run", counted(j.undrawn, "rarer route"))
	}
	return append(j.named, f)
}

func clientErrorFinding(k Check, r RouteCase) Finding {
	f := Finding{Check: k.Name, Route: k.RouteName, Unit: "share", Baseline: k.Baseline,
		BaselineSamples: k.BaselineSamples, BaselineFrom: k.BaselineFrom, Limit: k.Baseline + k.Limit, Samples: r.Answered}
	if r.Answered > 0 {
		f.Measured = float64(r.ClientErrors) / float64(r.Answered)
	}
	f.Reason = fmt.Sprintf("%d of %d answers were 4xx, against %s in production", r.ClientErrors, r.Answered, percent(k.Baseline))
	return f
}
