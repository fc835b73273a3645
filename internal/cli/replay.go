package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"seatrial/internal/intake"
	"seatrial/internal/run"
	"seatrial/manifest"
	"seatrial/report/figure"
	"seatrial/schedule"
)

// replayFlags are what replay takes besides what every load takes.
type replayFlags struct {
	load     loadFlags
	from     []string
	format   string
	pace     string
	loops    int
	window   string
	limit    uint64
	noSpread bool
	keep     []string
	dryRun   bool
}

// notForReplay are the flags of a load that a recording decides itself.
var notForReplay = map[string]bool{"source": true, "path": true, "scale": true, "rate": true, "duration": true, "warmup": true, "arrivals": true}

func (a *app) replayCommand() *cobra.Command {
	f := &replayFlags{}
	c := &cobra.Command{
		Use:   "replay --from PATH",
		Short: "Send recorded requests again at their recorded times",
		Long: `replay sends each request of a recording when it was recorded: at the same pace, at a multiple of it,
or in phases. The target's origin takes the place of the recorded one; safe_routes and unsafe_routes hold
as everywhere; cookies and credentials of the recording are left out unless they are named. Requests of one
second in a log whose times are whole seconds are spread over it. It ends with the recording, or with
the last phase.`,
		Example: "  seatrial replay --from access.log\n  seatrial replay --from incident.log --pace '1m@1 5m@3' --window 09:00-09:30\n  seatrial replay --from requests.jsonl --dry-run",
		Args:    noArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return a.replay(c, f) },
	}
	f.load.addBut(c, notForReplay)
	c.Flags().StringArrayVar(&f.from, "from", nil, "file or glob `PATH` of the recording; may be given several times")
	c.Flags().StringVar(&f.format, "format", "", "format `F` of the recording; recognised by content unless given")
	c.Flags().StringVar(&f.pace, "pace", "1", "how fast recorded time passes: a `SPEED`, or phases such as '10s@1 5m@5'")
	c.Flags().IntVar(&f.loops, "loop", 1, "send the recording `N` times")
	c.Flags().StringVar(&f.window, "window", "", "send only what was recorded at this time of day, in UTC: `09:00-10:00`")
	c.Flags().Uint64Var(&f.limit, "limit", 0, "send `N` requests at most")
	c.Flags().BoolVar(&f.noSpread, "no-spread", false, "send requests of one and the same time together, as the log has them")
	c.Flags().StringArrayVar(&f.keep, "keep-header", nil, "send the recorded header `NAME` although it may tell who somebody is; may be given several times")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "print what would be sent, and send nothing")
	return c
}

func (a *app) replay(c *cobra.Command, f *replayFlags) error {
	r, err := a.recording(f)
	if err != nil {
		return err
	}
	m, err := a.readManifest(append(f.load.overrides(c), manifest.Override{Path: "load.source", Value: manifest.SourceNone, Flag: "replay"})...)
	if err != nil {
		return err
	}
	cfg := a.runConfig(m, &f.load, "replay")
	cfg.Replay = r
	if f.dryRun {
		return a.dryReplay(c.Context(), cfg)
	}
	return a.do(c.Context(), cfg)
}

// recording checks what says which requests are sent, and when.
func (a *app) recording(f *replayFlags) (*run.Replay, error) {
	if len(f.from) == 0 {
		return nil, usage("replay needs --from: the recording").WithNext("Run `seatrial replay --from access.log`.")
	}
	for _, p := range f.from {
		if p == "-" {
			return nil, usage("replay reads a recording twice, once for its routes, so it takes no standard input").WithNext("Write it to a file first.")
		}
	}
	pace, err := schedule.ParsePace(f.pace)
	if err != nil {
		return nil, usage("--pace: %s", strings.TrimPrefix(err.Error(), "schedule: ")).WithNext("Write a speed such as 2, or phases such as '10s@1 5m@5'.")
	}
	if f.loops < 1 || f.loops > 1_000_000 {
		return nil, usage("--loop must be from 1 to 1000000, not %d", f.loops)
	}
	wanted, err := timeOfDay(f.window)
	if err != nil {
		return nil, err
	}
	return &run.Replay{Source: intake.Config{Replay: true, Paths: f.from, Format: f.format, Dir: a.dir, Wanted: wanted}, Pace: pace, Shown: f.pace, Loops: f.loops, Limit: f.limit,
		Spread: !f.noSpread, Keep: f.keep}, nil
}

// timeOfDay reads a window such as 09:00-10:00, which may reach over midnight; nil without one.
func timeOfDay(text string) (func(int64) bool, error) {
	if text == "" {
		return nil, nil
	}
	from, to, ok := strings.Cut(text, "-")
	a, errA := clockTime(from)
	b, errB := clockTime(to)
	if !ok || errA != nil || errB != nil || a == b {
		return nil, usage("--window: %q is not a window of the day", text).WithNext("Write one such as 09:00-10:00; the times are UTC.")
	}
	return func(at int64) bool {
		t := time.Duration(at) % (24 * time.Hour)
		if a < b {
			return t >= a && t < b
		}
		return t >= a || t < b
	}, nil
}

func clockTime(text string) (time.Duration, error) {
	for _, layout := range []string{"15:04", "15:04:05"} {
		if t, err := time.Parse(layout, strings.TrimSpace(text)); err == nil {
			return t.Sub(t.Truncate(24 * time.Hour)), nil
		}
	}
	return 0, fmt.Errorf("cli: %q is no time of day", text)
}

// dryReplay prints what would be sent, route by route, and when.
func (a *app) dryReplay(ctx context.Context, cfg run.Config) error {
	d, err := run.DryReplay(ctx, cfg)
	if err != nil {
		return err
	}
	if a.json() {
		a.printJSON(d)
		return nil
	}
	return printDryReplay(a.Out, d)
}

func printDryReplay(w io.Writer, d *run.Dry) error {
	var b strings.Builder
	fmt.Fprintf(&b, "would send %s in %s at pace %s\n\n", figure.Counted(d.Counts.Sent, "request"), figure.Duration(d.Length), d.Pace)
	for _, r := range d.Routes {
		fmt.Fprintf(&b, "  %9s  %s\n", figure.Count(r.Requests), r.Name)
	}
	for _, h := range d.Withheld() {
		fmt.Fprintf(&b, "  %9s  held back: %s\n", figure.Count(h.Requests), h.Name)
	}
	if d.Counts.Untimed > 0 {
		fmt.Fprintf(&b, "  %9s  without a time: not sent\n", figure.Count(d.Counts.Untimed))
	}
	b.WriteString("\nrate, requests in each " + figure.Duration(d.Step) + "\n")
	for _, n := range d.Curve {
		fmt.Fprintf(&b, "  %9s  %s\n", figure.Count(n), strings.Repeat("#", int(40*n/max(1, d.Peak()))))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
