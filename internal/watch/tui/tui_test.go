package tui

import (
	"bytes"
	"io"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"charm.land/lipgloss/v2"
	"go.uber.org/goleak"

	"seatrial/internal/watch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func frame() watch.Frame {
	return watch.Frame{Elapsed: 75 * time.Second, Total: 2 * time.Minute, Phase: watch.Judged, Offered: 1204, Achieved: 1203.6, Span: 5 * time.Second, Ended: 90_000, Failures: 1125,
		P99: 41200 * time.Microsecond, Samples: 12345, Errors: 0.0125, SendDelayP99: 412 * time.Microsecond, Warning: "send delay\x1b[2J is high",
		Slowest: []watch.Slow{{Route: "GET /orders/{id}", P99: 90 * time.Millisecond, Samples: 80}, {Route: strings.Repeat("GET /very/long/", 20), P99: time.Second, Samples: 1}}}
}

func TestViewShowsEverything(t *testing.T) {
	got := model{config: Config{Command: "run"}, frame: frame(), seen: true, width: 72}.text()
	want := `run  running                                        45 s left of 2 min
█████████████████████████████████████████░░░░░░░░░░░░░░░░░░░░░░░░░   62%
rate      offered 1,204/s   achieved 1,204/s in the last 5 s
latency   p99 41.2 ms (n=12,345)
errors    1.25% of 90,000 requests
generator send delay p99 412 µs
slowest   GET /orders/{id}  p99 90 ms (n=80)
          GET /very/long/GET /very/long/GET /very/l…  p99 1,000 ms (n=1)
warning   send delay�[2J is high
Ctrl-C stops the run and writes the evidence
`
	if lines(got) != lines(want) {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// lines leaves out the spaces that place the right-hand side.
func lines(s string) string { return regexp.MustCompile(` {2,}`).ReplaceAllString(s, "  ") }

func TestNoLineIsWiderThanTheTerminal(t *testing.T) {
	for width := 40; width < 130; width += 7 {
		for _, color := range []bool{false, true} {
			for _, p := range []string{watch.Warmup, watch.Judged, watch.Drain} {
				f := frame()
				f.Phase, f.Warning = p, strings.Repeat("宽 ", 100)
				m := model{config: Config{Command: "run", Color: color}, frame: f, seen: true, width: width}
				for line := range strings.Lines(m.text()) {
					if w := lipgloss.Width(strings.TrimSuffix(line, "\n")); w > width {
						t.Errorf("width %d: a line of %d columns: %q", width, w, line)
					}
				}
			}
		}
	}
}

// screen collects output; the program writes from its own goroutine. It notes a write after which the
// cursor is hidden: a process that is killed between two writes would leave it so.
type screen struct {
	mu     sync.Mutex
	b      bytes.Buffer
	hidden []string
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if bytes.LastIndex(p, []byte("\x1b[?25l")) > bytes.LastIndex(p, []byte("\x1b[?25h")) {
		s.hidden = append(s.hidden, string(p))
	}
	return s.b.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// modes are the sequences that would have to be taken back: alternate screen, bracketed paste, mouse,
// keyboard protocols, the cursor's shape.
var modes = regexp.MustCompile(`\x1b\[\?(1049h|2004h|100[0-6]h)|\x1b\[[>=<]\d*u|\x1b\[>4;\d+m|\x1b\[[1-9] q`)

func TestTheTerminalIsLeftUsableAtAnyMoment(t *testing.T) {
	out := &screen{}
	w := New(Config{Out: out, Command: "run", Color: true, Environ: []string{"TERM=xterm-256color"}})
	until(t, func() bool { w.Update(frame()); return strings.Contains(out.String(), "1,204/s") })
	if m := modes.FindString(out.String()); m != "" {
		t.Errorf("a mode is set while the view runs: %q", m)
	}
	w.Done(watch.Final{})
	if m := modes.FindString(out.String()); m != "" {
		t.Errorf("a mode is set after the view: %q", m)
	}
	if len(out.hidden) > 0 {
		t.Errorf("the cursor is hidden between two writes: %q", out.hidden)
	}
}

// until asks again and again for at most ten seconds: the program draws in its own time.
func until(t *testing.T, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatal("the view never showed it")
		}
		<-tick.C
	}
}

// A terminal that takes nothing holds up neither Update nor, for long, Done.
func TestAStuckTerminalHoldsNothingUp(t *testing.T) {
	r, out := io.Pipe() // nobody reads yet
	w := New(Config{Out: out, Command: "run", Environ: []string{"TERM=xterm"}})
	for range 1000 {
		w.Update(frame())
	}
	returned := make(chan struct{})
	go func() { w.Done(watch.Final{}); close(returned) }()
	select {
	case <-returned:
	case <-time.After(20 * time.Second):
		t.Fatal("Done waits for the terminal")
	}
	go func() { _, _ = io.Copy(io.Discard, r) }() // lets the program end
	<-w.(*view).ended
	_ = out.Close()
}

func TestDoneWithoutAFrame(t *testing.T) {
	out := &screen{}
	w := New(Config{Out: out, Command: "run", Environ: []string{"TERM=xterm"}})
	w.Done(watch.Final{})
	if strings.Contains(out.String(), "rate") {
		t.Errorf("shown: %q", out.String())
	}
}
