package report

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
	"golang.org/x/term"

	"seatrial/evidence"
	"seatrial/judge"
	"seatrial/report/figure"
)

// TextOptions shapes the final page of a terminal.
type TextOptions struct {
	Color  bool   // escape codes; see ColorFor
	Folder string // where the evidence is, as a person would type it; the run's ID when empty
}

// ColorFor tells whether a file takes colours: it is a terminal, and neither NO_COLOR nor a flag
// forbids it.
func ColorFor(f *os.File, getenv func(string) string, noColor bool) bool {
	return !noColor && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}

// width of the page; no line of it is longer, except a command that must be copied whole.
const width = 80

// Bounds of the page's lists; what they leave out is said.
const (
	textFindings = 20
	textRoutes   = 10
	textLines    = 10
)

// Text gives the renderer of the final page: 80 columns, and without Color the same bytes for the
// same run.
func Text(o TextOptions) Renderer {
	return func(w io.Writer, run *evidence.Run) error {
		p := &page{color: o.Color}
		p.head(run)
		p.judged(run)
		p.load(run)
		p.routes(run)
		p.moved(run)
		p.errors(run)
		p.causes(run.Causes)
		p.list("Warnings", run.Warnings)
		p.list("Fidelity", fidelityLines(run))
		p.list("Left behind", run.Leftovers)
		p.foot(run, o.Folder)
		_, err := io.WriteString(w, p.b.String())
		return err
	}
}

type page struct {
	b     strings.Builder
	color bool
}

// paint styles text when the page has colours.
func (p *page) paint(style lipgloss.Style, s string) string {
	if !p.color {
		return s
	}
	return style.Render(s)
}

func (p *page) verdict(v judge.Verdict, s string) string {
	colors := map[judge.Verdict]string{judge.Pass: "2", judge.Fail: "1", judge.Unverified: "3", judge.Blocked: "5"}
	return p.paint(lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Color(colors[v])), s)
}

func (p *page) title(s string) {
	fmt.Fprintf(&p.b, "\n%s\n", p.paint(lipgloss.NewStyle().Bold(true), s))
}

func (p *page) faint(s string) string { return p.paint(lipgloss.NewStyle().Faint(true), s) }

// wrap writes text in lines of at most 80 columns, all indented; a word that is longer is cut.
func (p *page) wrap(indent int, s string) {
	room := width - indent
	line := ""
	flush := func() {
		if line != "" {
			fmt.Fprintf(&p.b, "%s%s\n", strings.Repeat(" ", indent), line)
			line = ""
		}
	}
	for _, word := range strings.Fields(plain(s)) {
		word = fit(word, room)
		if line != "" && columns(line)+1+columns(word) > room {
			flush()
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	flush()
}

func (p *page) head(run *evidence.Run) {
	word := strings.ToUpper(run.Verdict.String())
	fmt.Fprintf(&p.b, "%s  %s\n", p.verdict(run.Verdict, word), p.faint(fit(plain(run.Command+"  "+run.ID), width-len(word)-2)))
	p.wrap(2, sentence(run))
	if !run.Complete {
		p.wrap(2, "The evidence of this run is incomplete.")
	}
}

func (p *page) judged(run *evidence.Run) {
	p.title("Judged")
	if len(run.Findings) == 0 {
		p.wrap(2, "nothing")
		return
	}
	rows := byUrgency(run.Findings)
	for _, f := range rows[:min(len(rows), textFindings)] {
		name := f.Check
		if f.Route != "" {
			name += "  " + f.Route
		}
		pad := strings.Repeat(" ", len("unverified")-len(f.Verdict.String()))
		fmt.Fprintf(&p.b, "  %s%s  %s\n", p.verdict(f.Verdict, f.Verdict.String()), pad, fit(plain(name), width-14))
		line := "measured " + measured(f) + ", " + limit(f)
		if f.Baseline > 0 {
			line += ", baseline " + inUnit(f)(f.Baseline) + " (n=" + figure.Count(f.BaselineSamples) + ")"
		}
		if i := interval(f); i != "" {
			line += ", interval " + i
		}
		p.wrap(14, line+", n="+figure.Count(f.Samples))
		if f.Verdict != judge.Pass {
			p.wrap(14, strings.TrimSpace(f.Code+" "+f.Reason))
		}
	}
	p.more(len(rows)-textFindings, "check")
}

func (p *page) more(n int, noun string) {
	if n > 0 {
		fmt.Fprintf(&p.b, "  (%s more in report.html)\n", figure.Counted(uint64(n), noun))
	}
}

func (p *page) load(run *evidence.Run) {
	p.title("Load")
	a := run.Account
	p.wrap(2, fmt.Sprintf("offered %s, achieved %s, valid %s, errors %s", figure.Rate(run.Rates.Offered), figure.Rate(run.Rates.Achieved),
		figure.Rate(run.Rates.Valid), figure.Share(run.Rates.ErrorShare)))
	p.wrap(2, fmt.Sprintf("%s due: %s answered, %s failed, %s timed out, %s abandoned, %s unsent, %s lost", figure.Count(a.Due), figure.Count(a.Answered),
		figure.Count(a.Failed), figure.Count(a.TimedOut), figure.Count(a.Abandoned), figure.Count(a.Unsent), figure.Count(a.Lost)))
	if s := statusLine(run); s != "" {
		p.wrap(2, s)
	}
	if run.Plan.Engine != "" {
		p.wrap(2, "engine: "+run.Plan.Engine)
	}
	for _, c := range append(replayed(run), connections(run)...) {
		if c.Name != "opening took" {
			p.wrap(2, c.Name+": "+c.Value)
		}
	}
	if n := run.Warmup.Due; n > 0 {
		p.wrap(2, figure.Counted(n, "request")+" before them were due in the warm-up, which is not judged")
	}
	if run.Total == nil {
		p.wrap(2, "latency not measured")
		return
	}
	fmt.Fprintf(&p.b, "\n  %-14s%11s%11s%11s%11s%11s%9s\n", "", "p50", "p95", "p99", "p99.9", "max", "n")
	p.latency("response time", run.Total)
	if run.TotalService != nil {
		p.latency("service time", run.TotalService)
	}
	fmt.Fprintf(&p.b, "  send delay p99 %s\n", figure.Millis(run.SendDelayP99))
}

// statusLine counts the answers by the class of their status.
func statusLine(run *evidence.Run) string {
	sum := map[string]uint64{}
	for _, r := range run.Routes {
		for class, n := range r.Status {
			sum[class] += n
		}
	}
	var parts []string
	for _, class := range slices.Sorted(maps.Keys(sum)) {
		parts = append(parts, figure.Count(sum[class])+" "+class)
	}
	if len(parts) == 0 {
		return ""
	}
	return "answers by status: " + strings.Join(parts, ", ")
}

func (p *page) causes(all []evidence.Cause) {
	if len(all) == 0 {
		return
	}
	p.title("Causes")
	for _, c := range all {
		p.wrap(2, c.Code+" "+c.Message)
		if c.Next != "" {
			p.wrap(4, "Next: "+c.Next)
		}
	}
}

func (p *page) latency(name string, l *evidence.Latency) {
	fmt.Fprintf(&p.b, "  %-14s%11s%11s%11s%11s%11s%9s\n", name, figure.Millis(l.P50), figure.Millis(l.P95), figure.Millis(l.P99),
		figure.Millis(l.P999), figure.Millis(l.Max), compact(l.Samples))
}

// compact keeps a count in its column.
func compact(n uint64) string {
	if n >= 10_000_000 {
		return figure.Number(float64(n)/1e6) + "M"
	}
	return figure.Count(n)
}

func (p *page) routes(run *evidence.Run) {
	if len(run.Routes) == 0 {
		return
	}
	p.title("Routes, slowest first")
	fmt.Fprintf(&p.b, "  %-30s%9s%8s%11s%11s%9s\n", "", "requests", "errors", "p95", "p99", "n")
	order := run.Slowest()
	for _, i := range order[:min(len(order), textRoutes)] {
		r := &run.Routes[i]
		p95, p99 := "–", "–"
		if r.Response.Samples > 0 {
			p95, p99 = figure.Millis(r.Response.P95), figure.Millis(r.Response.P99)
		}
		fmt.Fprintf(&p.b, "  %s%9s%8s%11s%11s%9s\n", padRight(fit(plain(r.Name), 30), 30), compact(r.Account.Due), figure.Share(r.ErrorShare), p95, p99,
			compact(r.Response.Samples))
	}
	p.more(len(order)-textRoutes, "route")
}

func (p *page) moved(run *evidence.Run) {
	moves := run.Moves()
	if len(moves) == 0 {
		return
	}
	p.title("p95 against production")
	fmt.Fprintf(&p.b, "  %-26s%11s%11s%10s  %s\n", "", "baseline", "this run", "change", "98% interval")
	for _, m := range moves[:min(len(moves), textRoutes)] {
		span := figure.Change(m.Lo) + " to " + figure.Change(m.Hi)
		if !m.Bounded {
			span = "too few"
		}
		fmt.Fprintf(&p.b, "  %s%11s%11s%10s  %s\n", padRight(fit(plain(m.Route), 26), 26), figure.Millis(m.Baseline), figure.Millis(m.P95),
			figure.Change(m.Change), fit(span, 18))
	}
	p.more(len(moves)-textRoutes, "route")
}

func (p *page) errors(run *evidence.Run) {
	if len(run.Errors) == 0 {
		return
	}
	p.title("Errors by class")
	for _, c := range sortedCounts(run.Errors) {
		fmt.Fprintf(&p.b, "  %12s  %s\n", figure.Count(c.n), fit(plain(className(c.name)), width-16))
	}
}

func (p *page) list(title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	p.title(title)
	for _, line := range lines[:min(len(lines), textLines)] {
		p.wrap(2, line)
	}
	p.more(len(lines)-textLines, "line")
}

func (p *page) foot(run *evidence.Run, folder string) {
	if folder == "" {
		folder = run.ID
	}
	p.title("Evidence")
	fmt.Fprintf(&p.b, "  %s\n", plain(folder))
	if run.Plan.Digest != "" {
		fmt.Fprintf(&p.b, "  plan %s, seed %d\n", plain(clip(run.Plan.Digest, 40)), run.Plan.Seed)
	}
	if run.Reproduce != "" {
		fmt.Fprintf(&p.b, "  again: %s\n", plain(run.Reproduce))
	}
}

// plain makes text safe for a terminal: what could move the cursor, colour, hide or reorder becomes a
// visible mark.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case hostile(r):
			return '\uFFFD'
		}
		return r
	}, s)
}

// columns is the width of text in a terminal.
func columns(s string) int { return lipgloss.Width(s) }

// fit cuts text to n columns.
func fit(s string, n int) string {
	if columns(s) <= n {
		return s
	}
	out, used := "", 0
	for _, r := range s {
		c := columns(string(r))
		if used+c > n-1 {
			break
		}
		out += string(r)
		used += c
	}
	return out + "…"
}

func padRight(s string, n int) string { return s + strings.Repeat(" ", max(0, n-columns(s))) }
