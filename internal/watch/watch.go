// Package watch shows a run while it runs. Watchers receive copies and cannot push back: nothing
// that they do delays a request.
package watch

import (
	"fmt"
	"io"
	"strings"
	"time"

	"seatrial/judge"
	"seatrial/report/figure"
)

// The phases of a run.
const (
	Warmup = "warmup"
	Judged = "judged"
	Drain  = "drain"
)

// Watcher follows one run. Its calls come from one goroutine, Done last and once.
type Watcher interface {
	Update(Frame)
	Done(Final)
}

// Frame is a copy of a running run's totals.
type Frame struct {
	Elapsed time.Duration // since the epoch
	Total   time.Duration // warm-up and judged part
	Phase   string        // Warmup, Judged or Drain

	Due      uint64 // due so far
	Ended    uint64 // of those, ended in any way
	Failures uint64 // of those, errors

	Offered      float64       // due per second, the plan's mean
	Achieved     float64       // answered per second, in the last Span
	Span         time.Duration // what the recent figures are taken over
	P99          time.Duration // response time, recently
	Samples      uint64        // behind P99; 0: P99 is not measured
	Errors       float64       // share of what ended, 0..1
	SendDelayP99 time.Duration
	Slowest      []Slow // slowest first
	Warning      string // the last one; empty when there is none
}

// Slow is one route of the live view: its p99, or its mean where a percentile is too dear to keep for
// each route.
type Slow struct {
	Route   string
	P99     time.Duration // 0: not kept
	Mean    time.Duration
	Samples uint64
}

// Text writes the route's latency with its sample count.
func (s Slow) Text() string {
	name, d := "mean ", s.Mean
	if s.P99 > 0 {
		name, d = "p99 ", s.P99
	}
	return name + figure.Percentile(float64(d)/float64(time.Millisecond), s.Samples)
}

// Final is how the run ended.
type Final struct {
	Verdict  judge.Verdict
	Sentence string
	Folder   string // of the evidence
}

// Left is the time until the last request is due; 0 in the drain.
func (f Frame) Left() time.Duration { return max(0, f.Total-f.Elapsed) }

// Share is how much of the run's time has passed, 0..1.
func (f Frame) Share() float64 {
	if f.Total <= 0 {
		return 1
	}
	return min(1, max(0, float64(f.Elapsed)/float64(f.Total)))
}

// P99Text writes the response time's p99 with its sample count.
func (f Frame) P99Text() string {
	return figure.Percentile(float64(f.P99)/float64(time.Millisecond), f.Samples)
}

// LineEvery is how often a watcher without a terminal prints (RE-4).
const LineEvery = 10 * time.Second

// Plain prints one line every ten seconds of the run, and a line for each new warning, for logs and
// pipes. It prints nothing at the end: the final page follows.
func Plain(w io.Writer) Watcher { return &plain{w: w} }

type plain struct {
	w       io.Writer
	printed time.Duration // multiple of LineEvery that was printed last
	warning string
}

func (p *plain) Update(f Frame) {
	if f.Warning != "" && f.Warning != p.warning {
		p.warning = f.Warning
		_, _ = fmt.Fprintf(p.w, "warning: %s\n", OneLine(f.Warning))
	}
	if f.Elapsed < p.printed+LineEvery {
		return
	}
	p.printed = f.Elapsed - f.Elapsed%LineEvery
	// A lost progress line costs nothing that the evidence lacks, so a failed write is not an error.
	_, _ = fmt.Fprintln(p.w, Line(f))
}

func (p *plain) Done(Final) {}

// Line is one frame on one line.
func Line(f Frame) string {
	b := &strings.Builder{}
	fmt.Fprintf(b, "%s of %s, %s: offered %s, errors %s", figure.Duration(f.Elapsed.Truncate(time.Second)), figure.Duration(f.Total),
		phaseText(f.Phase), figure.Rate(f.Offered), figure.Share(f.Errors))
	if f.Span > 0 {
		fmt.Fprintf(b, "; last %s: achieved %s, p99 %s, send delay p99 %s", figure.Duration(f.Span), figure.Rate(f.Achieved), f.P99Text(),
			figure.Duration(f.SendDelayP99))
	}
	if len(f.Slowest) > 0 {
		fmt.Fprintf(b, ", slowest %s", OneLine(f.Slowest[0].Route))
	}
	return b.String()
}

func phaseText(phase string) string {
	switch phase {
	case Warmup:
		return "warm-up"
	case Drain:
		return "waiting for the last answers"
	case "":
		return "running"
	}
	return OneLine(phase)
}

// OneLine makes text safe for one line of a terminal: control characters, which could move the
// cursor or hide text, become a visible mark.
func OneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) || (r >= 0x202a && r <= 0x202e) || (r >= 0x2066 && r <= 0x2069) {
			return '\uFFFD'
		}
		return r
	}, s)
}
