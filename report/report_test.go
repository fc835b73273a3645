package report_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"seatrial/evidence"
	"seatrial/judge"
	"seatrial/report"
)

// golden compares with a committed file; SEATRIAL_UPDATE=1 writes it anew.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("SEATRIAL_UPDATE") != "" {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs from what is committed; got:\n%s", name, got)
	}
}

func render(t *testing.T, r report.Renderer, run *evidence.Run) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := r(&b, run); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func all() map[string]report.Renderer {
	out := map[string]report.Renderer{"run.json": report.JSON, "final.txt": report.Text(report.TextOptions{}),
		"final.ansi": report.Text(report.TextOptions{Color: true})}
	for _, f := range report.Files() {
		out[f.Name] = f.Render
	}
	return out
}

func TestGolden(t *testing.T) {
	renderers := all()
	for _, name := range []string{"run.json", "final.txt", "report.md", "junit.xml", "summary.csv", "series.csv"} {
		golden(t, name, render(t, renderers[name], sample()))
	}
}

func TestSameRunGivesTheSameBytes(t *testing.T) {
	for name, r := range all() {
		if !bytes.Equal(render(t, r, sample()), render(t, r, sample())) {
			t.Errorf("%s differs between two renderings of the same run", name)
		}
	}
}

func TestNoRendererChangesTheRun(t *testing.T) {
	run := sample()
	before := render(t, report.JSON, run)
	for name, r := range all() {
		render(t, r, run)
		if !bytes.Equal(before, render(t, report.JSON, run)) {
			t.Fatalf("%s changed the run", name)
		}
	}
}

func TestFilesAreTheExpectedOnes(t *testing.T) {
	have := map[string]bool{evidence.RunFile: true, evidence.JournalFile: true, evidence.StdoutFile: true}
	for _, f := range report.Files() {
		have[f.Name] = true
	}
	for _, name := range evidence.Expected() {
		if !have[name] {
			t.Errorf("nothing writes %s", name)
		}
	}
}

func TestAnEmptyRunRenders(t *testing.T) {
	for name, r := range all() {
		for _, run := range []*evidence.Run{{}, {Verdict: judge.Blocked, Sentence: "blocked: x", Environment: &evidence.Environment{}}} {
			if out := render(t, r, run); name != "histograms.hlog" && !strings.HasSuffix(name, ".csv") &&
				!strings.Contains(strings.ToLower(string(out)), run.Verdict.String()) {
				t.Errorf("%s of an empty run does not say %s:\n%s", name, run.Verdict, out)
			}
		}
	}
}

func TestWriteErrorsAreReturned(t *testing.T) {
	for name, r := range all() {
		if err := r(brokenWriter{}, sample()); err == nil {
			t.Errorf("%s hides a failed write", name)
		}
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestTextIsPlainAndEightyColumns(t *testing.T) {
	for _, text := range append(nasty(), strings.Repeat("a very long name ", 40), strings.Repeat("宽", 200)) {
		out := string(render(t, report.Text(report.TextOptions{Folder: "x"}), hostile(text)))
		for line := range strings.Lines(out) {
			line = strings.TrimSuffix(line, "\n")
			if n := len([]rune(line)); n > 80 && !strings.HasPrefix(line, "  again: ") {
				t.Errorf("a line has %d characters: %q", n, line)
			}
			if strings.ContainsAny(line, "\x1b\r\x00\u202e\u2066") {
				t.Errorf("a line has control characters: %q", line)
			}
		}
	}
}

func TestTextHasColoursOnRequest(t *testing.T) {
	out := render(t, report.Text(report.TextOptions{Color: true}), sample())
	bare := regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAll(out, nil)
	if !bytes.Contains(out, []byte("\x1b[")) {
		t.Error("no colour")
	}
	if !bytes.Equal(bare, render(t, report.Text(report.TextOptions{}), sample())) {
		t.Error("colour changes the text")
	}
}

func TestColorForAPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = r.Close(), w.Close() }()
	if report.ColorFor(w, func(string) string { return "" }, false) {
		t.Error("a pipe takes colours")
	}
}

func TestHistogramsReadBack(t *testing.T) {
	run := sample()
	reader := hdrhistogram.NewHistogramLogReader(bytes.NewReader(render(t, report.Histograms, run)))
	var counts []int64
	for {
		h, err := reader.NextIntervalHistogram()
		if errors.Is(err, io.EOF) || (err == nil && h == nil) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		counts = append(counts, h.TotalCount())
	}
	if len(counts) != 1+3*len(run.Routes) || counts[0] != int64(run.Total.Samples) {
		t.Errorf("histograms of %v values; want %d, the first of %d", counts, 1+3*len(run.Routes), run.Total.Samples)
	}
}

func TestJUnitIsValidWhateverTheNames(t *testing.T) {
	for _, text := range nasty() {
		checkJUnit(t, render(t, report.JUnit, hostile(text)), 5)
	}
}

func checkJUnit(t *testing.T, out []byte, cases int) {
	t.Helper()
	var suites struct {
		Suite struct {
			Tests    int `xml:"tests,attr"`
			Failures int `xml:"failures,attr"`
			Skipped  int `xml:"skipped,attr"`
			Cases    []struct {
				Failure *struct{} `xml:"failure"`
				Skipped *struct{} `xml:"skipped"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(out, &suites); err != nil {
		t.Fatalf("not XML: %v\n%s", err, out)
	}
	s := suites.Suite
	failures, skipped := 0, 0
	for _, c := range s.Cases {
		if c.Failure != nil {
			failures++
		}
		if c.Skipped != nil {
			skipped++
		}
	}
	if s.Tests != len(s.Cases) || s.Tests != cases || s.Failures != failures || s.Skipped != skipped {
		t.Errorf("counts %+v do not match its cases", s)
	}
}

func TestJUnitTellsAVerdictThatNoCheckTells(t *testing.T) {
	run := &evidence.Run{Verdict: judge.Blocked, Sentence: "blocked: no route is left"}
	out := string(render(t, report.JUnit, run))
	if !strings.Contains(out, `<skipped message="blocked: no route is left"`) {
		t.Errorf("got %s", out)
	}
	run = &evidence.Run{Verdict: judge.Unverified, Sentence: "unverified", Findings: []judge.Finding{{Check: "error_rate", Verdict: judge.Pass}}}
	checkJUnit(t, render(t, report.JUnit, run), 2)
}

// No text of a run becomes Markdown of its own: outside the entities the page has only the structure
// that the renderer wrote.
func checkMarkdown(t *testing.T, out []byte) {
	t.Helper()
	if len(out) >= report.MaxMarkdown {
		t.Fatalf("%d bytes", len(out))
	}
	own := regexp.MustCompile(`</?code>|&#\d+;`)
	for line := range strings.Lines(string(out)) {
		rest := own.ReplaceAllString(line, "")
		if strings.ContainsAny(rest, "`<[]@\\\x00\x1b\u202e") {
			t.Fatalf("a text breaks out of its place: %q", line)
		}
		if n := strings.Count(rest, "|"); n != 0 && n != 7 && n != 9 {
			t.Fatalf("a text adds a cell: %q", line)
		}
		if strings.Contains(rest, "://") || strings.Contains(strings.ToLower(rest), "www.") && !strings.Contains(line, "<code>") {
			t.Fatalf("a text becomes a link: %q", line)
		}
	}
}

func TestMarkdownCannotBeBrokenOutOf(t *testing.T) {
	for _, text := range nasty() {
		checkMarkdown(t, render(t, report.Markdown, hostile(text)))
	}
}

func TestMarkdownIsBounded(t *testing.T) {
	run := hostile(strings.Repeat("|`&<", 2000))
	for range 200 {
		run.Findings = append(run.Findings, run.Findings[0])
		run.Routes = append(run.Routes, run.Routes[1])
		run.Warnings = append(run.Warnings, run.Warnings[0])
	}
	for i := range run.Findings {
		run.Findings[i].Verdict = judge.Fail
	}
	out := render(t, report.Markdown, run)
	checkMarkdown(t, out)
	if !bytes.Contains(out, []byte("more in report.html)")) && !bytes.Contains(out, []byte("cut here")) {
		t.Error("what was left out is not said")
	}
}

func TestCSVKeepsHostileNamesInTheirCells(t *testing.T) {
	for _, text := range nasty() {
		for _, r := range []report.Renderer{report.Summary, report.Series} {
			rows, err := csv.NewReader(bytes.NewReader(render(t, r, hostile(text)))).ReadAll()
			if err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			for _, row := range rows {
				for _, cell := range row {
					if strings.HasPrefix(cell, "=") {
						t.Errorf("a cell is a formula: %q", cell)
					}
				}
			}
		}
	}
}

// checkHTML holds the page to: no tag, attribute or address that the renderer did not write.
func checkHTML(t *testing.T, out []byte) {
	t.Helper()
	s := string(out)
	for _, bad := range []string{"<script>alert", "<img", "<svg onload", "</style></table>", " style=\"", "src=\"", "href=\"http", "href=\"javascript"} {
		if i := strings.Index(s, bad); i >= 0 {
			t.Fatalf("the page holds %q: ...%s", bad, s[max(0, i-80):min(len(s), i+80)])
		}
	}
	if strings.Count(s, "<script") != 1 || strings.Count(s, "<style") != 1 || strings.Count(s, "</html>") != 1 {
		t.Fatal("scripts, styles or ends were added")
	}
	if open, closed := strings.Count(s, "<table"), strings.Count(s, "</table>"); open != closed {
		t.Fatalf("%d tables begin, %d end", open, closed)
	}
}

func TestHTMLEscapesHostileNames(t *testing.T) {
	for _, text := range nasty() {
		checkHTML(t, render(t, report.HTML, hostile(text)))
	}
}

func TestHTMLAnswersInOrder(t *testing.T) {
	s := string(render(t, report.HTML, sample()))
	at := 0
	for _, part := range []string{`class="banner fail"`, `id="judged-h"`, `id="moved-h"`, `id="where-h"`, `id="charts-h"`, `id="rates-h"`, `id="latency-h"`, `id="curve-h"`,
		`id="errors-h"`, `id="delay-h"`, `id="cpu-h"`, `id="limits-h"`, `id="again-h"`, `id="environment-h"`} {
		i := strings.Index(s[at:], part)
		if i < 0 {
			t.Fatalf("%s is missing or out of order", part)
		}
		at += i
	}
	if !strings.Contains(s, `http-equiv="Content-Security-Policy" content="default-src &#39;none&#39;`) {
		t.Error("the policy is missing")
	}
	if n := strings.Count(s, "<svg viewBox=\"0 0 1050 260\""); n != 6 {
		t.Errorf("%d charts, want 6", n)
	}
	if strings.Count(s, "<details>") < 6 {
		t.Error("a chart lacks its table")
	}
}

func TestHTMLBoundsALongRun(t *testing.T) {
	run := sample()
	one := run.Series[20]
	run.Series = nil
	for i := range 4096 {
		one.T = i * 21
		run.Series = append(run.Series, one)
	}
	run.SeriesStep = 21
	out := render(t, report.HTML, run)
	if len(out) > 2<<20 {
		t.Errorf("the page has %d bytes", len(out))
	}
	if !bytes.Contains(out, []byte("Each point stands for 147 s")) {
		t.Error("what was gathered is not said")
	}
}

// Whatever a run.json holds, each renderer keeps to its format.
func FuzzRender(f *testing.F) {
	for _, text := range nasty() {
		f.Add(text, 1.5, uint64(7))
	}
	f.Add("x", math.Inf(1), uint64(math.MaxUint64))
	f.Add("x", math.NaN(), uint64(0))
	f.Add("x", -1e300, uint64(1))
	f.Add("x", 1e300, uint64(1<<62))
	f.Add("x", 5e-324, uint64(1<<63))
	f.Add("x", 1e-310, uint64(3))
	f.Fuzz(func(t *testing.T, text string, v float64, n uint64) {
		run := hostile(text)
		run.Series = run.Series[:3]
		for i := range run.Series {
			s := &run.Series[i]
			s.P99, s.CPU, s.Offered, s.T = v, v, n, int(n)
		}
		for i := range run.Curve {
			run.Curve[i].Percentile, run.Curve[i].Response = v, v
		}
		run.Total.Samples, run.Total.P99, run.Rates.Offered = n, v, v
		for i := range run.Findings {
			run.Findings[i].Measured, run.Findings[i].Hi, run.Findings[i].Samples = v, v, n
		}
		run.Routes[1].Baseline, run.Routes[1].Response.Samples, run.Routes[1].Response.Mean = v, n, v
		checkMarkdown(t, render(t, report.Markdown, run))
		checkHTML(t, render(t, report.HTML, run))
		checkJUnit(t, render(t, report.JUnit, run), len(run.Findings))
		render(t, report.Text(report.TextOptions{}), run)
		render(t, report.Summary, run)
	})
}

func TestJSONIsWhatReadReads(t *testing.T) {
	out := render(t, report.JSON, sample())
	if !json.Valid(out) {
		t.Fatal("not JSON")
	}
	run, err := evidence.Read(bytes.NewReader(out))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out, render(t, report.JSON, run)) {
		t.Error("reading and writing changes a run")
	}
}
