package cli

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"seatrial/evidence"
	"seatrial/internal/doctor"
	"seatrial/internal/env"
	"seatrial/report/figure"
	"seatrial/traffic"
)

// printer collects the first error of several writes.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

// plain keeps control characters of a hostile log away from the terminal.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' {
			return ' '
		}
		if r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) || r == 0x2028 || r == 0x2029 || (r >= 0x202a && r <= 0x202e) || (r >= 0x2066 && r <= 0x2069) {
			return '?'
		}
		return r
	}, s)
}

// printRecorded tells what traffic record read, refused and wrote.
func printRecorded(w io.Writer, r recordedTraffic) error {
	p := &printer{w: w}
	prof := r.Profile
	p.read(r.Skips, prof.Requests, r.Warning)
	p.window(prof)
	p.line("routes    %d, busiest first:", len(prof.Routes))
	busiest := slices.Clone(prof.Routes)
	slices.SortStableFunc(busiest, func(a, b traffic.Route) int { return int(int64(b.Requests) - int64(a.Requests)) })
	for i, route := range busiest {
		if i == 10 {
			p.line("          and %d more", len(busiest)-10)
			break
		}
		p.line("  %8s  %s%s", figure.Share(route.Weight), plain(route.Name()), baselineNote(&route))
	}
	if r.Path == "" {
		p.line("wrote     nothing: a profile needs a request")
		p.line("Next: record a source that holds requests to the service")
		return p.err
	}
	p.line("wrote     %s", r.Path)
	if r.merged {
		p.line("Next: commit it, and delete the parts and their salt: rare names stand in the parts that the profile leaves out")
		return p.err
	}
	p.line("Next: commit it, then `seatrial traffic show`")
	return p.err
}

// read tells what was read and refused.
func (p *printer) read(skips *traffic.Skips, requests uint64, warning string) {
	p.line("read      %s of format %s: %s", figure.Counted(uint64(skips.Read), "record"), plain(skips.Format), figure.Counted(requests, "request"))
	for _, f := range skips.Recognised {
		p.line("read as   %s: %s (%s)", plain(f.Format), plain(f.Why), figure.Counted(uint64(f.Lines), "line"))
	}
	if skips.Unparsable > 0 {
		p.line("refused   %s that did not parse", figure.Count(uint64(skips.Unparsable)))
		for _, s := range skips.First {
			p.line("          %s:%d %s", plain(s.Input), s.Line, plain(s.Reason))
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(skips.Reasons)) {
		p.line("not sent  %s: %s", figure.Count(uint64(skips.Reasons[reason])), plain(reason))
	}
	for _, note := range slices.Sorted(maps.Keys(skips.Notes)) {
		p.line("noted     %s: %s", figure.Count(uint64(skips.Notes[note])), plain(note))
	}
	if warning != "" {
		p.line("WARNING   %s", plain(warning))
	}
}

// printPartial tells what traffic record --partial read, refused and wrote.
func printPartial(w io.Writer, r recordedPartial) error {
	p := &printer{w: w}
	p.read(r.Skips, r.Requests, r.Warning)
	p.line("wrote     %s, a part and no profile: not for committing", r.Path)
	p.line("Next: `seatrial traffic merge` with all parts")
	return p.err
}

func (p *printer) window(prof *traffic.Profile) {
	if prof.Window == nil {
		p.line("window    no readable time")
	} else {
		p.line("window    %s to %s (%s)", prof.Window.Start.Format(time.RFC3339), prof.Window.End.Format(time.RFC3339),
			figure.Duration(time.Duration(prof.Window.Seconds*float64(time.Second))))
	}
	switch {
	case prof.RateAssumed != "":
		p.line("rate      %s, ASSUMED: %s", figure.Rate(prof.Rate), prof.RateAssumed)
	case prof.Requests == 0:
		p.line("rate      none: no request was counted")
	default:
		p.line("rate      %s, counted", figure.Rate(prof.Rate))
	}
	longest := slices.Clone(prof.Gaps)
	slices.SortStableFunc(longest, func(a, b traffic.Gap) int { return cmp.Compare(b.Seconds, a.Seconds) })
	for i, g := range longest {
		if i == 3 {
			p.line("          and %s", figure.Counted(uint64(len(longest)-3), "shorter gap"))
			break
		}
		p.line("gap       %s from %s", figure.Duration(time.Duration(g.Seconds*float64(time.Second))), g.Start.Format(time.RFC3339))
	}
}

func baselineNote(r *traffic.Route) string {
	if b, ok := r.Baseline(); ok {
		return fmt.Sprintf("  p95 %s", figure.Percentile(float64(b)/1e6, r.Latency.Samples))
	}
	return ""
}

// printEnvironments lists environments.
func printEnvironments(w io.Writer, list []env.Info) error {
	p := &printer{w: w}
	if len(list) == 0 {
		p.line("no environment")
	}
	for _, e := range list {
		p.line("%s  %s  since %s", e.Name, e.State, e.Created.UTC().Format(time.RFC3339))
		for _, s := range e.Services {
			p.line("  %-12s %s  log %s", s.Name, s.URL, s.Log)
		}
	}
	return p.err
}

// printDoctor lists the checks.
func printDoctor(w io.Writer, results []doctor.Result) error {
	p := &printer{w: w}
	for _, r := range results {
		p.line("%-4s  %-20s %s", r.State, r.Name, r.Text)
		if r.Next != "" {
			p.line("      Next: %s", r.Next)
		}
	}
	return p.err
}

// printCoverage is traffic show: what production serves, what the manifest reaches, and the lines
// that would cover the rest. It writes nothing to the manifest.
func printCoverage(w io.Writer, prof *traffic.Profile, c traffic.Coverage, warnings []string) error {
	p := &printer{w: w}
	p.line("%s on %d routes, recorded %s", figure.Counted(c.Requests, "request"), len(c.Routes), prof.Recorded.Format(time.RFC3339))
	p.window(prof)
	p.line("")
	for _, r := range c.Routes {
		mark := " "
		if r.Reached {
			mark = "*"
		}
		note := strings.TrimSuffix(r.Why+"; "+r.Note, "; ")
		note = strings.TrimPrefix(note, "; ")
		if r.P95 > 0 {
			note = strings.TrimSpace(fmt.Sprintf("p95 %s  %s", figure.Millis(r.P95), note))
		}
		p.line("%s %8s  %-40s %s", mark, figure.Share(r.Share), plain(r.Name), plain(note))
	}
	p.line("")
	p.line("* reached by safe_routes: %s of production's requests", figure.Share(c.Reached))
	if c.Heaviest != "" {
		p.line("heaviest route that is never touched: %s (%s)", plain(c.Heaviest), figure.Share(c.HeaviestPart))
	}
	for _, r := range c.Removed {
		p.line("%s: %d routes, %s", plain(r.Pattern), r.Routes, figure.Counted(r.Requests, "request"))
	}
	for _, warning := range warnings {
		p.line("WARNING %s", plain(warning))
	}
	p.suggest("These safe_routes lines would cover the rest that only reads:", c.Suggested)
	p.suggest("These write; weigh them one by one before you name them:", c.Writes)
	return p.err
}

func (p *printer) suggest(heading string, lines []string) {
	if len(lines) == 0 {
		return
	}
	p.line("")
	p.line("%s", heading)
	for _, l := range lines {
		p.line("  - %s", plain(l))
	}
}

// printRuns is report list.
func printRuns(w io.Writer, runs []evidence.Folder) error {
	p := &printer{w: w}
	if len(runs) == 0 {
		p.line("no run yet")
	}
	for _, f := range runs {
		word := f.Run.Verdict.String()
		if f.Problem != nil {
			word = "incomplete"
		}
		p.line("%-10s  %s  %s", word, plain(filepath.Base(f.Dir)), plain(f.Run.Sentence))
	}
	return p.err
}
