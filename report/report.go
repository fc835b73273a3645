// Package report turns a run's evidence into files and pages. It judges nothing and measures
// nothing: what a page says stands in evidence.Run. The same run gives the same bytes.
package report

import (
	"io"

	"seatrial/evidence"
	"seatrial/judge"
	"seatrial/report/figure"
)

// Renderer writes one view of a run.
type Renderer func(io.Writer, *evidence.Run) error

// Files are the rendered files of a run's folder (RE-1), for evidence.Store.Finish. run.json, the
// journal and stdout.log are the store's own.
func Files() []evidence.File {
	return []evidence.File{
		{Name: "summary.csv", Render: Summary},
		{Name: "series.csv", Render: Series},
		{Name: "histograms.hlog", Render: Histograms},
		{Name: "report.html", Render: HTML},
		{Name: "report.md", Render: Markdown},
		{Name: "junit.xml", Render: JUnit},
	}
}

// JSON writes what run.json holds.
func JSON(w io.Writer, run *evidence.Run) error { return evidence.Write(w, run) }

// sentence is the verdict in one sentence; a run that was read back may lack one.
func sentence(run *evidence.Run) string {
	if run.Sentence != "" {
		return run.Sentence
	}
	return run.Verdict.String() + ": the evidence says no more"
}

// inUnit writes a finding's figure in the finding's unit.
func inUnit(f judge.Finding) func(float64) string {
	switch f.Unit {
	case "ms":
		return figure.Millis
	case "share":
		return figure.Share
	case "ratio":
		return figure.Change
	}
	return figure.Number
}

// measured is what was measured, with its sample count.
func measured(f judge.Finding) string {
	if f.Samples == 0 {
		return figure.Unmeasured
	}
	return inUnit(f)(f.Measured)
}

// interval says between which values the measured one lies; "" when the finding has none. A share of
// this run's own requests is a count, and has no uncertainty about this run.
func interval(f judge.Finding) string {
	if f.Samples == 0 {
		return ""
	}
	if f.Lo == 0 && f.Hi == 0 && !f.Unbounded {
		if f.Unit == "share" {
			return "exact count"
		}
		return ""
	}
	return figure.Interval(f.Lo, f.Hi, f.Unbounded || f.Hi == 0, inUnit(f))
}

// limit is what was declared.
func limit(f judge.Finding) string {
	if f.Limit == 0 && f.Unit == "ms" {
		return "none"
	}
	return "at most " + inUnit(f)(f.Limit)
}

// subject is the route of a finding, or that it concerns the whole run.
func subject(f judge.Finding) string {
	if f.Route == "" {
		return "whole run"
	}
	return f.Route
}

// byUrgency gives the findings in the order in which a reader needs them: failed, unverified,
// blocked, passed.
func byUrgency(findings []judge.Finding) []judge.Finding {
	out := make([]judge.Finding, 0, len(findings))
	for _, v := range []judge.Verdict{judge.Fail, judge.Unverified, judge.Blocked, judge.Pass} {
		for _, f := range findings {
			if f.Verdict == v || (v == judge.Unverified && f.Verdict > judge.Blocked) {
				out = append(out, f)
			}
		}
	}
	return out
}
