package report_test

import (
	"fmt"
	"math"
	"time"

	"seatrial/engine"
	"seatrial/engine/httpload"
	"seatrial/evidence"
	"seatrial/judge"
	"seatrial/plan"
	"seatrial/record"
)

// sample is a fixed run of 60 s at about 40/s with a breach, a route too rare to judge, errors of
// three classes and a stall in the middle. Every figure of it follows from formulas, so that it is
// the same wherever the test runs.
func sample() *evidence.Run {
	p := samplePlan()
	t := sampleTally(p)
	cpu := make([]float64, 65)
	for i := range cpu {
		cpu[i] = 0.22 + 0.06*math.Sin(float64(i)/5)
	}
	cpu[30] = -1
	started := time.Date(2026, 3, 4, 11, 0, 0, 0, time.UTC)
	ended := started.Add(67 * time.Second)
	run := &evidence.Run{Schema: 1, ID: "20260304T110000Z-run-4f9a1c", Command: "run", Tool: "seatrial 1.0.0", Complete: true,
		Started: started, Ended: &ended, Verdict: judge.Fail,
		Sentence:  "fail: p95 of GET /orders/{id} is over its limit; 1 of 5 checks did not hold and 1 cannot tell",
		Reproduce: "seatrial run --seed 7 -C shop",
		Warnings:  []string{"6 s of the source hold no request; the rate is a mean over the rest"},
		Causes:    []evidence.Cause{{Code: "LOD-011", Message: "1 threshold of the manifest was exceeded.", Next: "Open the report; it lists each breach with its interval."}},
		Target:    evidence.TargetInfo{URL: "http://127.0.0.1:41873", Addrs: []string{"127.0.0.1:41873"}, Proof: "environment shop-4f9a owns this port", Kind: "environment"},
		Plan: evidence.PlanInfo{Digest: "9b1c3f6e2a7d4c5b8e9f0a1b2c3d4e5f60718293a4b5c6d7e8f9010203040506", ScheduleDigest: "1f2e3d4c5b6a79880716253443526170", Seed: 7, Arrivals: t.Judged.Due + t.Warmup.Due,
			Process: "poisson", Rate: 40, Warmup: p.Warmup, Duration: p.Duration, Timeout: 10 * time.Second, MaxConnections: 1000, Engine: "portable", Checks: p.Checks},
		Environment: &evidence.Environment{Name: "shop-4f9a", Driver: "process", Revision: "c0ffee1", Services: map[string]string{"shop": "http://127.0.0.1:41873"}, StartupMS: map[string]float64{"shop": 412}},
		Host:        evidence.Host{OS: "linux", Arch: "amd64", Kernel: "6.1.0", CPU: "Example CPU", Cores: 2, Load1: 0.31, Steal: -1, Go: "go1.26"},
		Connections: &evidence.Connections{HTTP: "auto", Opened: 412, Failed: 3, HTTP1: 12, HTTP2: 400,
			Why: map[string]uint64{"connecting: connection refused": 3, "answer: | `code` <b>*": 2}, FullHandshakes: 80, ResumedHandshakes: 332, Resent: 2,
			Connect: &evidence.Latency{Samples: 412, P50: 0.11, P99: 0.9}, TLS: &evidence.Latency{Samples: 412, P50: 1.2, P99: 4.5},
			Arrivals: &evidence.ConnArrivals{Process: "poisson", Rate: 20, Account: httpload.ConnAccount{Due: 400, Opened: 396, Failed: 1, TimedOut: 2, Unsent: 1}}},
		Generator: &engine.Health{CPU: 0.22, CPUPeak: 0.28, Cores: 2, LoopLagMax: 3 * time.Millisecond, LoopLagP99: 400 * time.Microsecond, ConnPeak: 31, ConnLimit: 1000,
			ConnOpened: 40, BytesIn: 12_000_000, BytesOut: 400_000, Retransmits: -1, Unmeasured: []string{"TCP retransmits"}},
		Traffic: &plan.Mix{Source: "otel", Rate: 40, Reached: 0.91, NotSent: []plan.Omission{{Route: "POST /orders", Share: 0.09, Reason: "not named in safe_routes"}}},
		Fidelity: []evidence.Dimension{{Name: "services", State: "reproduced", Text: "1 of 1 service runs the code of this revision"},
			{Name: "database", State: "unmeasured", Text: "the manifest declares no database"},
			{Name: "traffic", State: "substituted", Text: "91% of production's requests are sent; POST /orders (9%) is not"}},
		Limits: []string{"The generator and the service share one machine.", "Cache state before the run is not controlled."},
	}
	run.Fill(p, t, cpu)
	for i := range run.Routes {
		r := &run.Routes[i]
		r.P95Lo, r.P95Hi, r.P95Bounded = r.Response.P95*0.92, r.Response.P95*1.1, r.Response.Samples >= 90
		if !r.P95Bounded {
			r.P95Hi = 0
		}
	}
	run.Findings = sampleFindings(run)
	return run
}

func samplePlan() *plan.Plan {
	return &plan.Plan{Warmup: 5 * time.Second, Duration: 60 * time.Second,
		Routes: []plan.Route{{Name: "GET /", Share: 0.4}, {Name: "GET /orders/{id}", Share: 0.3}, {Name: "GET /products/{slug}/reviews", Share: 0.2}, {Name: "HEAD /health", Share: 0.01}},
		Checks: []judge.Check{{Name: judge.P95Increase, Route: 0, RouteName: "GET /", Limit: 0.25, Baseline: 14e6, BaselineSamples: 5210, BaselineFrom: "source", LimitNanos: 17_500_000},
			{Name: judge.P95Increase, Route: 1, RouteName: "GET /orders/{id}", Limit: 0.25, Baseline: 41.2e6, BaselineSamples: 3120, BaselineFrom: "source", LimitNanos: 51_500_000},
			{Name: judge.P95Increase, Route: 3, RouteName: "HEAD /health", Limit: 0.25, Baseline: 2.1e6, BaselineSamples: 24, BaselineFrom: "profile", LimitNanos: 2_625_000},
			{Name: judge.ErrorRate, Route: -1, Limit: 0.01}}}
}

func sampleTally(p *plan.Plan) *record.Tally {
	shard := record.NewShard(record.Config{Routes: len(p.Routes), Warmup: p.Warmup, End: 75 * time.Second})
	base := []float64{8, 38, 22, 1.6}
	for i := range 2600 {
		route := []uint32{0, 1, 0, 2, 1, 0, 1, 2, 0, 1}[i%10]
		if i%130 == 7 {
			route = 3
		}
		due := time.Duration(i) * 25 * time.Millisecond
		noise := math.Mod(float64(i)*0.6180339887, 1)
		took := base[route] * (0.6 - 0.55*math.Log(1-noise*0.9999))
		if s := due.Seconds(); s > 38 && s < 41 {
			took *= 3
		}
		ms := func(v float64) time.Duration { return time.Duration(v * float64(time.Millisecond)) }
		delay := ms(0.08 + 0.3*noise*noise)
		wait := time.Duration(0)
		if i%60 == 0 {
			wait = ms(1.2)
		}
		s := record.Sample{Route: route, Outcome: record.Answered, Status: 200, Due: due, Sent: due + delay + wait, Wait: wait,
			FirstByte: due + delay + wait + ms(took*0.8), Done: due + delay + wait + ms(took), BytesIn: 4096 + uint64(i%700), BytesOut: 160}
		switch {
		case i%400 == 399:
			s.Status = 503
		case i%900 == 450:
			s.Outcome, s.Status = record.TimedOut, 0
			s.Done = due + 10*time.Second
		case i%1300 == 1211:
			s.Outcome, s.Status = record.Reset, 0
		}
		shard.Add(&s)
	}
	return shard.Tally()
}

func sampleFindings(run *evidence.Run) []judge.Finding {
	r := run.Routes
	return []judge.Finding{
		{Check: judge.P95Increase, Route: r[0].Name, Verdict: judge.Pass, Unit: "ms", Measured: r[0].Response.P95, Baseline: 14, Limit: r[0].P95Hi * 1.1, Lo: r[0].P95Lo, Hi: r[0].P95Hi,
			Samples: r[0].Response.Samples, BaselineSamples: 5210, BaselineFrom: "source", Reason: "the whole interval lies at or under the limit"},
		{Check: judge.P95Increase, Route: r[1].Name, Verdict: judge.Fail, Code: "LOD-011", Unit: "ms", Measured: r[1].Response.P95, Baseline: 41.2, Limit: 51.5, Lo: r[1].P95Lo, Hi: r[1].P95Hi,
			Samples: r[1].Response.Samples, BaselineSamples: 3120, BaselineFrom: "source", Generator: 0.004, Reason: "the whole interval lies above the limit"},
		{Check: judge.P95Increase, Route: r[3].Name, Verdict: judge.Unverified, Code: "GEN-005", Unit: "ms", Measured: r[3].Response.P95, Baseline: 2.1, Limit: 2.625, Lo: r[3].P95Lo, Unbounded: true,
			Samples: r[3].Response.Samples, BaselineSamples: 24, BaselineFrom: "profile", Reason: "19 samples cannot bound a p95; it takes at least 90"},
		{Check: judge.ErrorRate, Verdict: judge.Pass, Unit: "share", Measured: run.Rates.ErrorShare, Limit: 0.01, Samples: run.Account.Due, Reason: fmt.Sprintf("%d of %d requests failed in this run", 9, run.Account.Due)},
		{Check: judge.GeneratorHealth, Verdict: judge.Pass, Unit: "ms", Measured: run.SendDelayP99, Limit: 10, Samples: run.Account.Due, Reason: "the generator kept to the schedule"},
	}
}

// nasty are names and texts that try to break out of each format.
func nasty() []string {
	return []string{"GET /a|b`c`\n| x |\r\n# title", "<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`, "]]></testcase>&amp;", "@octocat #12 www.evil.example https://evil.example [x](javascript:alert(1))",
		"\x00\x01\x1b[2J\x7f\u202e\u2066", "=HYPERLINK(\"http://evil\")", "\xff\xfe bad utf8", "</style></table></details><svg onload=alert(1)>", "{{.Run}} ${x} $(x)", "", string(make([]byte, 3000))}
}

// hostile is the sample with a nasty text in every place that text can come from.
func hostile(text string) *evidence.Run {
	run := sample()
	run.ID, run.Command, run.Tool, run.Sentence, run.Reproduce = text, text, text, text, text
	run.Warnings, run.Limits, run.Leftovers = []string{text}, []string{text}, []string{text}
	run.Causes = []evidence.Cause{{Code: text, Message: text, Next: text}}
	run.Fidelity = []evidence.Dimension{{Name: text, State: text, Text: text}}
	run.Plan.Digest, run.Plan.Engine, run.Plan.Process = text, text, text
	run.Target = evidence.TargetInfo{URL: text, Addrs: []string{text}, Proof: text, Kind: text}
	run.Environment = &evidence.Environment{Name: text, Driver: text, Revision: text, Dirty: text, Services: map[string]string{text: text}}
	run.Traffic.NotSent = []plan.Omission{{Route: text, Share: 1, Reason: text}}
	run.Errors = map[string]uint64{text: 3}
	for i := range run.Routes {
		run.Routes[i].Name, run.Routes[i].BaselineFrom, run.Routes[i].Errors = text, text, map[string]uint64{text: 1}
	}
	for i := range run.Findings {
		f := &run.Findings[i]
		f.Check, f.Route, f.Code, f.Reason, f.Unit = text, text, text, text, text
	}
	for i := range run.Series {
		run.Series[i].ByClass, run.Series[i].Phase = map[string]uint64{text: 1}, text
	}
	return run
}
