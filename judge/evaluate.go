package judge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"seatrial/compare"
	"seatrial/fault"
)

// The names of the checks.
const (
	P95Increase         = "p95_increase"
	ErrorRate           = "error_rate"
	ClientErrorIncrease = "client_error_increase"
	GeneratorHealth     = "generator"
	Aborted             = "abort"
	Answers             = "answers" // that each belongs to its request
	ConnectionErrors    = "connection_error_rate"
	Expectation         = "expect" // that a declared expectation was looked at; what breaks it is an error
)

// Bounds of the generator's own health (LD-11).
const (
	MaxSendDelayP99 = 10 * time.Millisecond
	MaxShortfall    = 0.01 // share of the due requests that the generator's side failed to bring out
	holmLevel       = 0.01 // LD-5
)

// Case is what one run measured, in plain numbers.
type Case struct {
	Routes      []RouteCase
	Generator   GeneratorCase
	Connections *ConnectionCase // those by a schedule of their own; nil without any
	// Unasked is how many connections were given up because bytes came that belong to no request.
	Unasked uint64
	// Abort is the error share at which the run was aborted; 0 when it was not.
	Abort     float64
	AbortRate float64 // the limit that it was over
	AbortFor  time.Duration
	// ClientErrorsCount makes answers 400..499 errors, as in a smoke (LD-5).
	ClientErrorsCount bool
}

// RouteCase is what one route's judged requests came to. Counters are exact, on unrounded
// nanoseconds.
type RouteCase struct {
	Name         string
	Due          uint64 // requests that the schedule meant to send
	Ended        uint64 // requests with a response time
	Responses    uint64 // requests that count for the error rate: answered, failed, timed out, never connected
	Errors       uint64 // of those: 5xx, failures and time-outs
	Answered     uint64
	ClientErrors uint64 // answered 400..499
	Under        uint64 // response times at or under the check's limit
	NetUnder     uint64 // the same, send delay subtracted
	P95          time.Duration
	Net95        time.Duration // p95 of response time less send delay
	// At gives the response time of a rank, from 1; for the interval that people see.
	At func(rank uint64) time.Duration
}

// ConnectionCase is what became of the connections that came by a schedule of their own.
type ConnectionCase struct {
	Opened uint64
	Failed uint64 // time-outs included
	Unsent uint64 // no place under the limit of connections, or the target's max_rate
}

// GeneratorCase is what the generator observed of itself.
type GeneratorCase struct {
	Due          uint64
	OwnShortfall uint64 // due, and not answered for a cause on the generator's side
	SendDelayP99 time.Duration
	Sent         uint64
	Causes       []string // what stood in its way, for people
}

// Evaluate judges every check. It is pure; absent data never passes.
func Evaluate(checks []Check, c Case) []Finding {
	var out []Finding
	var clients []Check
	for _, k := range checks {
		switch k.Name {
		case P95Increase:
			out = append(out, judgeP95(k, c))
		case ErrorRate:
			out = append(out, judgeErrorRate(k, c))
			out = append(out, judgeConnections(k, c.Connections)...)
		case Expectation:
			out = append(out, judgeExpectation(k, c)...)
		case ClientErrorIncrease:
			clients = append(clients, k)
		default:
			out = append(out, Finding{Check: k.Name, Route: k.RouteName, Limit: k.Limit,
				Code: string(fault.GEN003), Reason: "no judge knows this check"})
		}
	}
	out = append(out, judgeClientErrors(clients, c)...)
	out = append(out, judgeGenerator(c))
	out = append(out, judgeUnasked(c)...)
	if c.Abort > 0 {
		out = append(out, Finding{Check: Aborted, Verdict: Fail, Code: string(fault.LOD002), Unit: "share",
			Measured: c.Abort, Limit: c.AbortRate, Samples: c.Generator.Sent,
			Reason: fmt.Sprintf("aborted: the error rate was over %s for %s, and %s at the end", percent(c.AbortRate), c.AbortFor, percent(c.Abort))})
	}
	return out
}

// judgeExpectation says when no answer was held against what the manifest expects of a route: a check
// without data does not pass.
func judgeExpectation(k Check, c Case) []Finding {
	f := Finding{Check: Expectation, Route: k.RouteName, Unit: "share", Code: string(fault.GEN003)}
	switch {
	case k.Route < 0:
		f.Reason = "load.requests expects something of this route's answers, and this run does not send it"
	case c.Routes[k.Route].Responses == 0:
		f.Reason = "load.requests expects something of this route's answers, and there was none to look at"
	default:
		return nil // what broke it is in the error rate
	}
	return []Finding{f}
}

// Overall is the run's verdict: any fail, then any unverified, then pass. The generator's check can
// take a pass away and never gives one: a run that declared nothing has proved nothing.
func Overall(findings []Finding) Verdict {
	declared := false
	worst := Pass
	for _, f := range findings {
		switch f.Verdict {
		case Fail:
			return Fail
		case Unverified, Blocked:
			worst = Unverified
		case Pass:
			declared = declared || f.Check != GeneratorHealth
		}
	}
	if !declared {
		return Unverified
	}
	return worst
}

// judgeP95 places the limit against the route's order-statistic band (LD-8, CO-15), by exact counts:
// the value of rank u is at or under the limit if and only if at least u values are.
func judgeP95(k Check, c Case) (f Finding) {
	f = Finding{Check: k.Name, Route: k.RouteName, Unit: "ms", Baseline: millis(k.Baseline),
		BaselineSamples: k.BaselineSamples, BaselineFrom: k.BaselineFrom, Limit: millis(float64(k.LimitNanos))}
	if k.Route < 0 {
		f.Code, f.Limit = string(fault.LOD016), 0
		f.Reason = "no route that was sent has a baseline, so nothing was compared"
		return f
	}
	r := c.Routes[k.Route]
	f.Samples = r.Ended
	if r.Ended == 0 {
		f.Code = string(fault.GEN003)
		f.Reason = "no request of this route was measured"
		return f
	}
	band := compare.OrderBand(r.Ended, compare.P95)
	f.Measured = millis(float64(r.P95))
	f.Lo, f.Hi, f.Unbounded = bandMillis(r, band)
	f.Generator = generatorShare(r)
	defer func() { f.Reason += failedAreOver(r) }()
	switch {
	case band.Lo > 0 && r.Under < band.Lo:
		f = breachOrGenerator(f, r, band)
	case band.Hi > 0 && r.Under >= band.Hi:
		f.Verdict = Pass
		f.Reason = "the whole interval lies at or under the limit"
	case band.Hi == 0:
		f.Code = string(fault.GEN005)
		f.Reason = fmt.Sprintf("%d samples cannot bound a p95; it takes at least %d", r.Ended, compare.Needed(compare.P95))
	default:
		f.Code = string(fault.GEN005)
		f.Reason = "the limit lies inside the interval, so this run cannot tell"
	}
	return f
}

// failedAreOver says that requests without a valid answer are over the limit, whatever the time that they
// took: a server that fails at once is not fast.
func failedAreOver(r RouteCase) string {
	if r.Errors == 0 {
		return ""
	}
	return fmt.Sprintf("; %d of %d requests had no valid answer and count as over it", r.Errors, r.Responses)
}

// breachOrGenerator tells a breach of the target from one that the generator's own lateness made
// (EG-7).
func breachOrGenerator(f Finding, r RouteCase, band compare.Band) Finding {
	if r.NetUnder >= band.Lo {
		f.Code = string(fault.GEN001)
		f.Reason = "the breach disappears when the generator's send delay is subtracted"
		return f
	}
	f.Verdict, f.Code = Fail, string(fault.LOD011)
	f.Reason = "the whole interval lies above the limit"
	return f
}

func bandMillis(r RouteCase, b compare.Band) (lo, hi float64, unbounded bool) {
	if r.At == nil {
		return 0, 0, b.Hi == 0
	}
	if b.Lo > 0 {
		lo = millis(float64(r.At(b.Lo)))
	}
	if b.Hi > 0 {
		hi = millis(float64(r.At(b.Hi)))
	}
	return lo, hi, b.Hi == 0
}

// generatorShare is (q(response) - q(response - send delay)) / q(response), EG-7.
func generatorShare(r RouteCase) float64 {
	if r.P95 <= 0 {
		return 0
	}
	return max(0, float64(r.P95-r.Net95)/float64(r.P95))
}

// judgeErrorRate is an exact count of this run (CO-16).
func judgeErrorRate(k Check, c Case) Finding {
	f := Finding{Check: k.Name, Unit: "share", Limit: k.Limit}
	var errs, n uint64
	for _, r := range c.Routes {
		n += r.Responses
		errs += r.Errors
		if c.ClientErrorsCount {
			errs += r.ClientErrors
		}
	}
	f.Samples = n
	if n == 0 {
		f.Code, f.Reason = string(fault.GEN003), "no request was measured"
		return f
	}
	f.Measured = float64(errs) / float64(n)
	f.Reason = fmt.Sprintf("%d of %d requests failed in this run", errs, n)
	f.Reason += worstRoutes(c)
	if float64(errs) > k.Limit*float64(n) {
		f.Verdict, f.Code = Fail, string(fault.LOD011)
		return f
	}
	if answered(c) == 0 { // a limit that allows every error is no reason to pass without an answer
		f.Code, f.Reason = string(fault.GEN003), "no request was answered: "+f.Reason
		return f
	}
	f.Verdict = Pass
	return f
}

func answered(c Case) uint64 {
	var n uint64
	for _, r := range c.Routes {
		n += r.Answered
	}
	return n
}

// judgeConnections holds the connections that came by a schedule of their own to the limit of errors.
func judgeConnections(k Check, c *ConnectionCase) []Finding {
	if c == nil {
		return nil
	}
	n := c.Opened + c.Failed
	f := Finding{Check: ConnectionErrors, Unit: "share", Limit: k.Limit, Samples: n}
	if n > 0 {
		f.Measured = float64(c.Failed) / float64(n)
	}
	f.Reason = fmt.Sprintf("%d of %d new connections failed", c.Failed, n)
	switch {
	case n > 0 && float64(c.Failed) > k.Limit*float64(n):
		f.Verdict, f.Code = Fail, string(fault.LOD011)
	case c.Opened == 0:
		f.Code, f.Reason = string(fault.GEN003), "no new connection was opened: "+f.Reason
	case float64(c.Unsent) > MaxShortfall*float64(n+c.Unsent):
		f.Code = string(fault.GEN001)
		f.Reason = fmt.Sprintf("%d of %d new connections were not opened, because max_connections or the target's max_rate held them back", c.Unsent, n+c.Unsent)
	default:
		f.Verdict = Pass
	}
	return []Finding{f}
}

// worstNamed is how many routes the reason of an error rate names.
const worstNamed = 3

// worstRoutes names the routes with most errors.
func worstRoutes(c Case) string {
	type bad struct {
		name    string
		errs, n uint64
	}
	var all []bad
	for _, r := range c.Routes {
		b := bad{r.Name, r.Errors, r.Responses}
		if c.ClientErrorsCount {
			b.errs += r.ClientErrors
		}
		if b.errs > 0 {
			all = append(all, b)
		}
	}
	slices.SortStableFunc(all, func(a, b bad) int { return cmp.Compare(b.errs, a.errs) })
	var out strings.Builder
	for i, b := range all {
		if i == worstNamed {
			fmt.Fprintf(&out, ", and %d more routes", len(all)-i)
			break
		}
		sep := ", "
		if i == 0 {
			sep = ": "
		}
		fmt.Fprintf(&out, "%s%s %d of %d", sep, b.name, b.errs, b.n)
	}
	return out.String()
}

// maxUnasked is the share of answers beside which unasked bytes may come.
const maxUnasked = 0.01

// judgeUnasked takes a pass away from a run in which answers cannot be told from bytes that nobody asked
// for.
func judgeUnasked(c Case) []Finding {
	n := answered(c)
	if float64(c.Unasked) <= maxUnasked*float64(n) {
		return nil
	}
	return []Finding{{Check: Answers, Unit: "share", Measured: float64(c.Unasked) / float64(max(n, 1)), Limit: maxUnasked, Samples: n,
		Code: string(fault.GEN007), Reason: fmt.Sprintf("bytes that belong to no request came on %d connections, beside %d answers", c.Unasked, n)}}
}

// judgeGenerator is LD-11's last sentence.
func judgeGenerator(c Case) Finding {
	g := c.Generator
	f := Finding{Check: GeneratorHealth, Unit: "ms", Limit: millis(float64(MaxSendDelayP99)),
		Measured: millis(float64(g.SendDelayP99)), Samples: g.Sent}
	switch {
	case g.Sent == 0:
		f.Code, f.Reason = string(fault.GEN003), "nothing was sent, so the generator proved nothing"
	case g.SendDelayP99 > MaxSendDelayP99:
		f.Code = string(fault.GEN001)
		f.Reason = fmt.Sprintf("send delay p99 is over %s", MaxSendDelayP99)
	case float64(g.OwnShortfall) > MaxShortfall*float64(g.Due):
		f.Code = string(fault.GEN001)
		f.Reason = fmt.Sprintf("%d of %d due requests were not brought out", g.OwnShortfall, g.Due)
	default:
		f.Verdict = Pass
		f.Reason = "the generator kept to the schedule"
	}
	for _, cause := range g.Causes {
		f.Reason += "; " + cause
	}
	return f
}

func millis(ns float64) float64 { return ns / 1e6 }

func percent(share float64) string { return fmt.Sprintf("%.3g%%", 100*share) }
