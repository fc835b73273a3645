package report

import (
	"io"
	"strings"

	"seatrial/evidence"
	"seatrial/record"
)

// Histograms writes histograms.hlog: the judged arrivals' full histograms, per route, as an
// HdrHistogram log. Tags are "response:GET /a", "service:..." and "send_delay:...". A run that was
// read back from run.json has no histograms; its log is empty.
func Histograms(w io.Writer, run *evidence.Run) error {
	var entries []record.LogEntry
	add := func(what, name string, h *record.Histogram) {
		if h == nil || h.Count() == 0 {
			return
		}
		entries = append(entries, record.LogEntry{Tag: tag(what + ":" + name), StartSeconds: run.Plan.Warmup.Seconds(),
			IntervalSeconds: run.Plan.Duration.Seconds(), Histogram: h})
	}
	if t := run.Tally; t != nil {
		total := record.NewHistogram()
		for i := range t.Routes {
			total.Merge(t.Routes[i].Response)
		}
		add("response", AllRoutes, total)
		for i := range min(len(t.Routes), len(run.Routes)) {
			r, name := &t.Routes[i], run.Routes[i].Name
			add("response", name, r.Response)
			add("service", name, r.Service)
			add("send_delay", name, r.SendDelay)
		}
	}
	return record.WriteLog(w, run.Started, entries)
}

// tag bounds the length of a line.
func tag(s string) string { return clip(s, 200) }

// clip shortens s to n characters, the last of them an ellipsis.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	runes := []rune(strings.ToValidUTF8(s, "\uFFFD"))
	if len(runes) <= n {
		return string(runes)
	}
	return string(runes[:n-1]) + "…"
}
