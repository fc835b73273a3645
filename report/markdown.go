package report

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"seatrial/evidence"
	"seatrial/judge"
	"seatrial/report/figure"
)

// MaxMarkdown is the size that a page stays under: a pull-request comment takes 65,536 characters.
const MaxMarkdown = 60_000

// Bounds of a page's parts; what they leave out is said.
const (
	mdFindings = 40
	mdMoves    = 10
	mdWarnings = 10
	mdText     = 600 // characters of one text
	mdName     = 160 // characters of one name
)

// Markdown writes report.md (RE-5): verdict, what did not hold, what moved most, and where the whole
// report is. No name can break out of its place, mention anyone or become a link.
func Markdown(w io.Writer, run *evidence.Run) error {
	b := &strings.Builder{}
	fmt.Fprintf(b, "## %s %s\n\n%s\n\n", mark(run.Verdict), strings.ToUpper(run.Verdict.String()), mdProse(sentence(run)))
	mdFigures(b, run)
	mdJudged(b, run)
	mdMoved(b, run)
	mdList(b, "Causes", causeLines(run))
	mdList(b, "Warnings", run.Warnings)
	mdList(b, "Fidelity", fidelityLines(run))
	mdList(b, "Left behind", run.Leftovers)
	if run.Reproduce != "" {
		fmt.Fprintf(b, "Reproduce: %s\n\n", mdCode(clip(run.Reproduce, mdText)))
	}
	fmt.Fprintf(b, "Whole report: %s in the run folder %s · plan %s · %s\n", mdCode("report.html"), mdCode(clip(run.ID, mdName)),
		mdCode(clip(run.Plan.Digest, 12)), mdProse(clip(run.Tool, mdName)))
	_, err := io.WriteString(w, bounded(b.String()))
	return err
}

// bounded cuts a page at a line's end when it is too long in spite of the bounds of its parts.
func bounded(page string) string {
	const note = "\n\n(cut here: the page was longer than a comment may be; report.html has the rest)\n"
	if len(page) < MaxMarkdown {
		return page
	}
	page = page[:MaxMarkdown-len(note)-1]
	return page[:max(0, strings.LastIndexByte(page, '\n'))] + note
}

func mark(v judge.Verdict) string {
	switch v {
	case judge.Pass:
		return "✅"
	case judge.Fail:
		return "❌"
	case judge.Blocked:
		return "⛔"
	}
	return "⚠️"
}

func mdFigures(b *strings.Builder, run *evidence.Run) {
	if run.Total == nil {
		return
	}
	t := run.Total
	b.WriteString("| offered | achieved | valid | errors | p50 | p95 | p99 | send delay p99 |\n|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %s | %s |\n\n", figure.Rate(run.Rates.Offered), figure.Rate(run.Rates.Achieved),
		figure.Rate(run.Rates.Valid), figure.Share(run.Rates.ErrorShare), figure.Millis(t.P50), figure.Millis(t.P95), figure.Millis(t.P99),
		figure.Millis(run.SendDelayP99))
	fmt.Fprintf(b, "Response time from the due time, over %s.\n\n", figure.Counted(t.Samples, "judged request"))
	for _, r := range replayed(run) {
		fmt.Fprintf(b, "- %s: %s\n", mdProse(r.Name), mdProse(r.Value))
	}
	if run.Replay != nil {
		b.WriteString("\n")
	}
	mdConnections(b, run)
}

func mdConnections(b *strings.Builder, run *evidence.Run) {
	k := run.Connections
	if k == nil {
		return
	}
	fmt.Fprintf(b, "Sent by the %s engine: %s.\n\n", mdProse(run.Plan.Engine), mdProse(versions(k)))
	if k.Arrivals != nil {
		fmt.Fprintf(b, "New connections: %s.\n\n", mdProse(NewConnections(k.Arrivals)))
	}
	for _, why := range whyFailed(k) {
		fmt.Fprintf(b, "- failed: %s\n", mdProse(why))
	}
	if len(k.Why) > 0 {
		b.WriteString("\n")
	}
}

func mdJudged(b *strings.Builder, run *evidence.Run) {
	if len(run.Findings) == 0 {
		b.WriteString("Nothing was judged.\n\n")
		return
	}
	held := 0
	var rows []judge.Finding
	for _, f := range byUrgency(run.Findings) {
		if f.Verdict == judge.Pass {
			held++
		} else {
			rows = append(rows, f)
		}
	}
	fmt.Fprintf(b, "%d of %s held.\n\n", held, figure.Counted(uint64(len(run.Findings)), "judged check"))
	if len(rows) == 0 {
		return
	}
	b.WriteString("| verdict | check | route | measured | interval | limit | n | why |\n|---|---|---|---:|---|---|---:|---|\n")
	for _, f := range rows[:min(len(rows), mdFindings)] {
		fmt.Fprintf(b, "| %s %s | %s | %s | %s | %s | %s | %s | %s |\n", mark(f.Verdict), f.Verdict, mdCode(clip(f.Check, mdName)),
			mdCode(clip(subject(f), mdName)), measured(f), orDash(interval(f)), limit(f), figure.Count(f.Samples),
			mdProse(strings.TrimSpace(f.Code+" "+clip(f.Reason, mdText))))
	}
	b.WriteByte('\n')
	more(b, len(rows)-mdFindings, "check")
}

func mdMoved(b *strings.Builder, run *evidence.Run) {
	moves := run.Moves()
	if len(moves) == 0 {
		return
	}
	b.WriteString("**Moved most against production**\n\n| route | baseline p95 | this run p95 | change | 98% interval | |\n|---|---:|---:|---:|---|---|\n")
	for _, m := range moves[:min(len(moves), mdMoves)] {
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s |\n", mdCode(clip(m.Route, mdName)), figure.Percentile(m.Baseline, m.BaselineSamples),
			figure.Percentile(m.P95, m.Samples), figure.Change(m.Change), figure.Interval(m.Lo, m.Hi, !m.Bounded, figure.Change), m.Direction)
	}
	b.WriteByte('\n')
	more(b, len(moves)-mdMoves, "route")
}

func mdList(b *strings.Builder, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "**%s**\n\n", title)
	for _, line := range lines[:min(len(lines), mdWarnings)] {
		fmt.Fprintf(b, "- %s\n", mdProse(clip(line, mdText)))
	}
	b.WriteByte('\n')
	more(b, len(lines)-mdWarnings, "line")
}

func more(b *strings.Builder, n int, noun string) {
	if n > 0 {
		fmt.Fprintf(b, "(%s more in report.html)\n\n", figure.Counted(uint64(n), noun))
	}
}

func causeLines(run *evidence.Run) []string {
	var out []string
	for _, c := range run.Causes {
		line := c.Code + " " + c.Message
		if c.Next != "" {
			line += " Next: " + c.Next
		}
		out = append(out, strings.TrimSpace(line))
	}
	return out
}

// fidelityLines is LD-15: what was reproduced, substituted, absent or unmeasured.
func fidelityLines(run *evidence.Run) []string {
	var out []string
	for _, d := range run.Fidelity {
		out = append(out, d.Name+" "+d.State+": "+d.Text)
	}
	return out
}

func orDash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}

// mdCode writes a name as code. Inside the element GitHub makes neither mentions nor links, and every
// character that Markdown knows is written as an entity, so that a pipe, a backtick or a tag stays a
// character.
func mdCode(s string) string {
	if s == "" {
		return ""
	}
	return "<code>" + mdEscape(s, false) + "</code>"
}

// mdProse writes a sentence, in which a zero-width space parts what would become a mention, a
// reference or a link.
func mdProse(s string) string { return mdEscape(strings.TrimSpace(clip(s, mdText)), true) }

func mdEscape(s string, prose bool) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == '\n' || r == '\r' || r == '\t' || r == '\u2028' || r == '\u2029':
			b.WriteByte(' ')
		case hostile(r):
			b.WriteRune('\uFFFD')
		case strings.ContainsRune("\\`*_{}[]<>()#+!|~@&$\"'^=", r) || (r == ':' && opens(s[i+1:])):
			fmt.Fprintf(&b, "&#%d;", r)
			if prose && (r == '@' || r == '#' || strings.HasPrefix(s[i:], "://")) {
				b.WriteRune('\u200B')
			}
		case r == '.' && prose && strings.HasSuffix(strings.ToLower(s[:i]), "www"):
			b.WriteString("&#46;\u200B")
		case prose && (r == '-' || r == '.') && strings.Trim(s[:i], "0123456789 ") == "":
			fmt.Fprintf(&b, "&#%d;", r) // would begin a list or a rule
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// opens tells whether what follows a colon makes a link or an emoji of it.
func opens(after string) bool {
	r, _ := utf8.DecodeRuneInString(after)
	return r == '/' || r == '+' || r == '-' || unicode.IsLetter(r)
}

// hostile tells whether a character could hide or reorder text: controls and direction marks.
func hostile(r rune) bool {
	return r < ' ' || (r >= 0x7f && r < 0xa0) || (r >= 0x200b && r <= 0x200f) || (r >= 0x202a && r <= 0x202e) || (r >= 0x2060 && r <= 0x206f) || r == 0xfeff
}
