package cli

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"seatrial/evidence"
	"seatrial/examples"
	"seatrial/fault"
	"seatrial/manifest"
)

// demoParts are the runs of the demo: the folder of each manifest below the example's, what it
// shows, and how long it measures so that all of it fits in a minute.
var demoParts = []struct{ folder, shows, duration, warmup string }{
	{".", "a trace export of a shop: its mix, its rate, and its own p95 as the baseline", "15s", "2s"},
	{"storefront", "an access log of another shop: its mix and its rate; a log line carries no duration", "8s", "1s"},
}

func (a *app) demoCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "demo", Short: "The main job on bundled real traffic; needs only Go",
		Long: `demo builds the example shop, brings it up, sends it the shape of a bundled real trace export
and of a bundled real access log, and ends each with a verdict and a report. Outside a clone of
Seatrial it first writes the example to ./seatrial-demo.`,
		Example: "  seatrial demo",
		Args:    noArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return a.demo(c.Context()) },
	}
	return c
}

func (a *app) demo(ctx context.Context) error {
	if _, err := exec.LookPath("go"); err != nil {
		return fault.New(fault.ENV002, "the demo builds its example with Go, and there is no go command").
			WithNext("Install Go, or run `seatrial init` in your own project.")
	}
	dir, err := a.exampleDir()
	if err != nil {
		return err
	}
	runs := []*evidence.Run{}
	for i, part := range demoParts {
		a.say("demo %d of %d: %s\n", i+1, len(demoParts), part.shows)
		m, err := manifest.Read(filepath.Join(dir, part.folder),
			manifest.Override{Path: "load.duration", Value: part.duration, Flag: "--duration"},
			manifest.Override{Path: "load.warmup", Value: part.warmup, Flag: "--warmup"})
		if err != nil {
			return err
		}
		here := *a
		here.dir, here.runs = m.Dir, &runs
		err = here.loadManifest(ctx, m, &loadFlags{}, "demo", false)
		if worseThan(here.done, a.done) {
			a.done = here.done
		}
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			break // interrupted: the report of that part says so
		}
	}
	if a.json() {
		a.printJSON(runs)
	}
	a.say("\nThe runs are in %s; open report.html of either in a browser.\nNext: `seatrial init` in your own project.\n", a.shown(a.runDir))
	return nil
}

// say prints a line that -q and -o json leave out.
func (a *app) say(format string, args ...any) {
	if !a.quiet && !a.json() {
		_, _ = fmt.Fprintf(a.Out, format, args...)
	}
}

// exampleDir is the example of this clone, or a copy of it that is written here.
func (a *app) exampleDir() (string, error) {
	own := filepath.Join(a.dir, "examples", "chandlery")
	if _, err := os.Stat(filepath.Join(own, manifest.File)); err == nil {
		return own, nil
	}
	to := filepath.Join(a.dir, "seatrial-demo")
	err := fs.WalkDir(examples.Chandlery, "chandlery", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		out := filepath.Join(to, strings.TrimPrefix(path, "chandlery"))
		if d.IsDir() {
			return os.MkdirAll(out, 0o755)
		}
		b, err := examples.Chandlery.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(out, b, 0o644)
	})
	if err == nil {
		err = os.WriteFile(filepath.Join(to, "go.mod"), []byte("module chandlery\n\ngo 1.26\n"), 0o644)
	}
	if err != nil {
		return "", fault.New(fault.EVD001, "the example could not be written to %s", a.shown(to)).Because(err)
	}
	return to, nil
}
