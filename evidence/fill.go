package evidence

import (
	"time"

	"seatrial/judge"
	"seatrial/plan"
	"seatrial/record"
)

// Fill takes the measured part of run from what was planned and what was recorded: accounts, rates,
// errors, latencies, routes, series and the percentile curve. cpu is the generator's CPU share by
// second from the epoch; a second that it lacks is unmeasured. p and t must have the same routes. When
// run.StoppedAfter is set, what was due later is in the account alone.
func (run *Run) Fill(p *plan.Plan, t *record.Tally, cpu []float64) {
	run.Tally = t
	run.Account, run.Warmup = t.Judged, t.Warmup
	response, service, delay := record.NewHistogram(), record.NewHistogram(), record.NewHistogram()
	var responses, errs, valid uint64
	run.Errors = map[string]uint64{}
	run.Routes = make([]RouteResult, 0, len(t.Routes))
	for i := range t.Routes {
		r := &t.Routes[i]
		response.Merge(r.Response)
		service.Merge(r.Service)
		delay.Merge(r.SendDelay)
		route := routeResult(p, i, r)
		for class, n := range route.Errors {
			run.Errors[class] += n
			errs += n
		}
		responses += r.Responses()
		valid += r.Account.Answered - serverAndClient(p, &r.Status)
		run.Routes = append(run.Routes, route)
	}
	run.Total, run.TotalService = latencyPointer(response), latencyPointer(service)
	run.SendDelayP99 = millis(delay.Quantile(99, 100))
	run.Curve = curve(response, service)
	run.Rates = Rates{ErrorShare: share(errs, responses)}
	if s := run.judgedSeconds(p); s > 0 {
		run.Rates.Offered = float64(run.offered(t)) / s
		run.Rates.Achieved = float64(t.Judged.Answered) / s
		run.Rates.Valid = float64(valid) / s
	}
	run.fillSeries(p, t, cpu)
	run.fillBaselines(p)
}

// judgedSeconds is how long judged requests were sent.
func (run *Run) judgedSeconds(p *plan.Plan) float64 {
	if run.StoppedAfter > 0 {
		return min(p.Duration.Seconds(), run.StoppedAfter-p.Warmup.Seconds())
	}
	return p.Duration.Seconds()
}

// offered counts what was due while it was sent.
func (run *Run) offered(t *record.Tally) uint64 {
	n := t.Judged.Due
	if run.StoppedAfter > 0 {
		for i := range t.Routes {
			n -= min(n, t.Routes[i].Outcomes[record.UnsentStop])
		}
	}
	return n
}

// serverAndClient counts the answers that are errors of this run: 5xx, and 4xx where the plan counts them (LD-5).
func serverAndClient(p *plan.Plan, status *[record.StatusClasses]uint64) uint64 {
	if p.CountsClientErrors() {
		return status[4] + status[5]
	}
	return status[5]
}

func routeResult(p *plan.Plan, i int, r *record.RouteTally) RouteResult {
	out := RouteResult{
		Name: p.Routes[i].Name, Account: r.Account, Share: p.Routes[i].Share,
		Errors: errorsByClass(p, &r.Outcomes, &r.Status), Status: byStatus(&r.Status),
		Response: latency(r.Response), Service: latency(r.Service),
		FirstByte: latency(r.FirstByte), Wait: latency(r.Wait),
		SendDelayP99: millis(r.SendDelay.Quantile(99, 100)), BytesIn: r.BytesIn, BytesOut: r.BytesOut,
	}
	var errs uint64
	for _, n := range out.Errors {
		errs += n
	}
	out.ErrorShare = share(errs, r.Responses())
	return out
}

// The classes of answers that are errors.
const (
	Class5xx = "http_5xx"
	Class4xx = "http_4xx" // where the plan counts them
)

func errorsByClass(p *plan.Plan, outcomes *[record.NumOutcomes]uint64, status *[record.StatusClasses]uint64) map[string]uint64 {
	out := map[string]uint64{}
	for o, n := range outcomes {
		if n > 0 && record.Outcome(o).Error() {
			out[record.Outcome(o).String()] = n
		}
	}
	if status[5] > 0 {
		out[Class5xx] = status[5]
	}
	if p.CountsClientErrors() && status[4] > 0 {
		out[Class4xx] = status[4]
	}
	return out
}

func byStatus(status *[record.StatusClasses]uint64) map[string]uint64 {
	names := [record.StatusClasses]string{"other", "1xx", "2xx", "3xx", "4xx", "5xx", "expected 4xx or 5xx"}
	out := map[string]uint64{}
	for i, n := range status {
		if n > 0 {
			out[names[i]] = n
		}
	}
	return out
}

func latency(h *record.Histogram) Latency {
	return Latency{Samples: h.Count(), P50: millis(h.Quantile(1, 2)), P95: millis(h.Quantile(95, 100)),
		P99: millis(h.Quantile(99, 100)), P999: millis(h.Quantile(999, 1000)), Max: millis(h.Max()), Mean: millis(h.Mean())}
}

// latencyPointer is nil when nothing was measured, so that no reader takes 0 ms for an answer.
func latencyPointer(h *record.Histogram) *Latency {
	if h.Count() == 0 {
		return nil
	}
	l := latency(h)
	return &l
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func share(k, n uint64) float64 {
	if n == 0 {
		return 0
	}
	return float64(k) / float64(n)
}

// fillSeries gives one element per step of the tally's series, up to the last in which anything was
// due.
func (run *Run) fillSeries(p *plan.Plan, t *record.Tally, cpu []float64) {
	step := int(t.Config.Step() / time.Second)
	run.SeriesStep = max(1, step)
	last := len(t.Series)
	for last > 0 && t.Series[last-1].Due == 0 {
		last--
	}
	if run.StoppedAfter > 0 {
		last = min(last, int(run.StoppedAfter)/run.SeriesStep+1)
	}
	run.Series = make([]Second, 0, last)
	for i := range last {
		run.Series = append(run.Series, second(p, &t.Series[i], i*run.SeriesStep, run.SeriesStep, cpu))
	}
}

func second(p *plan.Plan, x *record.Second, at, step int, cpu []float64) Second {
	client := serverAndClient(p, &x.Status) - x.Status[5]
	out := Second{T: at, Phase: phase(p, time.Duration(at)*time.Second),
		Offered: x.Due, Achieved: x.Answered, Valid: x.Valid - client, Errors: x.Errors + client,
		ByClass: errorsByClass(p, &x.ByOutcome, &x.Status), SendDelayMax: millis(x.DelayMax), CPU: meanCPU(cpu, at, step)}
	if h := x.Response; h != nil {
		out.Samples = h.Count()
		out.P50, out.P95 = millis(h.Quantile(1, 2)), millis(h.Quantile(95, 100))
		out.P99, out.Max = millis(h.Quantile(99, 100)), millis(h.Max())
	}
	return out
}

func phase(p *plan.Plan, due time.Duration) string {
	switch {
	case due < p.Warmup:
		return "warmup"
	case due < p.Warmup+p.Duration:
		return "judged"
	}
	return "drain"
}

// meanCPU is the mean over the measured seconds of a step; -1 when none was.
func meanCPU(cpu []float64, from, step int) float64 {
	sum, n := 0.0, 0
	for i := from; i < min(from+step, len(cpu)); i++ {
		if cpu[i] >= 0 {
			sum += cpu[i]
			n++
		}
	}
	if n == 0 {
		return -1
	}
	return sum / float64(n)
}

// fillBaselines copies what the declared checks compare a route with.
func (run *Run) fillBaselines(p *plan.Plan) {
	for _, k := range p.Checks {
		if k.Name != judge.P95Increase || k.Route < 0 || k.Route >= len(run.Routes) {
			continue
		}
		r := &run.Routes[k.Route]
		r.Baseline, r.BaselineSamples, r.BaselineFrom = k.Baseline/1e6, k.BaselineSamples, k.BaselineFrom
	}
}

// curveSteps are the points of each decade of the tail, in tenths of the distance to 100%.
var curveSteps = [...]uint64{10, 8, 6, 5, 4, 3, 2}

// curve gives the percentile curve in the manner of HdrHistogram: ever finer towards 100%, and no
// finer than the sample: the last point is the maximum.
func curve(response, service *record.Histogram) []CurvePoint {
	n := response.Count()
	if n == 0 {
		return nil
	}
	const den = 100_000_000
	var out []CurvePoint
	for decade := uint64(den); decade >= 10 && den/decade <= n; decade /= 10 {
		for _, s := range curveSteps {
			num := den - decade/10*s
			out = append(out, CurvePoint{Percentile: float64(num) / den * 100,
				Response: millis(response.Quantile(num, den)), Service: millis(service.Quantile(num, den))})
		}
	}
	return append(out, CurvePoint{Percentile: 100, Response: millis(response.Max()), Service: millis(service.Max())})
}

// Parts is where a route's mean response time went, in milliseconds. The parts sum up to Total.
type Parts struct {
	Wait      float64 // for a connection: pool limit, connect, TLS
	FirstByte float64 // from the first byte written to the first byte of the response
	Transfer  float64 // from there to the end of the response
	Other     float64 // send delay, and what failed requests spent without a first byte
	Total     float64
}

// Parts splits the mean response time. Percentiles of parts do not add up to the percentile of the
// whole, so only means are split.
func (r *RouteResult) Parts() Parts {
	n := float64(r.Response.Samples)
	if n == 0 {
		return Parts{}
	}
	p := Parts{Total: r.Response.Mean, Wait: r.Wait.Mean * float64(r.Wait.Samples) / n,
		FirstByte: r.FirstByte.Mean * float64(r.FirstByte.Samples) / n}
	service := r.Service.Mean * float64(r.Service.Samples) / n
	p.Transfer = max(0, service-p.FirstByte)
	p.Other = max(0, p.Total-p.Wait-p.FirstByte-p.Transfer)
	return p
}
