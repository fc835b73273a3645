// Package tui is the live view of a running run on a terminal. It reads no input and leaves the
// terminal in its usual mode, so that Ctrl-C stays the interrupt that it always is: the first stops
// the run, the second ends the process at once. It sets no mode that would have to be taken back, so
// that even a killed process leaves a usable terminal behind.
package tui

import (
	"io"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"seatrial/internal/watch"
	"seatrial/report/figure"
)

// Config is what the view needs. Out is required and is the terminal.
type Config struct {
	Out     io.Writer
	Command string   // named in the first line
	Color   bool     // escape codes for colour; the view itself needs cursor movement in any case
	Environ []string // of the process, for the terminal's kind
	Width   int      // columns when Out does not tell; 80 unless set
}

// framesPerSecond bounds how often the screen changes: faster is flicker, not information.
const framesPerSecond = 10

// closeWithin bounds how long Done waits for a terminal that takes no output (Ctrl-S, a dead
// connection): the run has its evidence to write.
const closeWithin = 2 * time.Second

// New starts the view. It ends with Done.
func New(c Config) watch.Watcher {
	if c.Width <= 0 {
		c.Width = 80
	}
	v := &view{wake: make(chan struct{}, 1), quit: make(chan struct{}), ended: make(chan struct{})}
	v.program = tea.NewProgram(model{config: c, width: c.Width}, tea.WithInput(nil), tea.WithOutput(c.Out), tea.WithEnvironment(c.Environ),
		tea.WithoutSignalHandler(), tea.WithFPS(framesPerSecond), tea.WithWindowSize(c.Width, 24))
	go func() {
		defer close(v.ended)
		// The view is a help; that it fails must not end the run, which goes on without it.
		_, _ = v.program.Run()
	}()
	go v.forward()
	return v
}

// view hands the latest frame to the program. Frames that come faster than the screen are dropped, so
// that a slow terminal never holds up a run.
type view struct {
	program *tea.Program
	wake    chan struct{}
	quit    chan struct{}
	ended   chan struct{}

	mu    sync.Mutex
	frame watch.Frame
}

func (v *view) Update(f watch.Frame) {
	v.mu.Lock()
	v.frame = f
	v.mu.Unlock()
	select {
	case v.wake <- struct{}{}:
	default:
	}
}

// forward is the only one that waits for the program.
func (v *view) forward() {
	for {
		select {
		case <-v.wake:
			v.mu.Lock()
			f := v.frame
			v.mu.Unlock()
			v.program.Send(frameMsg(f))
		case <-v.quit:
			v.program.Send(doneMsg{})
			return
		case <-v.ended:
			return
		}
	}
}

// Done clears the view: the final page takes its place.
func (v *view) Done(watch.Final) {
	close(v.quit)
	t := time.NewTimer(closeWithin)
	defer t.Stop()
	select {
	case <-v.ended:
	case <-t.C:
	}
}

type (
	frameMsg watch.Frame
	doneMsg  struct{}
)

// model is the program's state.
type model struct {
	config Config
	frame  watch.Frame
	seen   bool
	width  int
	done   bool
}

func (m model) Init() tea.Cmd { return nil }

func (m model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case frameMsg:
		m.frame, m.seen = watch.Frame(msg), true
	case tea.WindowSizeMsg:
		if msg.Width > 0 {
			m.width = msg.Width
		}
	case doneMsg:
		m.done = true
		return m, tea.Quit
	}
	return m, nil
}

func (m model) View() tea.View {
	text := ""
	if !m.done {
		text = m.text()
	}
	v := tea.NewView(text)
	v.DisableBracketedPasteMode = true
	// The cursor stays visible, below the view: hiding it would be a mode to take back.
	v.Cursor = tea.NewCursor(0, strings.Count(text, "\n"))
	v.Cursor.Shape, v.Cursor.Blink = userShape, false
	return v
}

// userShape leaves the cursor in the shape that the user chose: with Blink off its style is 0, which
// stands for the terminal's own and is never sent.
const userShape tea.CursorShape = -1

// Widths of the columns.
const (
	labelWidth = 10
	maxWidth   = 100
	slowShown  = 3
)

func (m model) text() string {
	f := m.frame
	width := min(max(m.width, 40), maxWidth)
	if !m.seen {
		return m.faint("starting") + "\n"
	}
	lines := []string{m.head(f, width), m.bar(f, width),
		m.row("rate", "offered "+figure.Rate(f.Offered)+"   achieved "+figure.Rate(f.Achieved)+lately(f.Span), width),
		m.row("latency", "p99 "+f.P99Text(), width),
		m.errors(f, width),
		m.row("generator", "send delay p99 "+figure.Duration(f.SendDelayP99), width)}
	for i, s := range f.Slowest[:min(len(f.Slowest), slowShown)] {
		label := ""
		if i == 0 {
			label = "slowest"
		}
		value := "  " + s.Text()
		lines = append(lines, m.row(label, cut(watch.OneLine(s.Route), width-labelWidth-len(value))+value, width))
	}
	if f.Warning != "" {
		lines = append(lines, m.tone("3", cut("warning   "+watch.OneLine(f.Warning), width)))
	}
	lines = append(lines, m.faint(cut("Ctrl-C stops the run and writes the evidence", width)))
	return strings.Join(lines, "\n") + "\n"
}

// lately says what the figures beside it are taken over.
func lately(span time.Duration) string {
	if span <= 0 {
		return ""
	}
	return " in the last " + figure.Duration(span)
}

func (m model) head(f watch.Frame, width int) string {
	left := m.config.Command + "  " + phase(f.Phase)
	right := figure.Duration(f.Left().Round(time.Second)) + " left of " + figure.Duration(f.Total)
	if f.Phase == watch.Drain || f.Left() == 0 {
		right = figure.Duration(f.Elapsed.Round(time.Second))
	}
	left = cut(watch.OneLine(left), max(1, width-lipgloss.Width(right)-1))
	gap := max(1, width-lipgloss.Width(left)-lipgloss.Width(right))
	return m.bold(left) + strings.Repeat(" ", gap) + right
}

func phase(p string) string {
	switch p {
	case watch.Warmup:
		return "warm-up, not judged"
	case watch.Drain:
		return "waiting for the last answers"
	}
	return "running"
}

func (m model) bar(f watch.Frame, width int) string {
	share := f.Share()
	percent := figure.Share(float64(int(share*100)) / 100)
	room := width - 6
	full := int(share * float64(room))
	pad := strings.Repeat(" ", max(0, 5-lipgloss.Width(percent)))
	return m.tone("4", strings.Repeat("█", full)) + m.faint(strings.Repeat("░", room-full)) + " " + pad + percent
}

func (m model) errors(f watch.Frame, width int) string {
	value := figure.Share(f.Errors) + " of " + figure.Counted(f.Ended, "request")
	if f.Failures == 0 {
		return m.row("errors", value, width)
	}
	return m.row("errors", "", width) + m.tone("1", cut(value, width-labelWidth))
}

func (m model) row(label, value string, width int) string {
	return m.faint(label+strings.Repeat(" ", labelWidth-len(label))) + cut(value, width-labelWidth)
}

// cut shortens text to n columns.
func cut(s string, n int) string {
	if lipgloss.Width(s) <= n {
		return s
	}
	var b strings.Builder
	used := 0
	for _, r := range s {
		w := lipgloss.Width(string(r))
		if used+w > n-1 {
			break
		}
		b.WriteRune(r)
		used += w
	}
	return b.String() + "…"
}

func (m model) tone(color, s string) string {
	if !m.config.Color {
		return s
	}
	return lipgloss.NewStyle().Foreground(lipgloss.Color(color)).Render(s)
}

func (m model) bold(s string) string {
	if !m.config.Color {
		return s
	}
	return lipgloss.NewStyle().Bold(true).Render(s)
}

func (m model) faint(s string) string {
	if !m.config.Color {
		return s
	}
	return lipgloss.NewStyle().Faint(true).Render(s)
}
