package evidence_test

import (
	"math"
	"testing"
	"time"

	"seatrial/evidence"
	"seatrial/judge"
	"seatrial/plan"
	"seatrial/record"
)

func testPlan() *plan.Plan {
	return &plan.Plan{Warmup: time.Second, Duration: 4 * time.Second,
		Routes: []plan.Route{{Name: "GET /a", Share: 0.75}, {Name: "GET /b", Share: 0.25}},
		Checks: []judge.Check{{Name: judge.P95Increase, Route: 1, Baseline: 40e6, BaselineSamples: 300, BaselineFrom: "source"},
			{Name: judge.P95Increase, Route: -1}}}
}

// filled is a run of 100 requests of 1..100 ms on GET /a after 5 of warm-up, and on GET /b one answer
// of 503, one of 404, one reset and one refused connection.
func filled(t *testing.T) *evidence.Run {
	t.Helper()
	run := &evidence.Run{Schema: evidence.SchemaVersion}
	run.Fill(testPlan(), tallyOf(t, testPlan()), []float64{0.5, -1, 0.25})
	return run
}

func tallyOf(t *testing.T, p *plan.Plan) *record.Tally {
	t.Helper()
	shard := record.NewShard(record.Config{Routes: 2, Warmup: p.Warmup, End: 6 * time.Second})
	add := func(route uint32, due, took time.Duration, o record.Outcome, status uint16) {
		shard.Add(&record.Sample{Route: route, Outcome: o, Status: status, Due: due, Sent: due + 100*time.Microsecond,
			FirstByte: due + took/2, Done: due + took, BytesIn: 10, BytesOut: 5})
	}
	for i := range 5 {
		add(0, time.Duration(i)*time.Millisecond, time.Second, record.Answered, 200)
	}
	for i := range 100 {
		add(0, time.Second+time.Duration(i)*20*time.Millisecond, time.Duration(i+1)*time.Millisecond, record.Answered, 200)
	}
	add(1, 3*time.Second, 10*time.Millisecond, record.Answered, 503)
	add(1, 3*time.Second, 10*time.Millisecond, record.Answered, 404)
	add(1, 3*time.Second, 10*time.Millisecond, record.Reset, 0)
	shard.Add(&record.Sample{Route: 1, Outcome: record.ConnectRefused, Due: 3 * time.Second, Done: 3*time.Second + time.Millisecond})
	return shard.Tally()
}

func TestFill(t *testing.T) {
	run := filled(t)
	if run.Account.Due != 104 || run.Warmup.Due != 5 {
		t.Errorf("accounts %+v, %+v", run.Account, run.Warmup)
	}
	if run.Rates.Offered != 26 || run.Rates.Achieved != 25.5 || run.Rates.Valid != 25.25 {
		t.Errorf("rates %+v", run.Rates)
	}
	if want := 3.0 / 104; run.Rates.ErrorShare != want {
		t.Errorf("error share %v, want %v", run.Rates.ErrorShare, want)
	}
	if run.Errors[evidence.Class5xx] != 1 || run.Errors[record.Reset.String()] != 1 || run.Errors[record.ConnectRefused.String()] != 1 || len(run.Errors) != 3 {
		t.Errorf("errors %v", run.Errors)
	}
	a, b := run.Routes[0], run.Routes[1]
	if a.Response.Samples != 100 || math.Abs(a.Response.P95-95) > 0.1 || math.Abs(a.Response.P50-50) > 0.05 || a.Response.Max != 100 {
		t.Errorf("latency of /a %+v", a.Response)
	}
	if b.Response.Samples != 3 || b.Baseline != 40 || b.BaselineSamples != 300 || b.Share != 0.25 || b.Status["5xx"] != 1 {
		t.Errorf("route /b %+v", b)
	}
	if a.Baseline != 0 {
		t.Error("a route without a baseline has one")
	}
	if run.Total.Samples != 103 || run.TotalService.Samples != 103 || math.Abs(run.SendDelayP99-0.1) > 0.001 {
		t.Errorf("total %+v, %+v, send delay %v", run.Total, run.TotalService, run.SendDelayP99)
	}
	parts := a.Parts()
	if sum := parts.Wait + parts.FirstByte + parts.Transfer + parts.Other; math.Abs(sum-parts.Total) > 1e-9 || parts.Transfer <= 0 {
		t.Errorf("parts %+v", parts)
	}
}

func TestFillSeries(t *testing.T) {
	run := filled(t)
	if len(run.Series) != 4 {
		t.Fatalf("%d seconds", len(run.Series))
	}
	want := []struct {
		phase   string
		offered uint64
		cpu     float64
	}{{"warmup", 5, 0.5}, {"judged", 50, -1}, {"judged", 50, 0.25}, {"judged", 4, -1}}
	for i, w := range want {
		s := run.Series[i]
		if s.T != i || s.Phase != w.phase || s.Offered != w.offered || s.CPU != w.cpu {
			t.Errorf("second %d: %+v", i, s)
		}
	}
	if s := run.Series[3]; s.Errors != 3 || s.Valid != 1 || s.Achieved != 2 || s.Samples != 3 {
		t.Errorf("the last second: %+v", s)
	}
}

func TestAnAssumedSmokeCountsClientErrors(t *testing.T) {
	p := testPlan()
	p.Mix.Assumed = true
	run := &evidence.Run{}
	run.Fill(p, tallyOf(t, p), nil)
	if run.Errors[evidence.Class4xx] != 1 || run.Rates.Valid != 25 || run.Series[3].Errors != 4 || run.Series[3].Valid != 0 {
		t.Errorf("errors %v, rates %+v, second %+v", run.Errors, run.Rates, run.Series[3])
	}
}

// TestFillOfARunThatWasCutShort: rates and the series reach until the stop, the account to the end.
func TestFillOfARunThatWasCutShort(t *testing.T) {
	p := testPlan()
	run := &evidence.Run{StoppedAfter: p.Warmup.Seconds() + 1}
	run.Fill(p, tallyOf(t, p), nil)
	if run.Rates.Offered != float64(run.Account.Due) || len(run.Series) != int(run.StoppedAfter)+1 {
		t.Errorf("offered %v of %d in one second, %d rows", run.Rates.Offered, run.Account.Due, len(run.Series))
	}
}

func TestFillOfNothing(t *testing.T) {
	run := &evidence.Run{}
	run.Fill(testPlan(), record.NewTally(record.Config{Routes: 2, End: time.Second}), nil)
	if run.Total != nil || run.Curve != nil || len(run.Series) != 0 || run.Rates.ErrorShare != 0 {
		t.Errorf("an empty run has figures: %+v", run)
	}
	if (&evidence.RouteResult{}).Parts() != (evidence.Parts{}) {
		t.Error("parts of nothing")
	}
}

func TestCurveRisesToTheMaximum(t *testing.T) {
	c := filled(t).Curve
	if len(c) < 10 || c[0].Percentile != 0 || c[len(c)-1].Percentile != 100 || c[len(c)-1].Response != 100 {
		t.Fatalf("curve %v", c)
	}
	for i := 1; i < len(c); i++ {
		if c[i].Percentile <= c[i-1].Percentile || c[i].Response < c[i-1].Response {
			t.Errorf("point %d falls: %v, %v", i, c[i-1], c[i])
		}
	}
}
