package watch_test

import (
	"strings"
	"testing"
	"time"

	"seatrial/internal/watch"
)

func frame(elapsed time.Duration) watch.Frame {
	return watch.Frame{Elapsed: elapsed, Total: time.Minute, Phase: watch.Judged, Offered: 1204, Achieved: 1203.6, Span: 5 * time.Second,
		P99: 41200 * time.Microsecond, Samples: 12345, Errors: 0.0125, SendDelayP99: 412 * time.Microsecond,
		Slowest: []watch.Slow{{Route: "GET /orders/{id}", P99: 90 * time.Millisecond, Samples: 80}}}
}

func TestPlainPrintsOneLineEveryTenSeconds(t *testing.T) {
	var b strings.Builder
	w := watch.Plain(&b)
	for i := range 125 {
		w.Update(frame(time.Duration(i) * 200 * time.Millisecond))
	}
	w.Done(watch.Final{})
	want := "10 s of 1 min, judged: offered 1,204/s, errors 1.25%; last 5 s: achieved 1,204/s, p99 41.2 ms (n=12,345), send delay p99 412 µs, slowest GET /orders/{id}\n" +
		"20 s of 1 min, judged: offered 1,204/s, errors 1.25%; last 5 s: achieved 1,204/s, p99 41.2 ms (n=12,345), send delay p99 412 µs, slowest GET /orders/{id}\n"
	if b.String() != want {
		t.Errorf("got:\n%swant:\n%s", b.String(), want)
	}
}

func TestPlainSaysEachWarningOnce(t *testing.T) {
	var b strings.Builder
	w := watch.Plain(&b)
	f := frame(time.Second)
	f.Warning = "send delay\x1b[2J is high"
	w.Update(f)
	w.Update(f)
	if got, want := b.String(), "warning: send delay\uFFFD[2J is high\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSlowNamesWhatItShows(t *testing.T) {
	for _, c := range []struct {
		slow watch.Slow
		want string
	}{
		{watch.Slow{P99: time.Second, Mean: time.Millisecond, Samples: 3}, "p99 1,000 ms (n=3)"},
		{watch.Slow{Mean: 1500 * time.Microsecond, Samples: 3}, "mean 1.5 ms (n=3)"},
		{watch.Slow{}, "mean not measured"},
	} {
		if got := c.slow.Text(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestFrameOfNothingMeasured(t *testing.T) {
	f := watch.Frame{}
	if got := f.P99Text(); got != "not measured" {
		t.Errorf("p99 of no samples is %q", got)
	}
	if f.Share() != 1 || f.Left() != 0 {
		t.Errorf("share %v, left %v", f.Share(), f.Left())
	}
}
