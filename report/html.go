package report

import (
	"cmp"
	"crypto/sha256"
	_ "embed" // the page and its style sheet
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"seatrial/evidence"
	"seatrial/judge"
	"seatrial/report/figure"
)

//go:embed page.html
var pageText string

//go:embed style.css
var styleText string

//go:embed table.js
var scriptText string

// maxRows bounds the tables of routes; summary.csv has them all.
const maxRows = 1000

// HTML writes report.html (RE-2): one file that opens offline. Its policy forbids every request, and
// admits only its own style sheet and its own script for sorting and filtering, by their digests.
func HTML(w io.Writer, run *evidence.Run) error {
	t, err := template.New("report").Parse(pageText)
	if err != nil {
		return err
	}
	return t.Execute(w, view(run))
}

// Policy is the Content-Security-Policy of report.html.
func Policy() string {
	return fmt.Sprintf("default-src 'none'; style-src '%s'; script-src '%s'; base-uri 'none'; form-action 'none'", digest(styleText), digest(scriptText))
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// page's data, all of it text that the template escapes, or drawings made of escaped text.
type pageView struct {
	Policy          string
	Style           template.CSS
	Script          template.JS
	Run             *evidence.Run
	Verdict, Mark   string
	Sentence        string
	When            string
	Key             []pair
	Judged          []judgedRow
	Held, Checks    string
	Moves           []moveRow
	MovesCut        string
	NoBaseline      string
	Parts           []partRow
	PartsCut        string
	Panels          []panel
	Routes          []routeRow
	RoutesCut       string
	Account, Warmup [][]string
	Errors          [][]string
	Causes          []evidence.Cause
	Unmeasured      []string
	Environment     []pair
	Incomplete      bool
	Classes         []string // of the lines of a chart
}

// Share is figure.Share, for the template.
func (pageView) Share(v float64) string { return figure.Share(v) }

type pair struct{ Name, Value string }

type judgedRow struct {
	Verdict, Mark, Check, Route, Measured, Interval, Limit, Baseline, Samples, Code, Reason, Generator string
	Strip                                                                                              template.HTML
}

type moveRow struct {
	Route, Baseline, Now, Change, Interval, Direction, From string
	Strip                                                   template.HTML
}

type partRow struct {
	Route, Wait, FirstByte, Transfer, Other, Mean, Response, Service, ResponseN, ServiceN string
	Stack                                                                                 template.HTML
}

type routeRow struct {
	Name   string
	Errors string
	Cells  []cellView
}

// cellView is a cell of a table that sorts by Sort.
type cellView struct {
	Text string
	Sort float64
}

func view(run *evidence.Run) pageView {
	v := pageView{Policy: Policy(), Style: template.CSS(styleText), Script: template.JS(scriptText), Run: run,
		Verdict: run.Verdict.String(), Mark: glyph(run.Verdict), Sentence: sentence(run), When: when(run), Key: keyFigures(run),
		Panels: panels(run), Account: accountRows(run.Account), Warmup: accountRows(run.Warmup), Causes: run.Causes,
		Environment: environment(run), Incomplete: !run.Complete}
	v.judged(run)
	v.moved(run)
	v.parts(run)
	v.routes(run)
	for _, c := range sortedCounts(run.Errors) {
		v.Errors = append(v.Errors, []string{className(c.name), figure.Count(c.n)})
	}
	if run.Generator != nil {
		v.Unmeasured = run.Generator.Unmeasured
	}
	return v
}

func glyph(v judge.Verdict) string {
	switch v {
	case judge.Pass:
		return "✓"
	case judge.Fail:
		return "✕"
	case judge.Blocked:
		return "⊘"
	}
	return "?"
}

func when(run *evidence.Run) string {
	s := run.Started.UTC().Format("2 January 2006, 15:04:05 UTC")
	if d := length(run); d > 0 {
		s += ", " + figure.Duration(d.Round(time.Second))
	}
	return s
}

func keyFigures(run *evidence.Run) []pair {
	out := []pair{{"offered", figure.Rate(run.Rates.Offered)}, {"achieved", figure.Rate(run.Rates.Achieved)},
		{"valid", figure.Rate(run.Rates.Valid)}, {"errors", figure.Share(run.Rates.ErrorShare)}}
	if run.Total == nil {
		return append(out, pair{"response time", figure.Unmeasured})
	}
	t := run.Total
	return append(out, pair{"p50", figure.Millis(t.P50)}, pair{"p95", figure.Millis(t.P95)}, pair{"p99", figure.Millis(t.P99)},
		pair{"send delay p99", figure.Millis(run.SendDelayP99)}, pair{"samples", figure.Count(t.Samples)})
}

func (v *pageView) judged(run *evidence.Run) {
	held := 0
	for _, f := range byUrgency(run.Findings) {
		if f.Verdict == judge.Pass {
			held++
		}
		r := judgedRow{Verdict: f.Verdict.String(), Mark: glyph(f.Verdict), Check: f.Check, Route: subject(f), Measured: measured(f),
			Interval: interval(f), Limit: limit(f), Samples: figure.Count(f.Samples), Code: f.Code, Reason: f.Reason}
		if f.Baseline > 0 {
			r.Baseline = inUnit(f)(f.Baseline) + " (n=" + figure.Count(f.BaselineSamples) + ")"
		}
		if f.Generator > 0 {
			r.Generator = figure.Share(f.Generator) + " of it is the generator's"
		}
		if f.Samples > 0 {
			r.Strip = strip(f.Measured, f.Lo, f.Hi, f.Unbounded, f.Limit, f.Baseline)
		}
		v.Judged = append(v.Judged, r)
	}
	v.Held, v.Checks = figure.Count(uint64(held)), figure.Counted(uint64(len(run.Findings)), "check")
}

func (v *pageView) moved(run *evidence.Run) {
	moves := run.Moves()
	for _, m := range moves[:min(len(moves), maxRows)] {
		v.Moves = append(v.Moves, moveRow{Route: m.Route, Baseline: figure.Percentile(m.Baseline, m.BaselineSamples), From: m.BaselineFrom,
			Now: figure.Percentile(m.P95, m.Samples), Change: figure.Change(m.Change), Direction: m.Direction,
			Interval: figure.Interval(m.Lo, m.Hi, !m.Bounded, figure.Change),
			Strip:    strip(m.P95, m.Baseline*(1+m.Lo), m.Baseline*(1+m.Hi), !m.Bounded, 0, m.Baseline)})
	}
	v.MovesCut = cut(len(moves))
	if n := len(run.Routes) - len(moves); n > 0 {
		v.NoBaseline = figure.Counted(uint64(n), "route") + " of this run had no baseline or no measurement, and could not move."
	}
}

func (v *pageView) parts(run *evidence.Run) {
	top := 0.0
	for i := range run.Routes {
		top = max(top, run.Routes[i].Parts().Total)
	}
	order := run.Slowest()
	for _, i := range order[:min(len(order), maxRows)] {
		r := &run.Routes[i]
		p := r.Parts()
		if r.Response.Samples == 0 {
			continue
		}
		v.Parts = append(v.Parts, partRow{Route: r.Name, Wait: figure.Millis(p.Wait), FirstByte: figure.Millis(p.FirstByte),
			Transfer: figure.Millis(p.Transfer), Other: figure.Millis(p.Other), Mean: figure.Millis(p.Total),
			Response: figure.Millis(r.Response.P95), ResponseN: figure.Count(r.Response.Samples),
			Service: serviceP95(r.Service), ServiceN: figure.Count(r.Service.Samples),
			Stack: stack([]float64{p.Wait, p.FirstByte, p.Transfer, p.Other}, top)})
	}
	v.PartsCut = cut(len(order))
}

func serviceP95(l evidence.Latency) string {
	if l.Samples == 0 {
		return figure.Unmeasured
	}
	return figure.Millis(l.P95)
}

func (v *pageView) routes(run *evidence.Run) {
	for i := range run.Routes[:min(len(run.Routes), maxRows)] {
		r := &run.Routes[i]
		row := routeRow{Name: r.Name, Cells: []cellView{{figure.Count(r.Account.Due), float64(r.Account.Due)}, {figure.Share(r.ErrorShare), r.ErrorShare}}}
		var classes []string
		for _, c := range sortedCounts(r.Errors) {
			classes = append(classes, figure.Count(c.n)+" "+className(c.name))
		}
		row.Errors = strings.Join(classes, ", ")
		row.Cells = append(row.Cells, latencyColumns(r.Response)...)
		row.Cells = append(row.Cells, latencyColumns(r.Service)...)
		row.Cells = append(row.Cells, cellView{figure.Millis(r.SendDelayP99), r.SendDelayP99},
			cellView{figure.Bytes(r.BytesIn), float64(r.BytesIn)}, cellView{figure.Bytes(r.BytesOut), float64(r.BytesOut)})
		v.Routes = append(v.Routes, row)
	}
	v.RoutesCut = cut(len(run.Routes))
}

func latencyColumns(l evidence.Latency) []cellView {
	out := []cellView{{figure.Count(l.Samples), float64(l.Samples)}}
	for _, ms := range []float64{l.P50, l.P95, l.P99, l.P999, l.Max} {
		if l.Samples == 0 {
			out = append(out, cellView{"–", -1})
		} else {
			out = append(out, cellView{figure.Millis(ms), ms})
		}
	}
	return out
}

func cut(n int) string {
	if n <= maxRows {
		return ""
	}
	return figure.Counted(uint64(n-maxRows), "more route") + " in summary.csv"
}

// environment is everything about where and how the run was made.
func environment(run *evidence.Run) []pair {
	var out []pair
	add := func(name, value string) {
		if value != "" {
			out = append(out, pair{name, value})
		}
	}
	add("run", run.ID)
	add("tool", run.Tool)
	add("plan", run.Plan.Digest)
	add("schedule", run.Plan.ScheduleDigest)
	add("seed", fmt.Sprint(run.Plan.Seed))
	if run.Plan.Process != "" {
		add("arrivals", fmt.Sprintf("%s, %s, %s, warm-up %s, judged %s", figure.Counted(run.Plan.Arrivals, "request"), run.Plan.Process,
			figure.Rate(run.Plan.Rate), figure.Duration(run.Plan.Warmup), figure.Duration(run.Plan.Duration)))
		add("limits", fmt.Sprintf("time-out %s, %s", figure.Duration(run.Plan.Timeout), figure.Counted(uint64(max(0, run.Plan.MaxConnections)), "connection")))
	}
	add("engine", run.Plan.Engine)
	out = append(out, connections(run)...)
	add("target", run.Target.URL)
	add("addresses", strings.Join(run.Target.Addrs, ", "))
	add("admitted because", run.Target.Proof)
	if run.Target.MaxRate > 0 {
		add("admitted rate", "at most "+figure.Rate(run.Target.MaxRate))
	}
	if e := run.Environment; e != nil {
		add("environment", strings.TrimSpace(e.Name+" "+e.Driver))
		add("revision", e.Revision)
		add("uncommitted changes", e.Dirty)
		for _, name := range sortedKeys(e.Services) {
			s := e.Services[name]
			if ms, ok := e.StartupMS[name]; ok {
				s += ", ready after " + figure.Millis(ms)
			}
			add("service "+name, s)
		}
	}
	return append(out, machine(run)...)
}

// connections is what became of connections.
func connections(run *evidence.Run) []pair {
	k := run.Connections
	if k == nil {
		return nil
	}
	var out []pair
	out = append(out, pair{"HTTP", versions(k)})
	if n := k.FullHandshakes + k.ResumedHandshakes; n > 0 {
		out = append(out, pair{"TLS handshakes", fmt.Sprintf("%s full, %s resumed, warm-up included", figure.Count(k.FullHandshakes), figure.Count(k.ResumedHandshakes))})
	}
	if k.Connect != nil {
		took := fmt.Sprintf("connect p50 %s, p99 %s", figure.Millis(k.Connect.P50), figure.Millis(k.Connect.P99))
		if k.TLS != nil {
			took += fmt.Sprintf("; TLS p50 %s, p99 %s", figure.Millis(k.TLS.P50), figure.Millis(k.TLS.P99))
		}
		out = append(out, pair{"opening took", took})
	}
	if k.Insecure {
		out = append(out, pair{"certificates", "any was accepted: nothing proves that it was the target that answered"})
	}
	if k.Resent > 0 {
		out = append(out, pair{"sent again", figure.Counted(k.Resent, "request") + " that the target had not looked at"})
	}
	if k.Failed > 0 {
		out = append(out, pair{"did not come about", figure.Counted(k.Failed, "connection")})
	}
	for _, why := range whyFailed(k) {
		out = append(out, pair{"failed", why})
	}
	if k.Arrivals != nil {
		out = append(out, pair{"new connections", NewConnections(k.Arrivals)})
	}
	return out
}

// whyFailed says why connections and answers failed, the most frequent reason first.
func whyFailed(k *evidence.Connections) []string {
	reasons := slices.SortedFunc(maps.Keys(k.Why), func(a, b string) int {
		return cmp.Or(cmp.Compare(k.Why[b], k.Why[a]), cmp.Compare(a, b))
	})
	for i, r := range reasons {
		reasons[i] = fmt.Sprintf("%s (%s)", r, times(k.Why[r]))
	}
	return reasons
}

func versions(k *evidence.Connections) string {
	var spoken []string
	for _, v := range []struct {
		n    uint64
		name string
	}{{k.HTTP1, "HTTP/1.1"}, {k.HTTP2, "HTTP/2"}, {k.HTTP3, "HTTP/3"}} {
		if v.n > 0 {
			spoken = append(spoken, fmt.Sprintf("%s on %s", v.name, figure.Counted(v.n, "connection")))
		}
	}
	if len(spoken) == 0 {
		return k.HTTP + ", on no connection"
	}
	return strings.Join(spoken, ", ") + ", warm-up included"
}

// NewConnections tells in a sentence what became of the connections that came by their own schedule.
func NewConnections(a *evidence.ConnArrivals) string {
	n := a.Account
	s := fmt.Sprintf("%s due at %s (%s): %s opened", figure.Count(n.Due), figure.Rate(a.Rate), a.Process, figure.Count(n.Opened))
	for _, p := range []struct {
		n    uint64
		what string
	}{{n.Failed, "failed"}, {n.TimedOut, "timed out"}, {n.Abandoned, "given up at the stop"}, {n.Unsent, "held back on this side (max_connections, max_rate, or late)"}} {
		if p.n > 0 {
			s += fmt.Sprintf(", %s %s", figure.Count(p.n), p.what)
		}
	}
	return s
}

// machine is the generator's host and what it observed of itself.
func machine(run *evidence.Run) []pair {
	h := run.Host
	out := []pair{{"generator", strings.Join(strings.Fields(fmt.Sprintf("%s %s %s %s", h.OS, h.Arch, h.Kernel, h.Go)), " ")},
		{"cores", fmt.Sprintf("%d %s", h.Cores, h.CPU)}, {"load before", figure.Number(h.Load1)}, {"CPU steal", figure.Share(h.Steal)}}
	g := run.Generator
	if g == nil {
		return append(out, pair{"generator health", figure.Unmeasured})
	}
	return append(out, pair{"generator CPU", figure.Share(g.CPU) + " mean, " + figure.Share(g.CPUPeak) + " peak"},
		pair{"timer lag", measuredDuration(g.LoopLagP99) + " p99, " + measuredDuration(g.LoopLagMax) + " longest"},
		pair{"connections", fmt.Sprintf("%d at most of %d, %s opened, limit met %s", g.ConnPeak, g.ConnLimit, figure.Count(g.ConnOpened), times(g.ConnLimitHit))},
		pair{"retransmits", signed(g.Retransmits)}, pair{"interface drops", signed(g.IfaceDrops)},
		pair{"data", figure.Bytes(g.BytesIn) + " in, " + figure.Bytes(g.BytesOut) + " out"})
}

func times(n uint64) string { return figure.Counted(n, "time") }

func measuredDuration(d time.Duration) string {
	if d < 0 {
		return figure.Unmeasured
	}
	return figure.Duration(d)
}

func signed(n int64) string {
	if n < 0 {
		return figure.Unmeasured
	}
	return figure.Count(uint64(n))
}
