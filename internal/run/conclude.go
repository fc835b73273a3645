package run

import (
	"fmt"
	"strings"
	"time"

	"seatrial/compare"
	"seatrial/evidence"
	"seatrial/fault"
	"seatrial/judge"
	"seatrial/record"
	"seatrial/report"
	"seatrial/report/figure"
)

// judge settles the account, evaluates the checks and fills the evidence.
func (x *execution) judge() {
	r, p := x.run, x.prep.plan
	if x.ran < p.Open.Duration {
		r.StoppedAfter = x.ran.Seconds()
	}
	r.Fill(p, x.tally, x.cpu)
	r.Generator = &x.health
	x.bands()
	err := x.tally.Check()
	if err == nil {
		stopped := x.stopped || x.aborted > 0 || x.lost != nil
		warmup, judged := p.ConnectionsDue()
		if err = x.arrivalsWarmup.Balanced(warmup, stopped); err == nil {
			err = x.arrivals.Balanced(judged, stopped)
		}
	}
	if err != nil {
		x.cause(fault.New(fault.GEN002, "the account of requests does not balance: %v", err))
		r.Verdict, r.Sentence = judge.Unverified, "No verdict: the account of requests does not balance."
		return
	}
	r.Findings = append(judge.Evaluate(p.Checks, x.measured()), x.replayFindings()...)
	r.Verdict = judge.Overall(r.Findings)
	x.causes()
	r.Warnings = append(r.Warnings, x.warnings()...)
	r.Fidelity = x.fidelity()
	r.Limits = x.cannotControl()
	r.Sentence = x.sentence()
}

// bands adds the order-statistic interval of each route's p95 (CO-15).
func (x *execution) bands() {
	for i := range x.run.Routes {
		h := x.tally.Routes[i].Response
		band := compare.OrderBand(h.Count(), compare.P95)
		route := &x.run.Routes[i]
		if band.Lo > 0 {
			route.P95Lo = millis(h.ValueAtRank(band.Lo))
		}
		if band.Hi > 0 {
			route.P95Hi, route.P95Bounded = millis(h.ValueAtRank(band.Hi)), true
		}
	}
}

// measured turns the tally into the plain numbers that the judge reads.
func (x *execution) measured() judge.Case {
	p := x.prep.plan
	c := judge.Case{Unasked: x.health.Unasked, ClientErrorsCount: p.CountsClientErrors(), Abort: x.aborted, AbortRate: p.Abort.Rate, AbortFor: p.Abort.For}
	if p.ConnArrivals.Rate > 0 {
		a := x.arrivals
		c.Connections = &judge.ConnectionCase{Opened: a.Opened, Failed: a.Failed + a.TimedOut, Unsent: a.Unsent}
	}
	delay := record.NewHistogram()
	for i := range x.tally.Routes {
		t := &x.tally.Routes[i]
		c.Routes = append(c.Routes, routeCase(p.Routes[i].Name, t))
		delay.Merge(t.SendDelay)
	}
	a := x.tally.Judged
	sent := a.Sent()
	own := x.ownShortfall()
	c.Generator = judge.GeneratorCase{Due: a.Due, Sent: sent, OwnShortfall: own, Causes: x.generatorCauses()}
	c.Generator.SendDelayP99 = delay.Quantile(99, 100)
	return c
}

func routeCase(name string, t *record.RouteTally) judge.RouteCase {
	a := t.Account
	out := judge.RouteCase{Name: name, Due: a.Due, Ended: t.Response.Count(), Answered: a.Answered, ClientErrors: t.ClientErrors(),
		Responses: t.Responses(), Errors: t.Errors(), At: t.Response.ValueAtRank}
	if len(t.Under) > 0 {
		out.Under, out.NetUnder = t.Under[0], t.NetUnder[0]
	}
	if t.Response.Count() > 0 {
		out.P95, out.Net95 = t.Response.Quantile(95, 100), t.Net.Quantile(95, 100)
	}
	return out
}

// ownShortfall counts what was due and not brought out for a cause on the generator's side.
func (x *execution) ownShortfall() uint64 {
	own := x.tally.Judged.Lost + x.health.PortsExhausted + x.health.FDExhausted
	for i := range x.tally.Routes {
		own += x.tally.Routes[i].Outcomes[record.UnsentRate] + x.tally.Routes[i].Outcomes[record.UnsentLate]
	}
	return own
}

func (x *execution) generatorCauses() []string {
	h := x.health
	var out []string
	add := func(n uint64, what string) {
		if n > 0 {
			out = append(out, fmt.Sprintf("%d %s", n, what))
		}
	}
	add(h.RateLimited, "requests were held back by the target's max_rate")
	late, unwatched := uint64(0), uint64(0)
	for i := range x.tally.Routes {
		late += x.tally.Routes[i].Outcomes[record.UnsentLate]
		unwatched += x.tally.Routes[i].Outcomes[record.Unwatched]
	}
	add(late, "requests were not sent, because the generator came to them after their time-out")
	add(unwatched, "requests were not seen through, because the generator stood still when their time-out came")
	add(h.PortsExhausted, "connects found no free local port")
	add(h.FDExhausted, "connects found no free file descriptor")
	add(h.LostSamples, "samples were lost")
	if h.CPU > 0.9 {
		out = append(out, fmt.Sprintf("the generator's CPU was at %.0f%%", 100*h.CPU))
	}
	if h.Suspended > 0 {
		out = append(out, fmt.Sprintf("the machine or the process stood still for %s", h.Suspended.Round(time.Millisecond)))
	}
	return out
}

// causes turns findings into the codes that the exit number depends on; one line per code.
func (x *execution) causes() {
	byCode := map[string][]judge.Finding{}
	var order []string
	for _, f := range x.run.Findings {
		if f.Verdict == judge.Pass || f.Code == "" {
			continue
		}
		if byCode[f.Code] == nil {
			order = append(order, f.Code)
		}
		byCode[f.Code] = append(byCode[f.Code], f)
	}
	if x.stopped { // first of all: a reader must not take the part for the whole
		x.cause(fault.New(fault.CLI003, "the run was interrupted after %s of %s", figure.Duration(x.ran), figure.Duration(x.prep.plan.Open.Duration)))
		if x.run.Verdict == judge.Pass {
			x.run.Verdict = judge.Unverified
		}
	}
	if x.unread != nil {
		x.cause(x.unread)
		if x.run.Verdict == judge.Pass {
			x.run.Verdict = judge.Unverified
		}
	}
	if x.lost != nil {
		x.cause(x.lost)
		if x.run.Verdict == judge.Pass {
			x.run.Verdict = judge.Unverified
		}
	}
	for _, code := range order {
		x.cause(describe(fault.Code(code), byCode[code], len(x.prep.plan.Routes)))
	}
	if x.run.Verdict == judge.Unverified && len(x.kinds) == 0 {
		x.cause(fault.New(fault.GEN003, "nothing that was declared could be judged"))
	}
}

// maxNamed is how many checks a cause names; all of them stand among the findings.
const maxNamed = 8

// describe words one code behind the findings; routes is how many the run sent.
func describe(code fault.Code, fs []judge.Finding, routes int) *fault.Error {
	var names []string
	for i, f := range fs {
		if i == maxNamed && len(fs) > maxNamed+1 {
			names = append(names, fmt.Sprintf("and %d more", len(fs)-i))
			break
		}
		name := strings.TrimSpace(f.Check + " " + f.Route)
		if f.Check == judge.ErrorRate || f.Check == judge.ConnectionErrors {
			name += " (" + f.Reason + ")"
		}
		names = append(names, name)
	}
	where := strings.Join(names, "; ")
	switch code {
	case fault.LOD011:
		return fault.New(code, "Load exceeded %s of the manifest: %s", figure.Counted(uint64(len(fs)), "threshold"), where)
	case fault.LOD002:
		return fault.New(code, "%s", fs[0].Reason)
	case fault.LOD016:
		return fault.New(code, "p95_increase proved nothing: no baseline for any of %s that the run sent, so nothing was compared", theRoutes(routes))
	case fault.GEN001:
		e := fault.New(code, "generator saturated: %s", fs[0].Reason)
		if fs[0].Check == judge.ConnectionErrors {
			e.Next = "Raise `load.max_connections`, or the target's `max_rate`; otherwise lower `load.connections.rate`."
		}
		return e
	case fault.GEN005:
		return fault.New(code, "this run cannot tell on which side of the limit the value lies: %s", where)
	default:
		return fault.New(code, "%s (%s)", fs[0].Reason, where)
	}
}

// theRoutes says how many routes there were.
func theRoutes(n int) string {
	if n == 1 {
		return "the 1 route"
	}
	return fmt.Sprintf("the %d routes", n)
}

func (x *execution) cause(e *fault.Error) {
	x.run.Causes = append(x.run.Causes, evidence.Cause{Code: string(e.Code), Message: e.Message, Next: e.Next})
	x.kinds = append(x.kinds, e.Kind())
}

// sentence is the verdict in one sentence.
func (x *execution) sentence() string {
	passed, failed, open := 0, 0, 0
	for _, f := range x.run.Findings {
		switch {
		case f.Verdict == judge.Pass:
			passed++
		case f.Verdict == judge.Fail:
			failed++
		default:
			open++
		}
	}
	n := x.run.Account.Answered
	switch x.run.Verdict {
	case judge.Pass:
		return fmt.Sprintf("Pass: all %d checks were measured over %s and held.", passed, figure.Counted(n, "answer"))
	case judge.Fail:
		return fmt.Sprintf("Fail: %d of %d checks did not hold. %s.", failed, passed+failed+open, strings.Join(x.headline(), ". "))
	default:
		why := "nothing was judged"
		if len(x.run.Causes) > 0 {
			why = x.run.Causes[0].Message
		}
		return fmt.Sprintf("Unverified: %s.", why)
	}
}

// headline is what a reader must know first of a run that failed: why it did, and what stands against
// the figures.
func (x *execution) headline() []string {
	var out []string
	for _, c := range x.run.Causes {
		switch fault.Code(c.Code) {
		case fault.LOD001, fault.LOD011, fault.LOD002, fault.CLI003, fault.GEN001:
			out = append(out, strings.ToUpper(c.Message[:1])+c.Message[1:])
		}
	}
	if len(out) == 0 {
		out = append(out, x.run.Causes[0].Message)
	}
	return out
}

func (x *execution) close() (*Result, error) {
	end := x.cfg.Now().UTC()
	x.run.Ended, x.run.Complete = &end, true
	x.run.Tally = x.tally
	if err := x.store.Finish(x.run, report.Files()); err != nil {
		return nil, err
	}
	return &Result{Run: x.run, Folder: x.store.Dir(), Kinds: x.kinds}, nil
}

// inconclusive is a run that had no route to send: its evidence says so (TR-9).
func inconclusive(cfg Config, prep *preparation) (*Result, error) {
	store, err := evidence.Create(cfg.RunRoot, cfg.Command, cfg.Now(), evidence.NewRedactor())
	if err != nil {
		return nil, err
	}
	x := &execution{cfg: cfg, prep: prep, store: store, aim: &aim{}}
	x.run = x.newRun(store.ID())
	x.cause(prep.nothing)
	x.run.Verdict, x.run.Sentence = judge.Unverified, "Unverified: "+prep.nothing.Message+"."
	x.run.Limits = []string{"nothing was sent"}
	return x.close()
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
