package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"seatrial/evidence"
	"seatrial/fault"
	"seatrial/internal/run"
	"seatrial/internal/watch"
	"seatrial/internal/watch/tui"
	"seatrial/manifest"
	"seatrial/report"
)

// loadFlags are the flags that run, smoke and ci share. Each that is set overrides the manifest.
type loadFlags struct {
	values   map[string]*string // flag name -> value
	url      string
	env      string
	keep     bool
	insecure bool
	rev      string
	slices   int
}

// overriding maps a flag to the manifest key that it overrides, with its help.
var overriding = []struct{ flag, key, help string }{
	{"source", "load.source", "`NAME`: otel, access_log, loki or none"},
	{"path", "load.source_config.path", "`PATH`: file or glob of the source, - for standard input"},
	{"scale", "load.scale", "`X`: share of production's rate to send"},
	{"rate", "load.rate", "`N/s`: rate to send, instead of production's rate x scale"},
	{"duration", "load.duration", "`D`: how long to measure, e.g. 30s"},
	{"warmup", "load.warmup", "`D`: sent before it and not judged"},
	{"arrivals", "load.arrivals", "`KIND`: poisson, even or bursty"},
	{"engine", "load.engine", "`NAME`: auto, loop or portable"},
	{"http", "load.http", "`VERSION`: auto, 1.1, 2, 2-prior-knowledge or 3"},
	{"seed", "load.seed", "`N`: seed of the schedule and of all choices"},
	{"timeout", "load.timeout", "`D`: per request, from its due time"},
	{"max-connections", "load.max_connections", "`N`: connections open at once"},
	{"target", "load.target", "`NAME`: a name under services or targets"},
}

func (f *loadFlags) add(c *cobra.Command) { f.addBut(c, nil) }

// addBut adds the flags but for some of those that override the manifest.
func (f *loadFlags) addBut(c *cobra.Command, without map[string]bool) {
	f.values = map[string]*string{}
	for _, o := range overriding {
		if without[o.flag] {
			continue
		}
		f.values[o.flag] = c.Flags().String(o.flag, "", fmt.Sprintf("%s (overrides %s)", o.help, o.key))
	}
	c.Flags().StringVar(&f.url, "url", "", "send at `URL`; it must belong to an environment or be listed under targets")
	c.Flags().StringVar(&f.env, "env", "", "send at environment `NAME`, which is up already")
	c.Flags().StringVar(&f.rev, "revision", "", "bring revision `REV` of this repository up instead of the working tree")
	c.Flags().BoolVar(&f.insecure, "insecure", false, "accept any certificate of the target; the report says so (overrides load.tls.insecure)")
	c.Flags().BoolVar(&f.keep, "keep", false, "leave the environment up afterwards")
	c.Flags().IntVar(&f.slices, "slices", 0, "workers inside this process, 0: as many as the engine wants; the sequence sent is the same for any number")
	_ = c.Flags().MarkHidden("slices")
}

func (f *loadFlags) overrides(c *cobra.Command) []manifest.Override {
	var out []manifest.Override
	for _, o := range overriding {
		if f.values[o.flag] != nil && c.Flags().Changed(o.flag) {
			out = append(out, manifest.Override{Path: o.key, Value: *f.values[o.flag], Flag: "--" + o.flag})
		}
	}
	if c.Flags().Changed("insecure") {
		out = append(out, manifest.Override{Path: "load.tls.insecure", Value: strconv.FormatBool(f.insecure), Flag: "--insecure"})
	}
	return out
}

func (a *app) runCommand() *cobra.Command {
	f := &loadFlags{}
	c := &cobra.Command{
		Use:   "run",
		Short: "Send production-shaped load and judge it",
		Long: `run derives the mix and the rate from the manifest's load source, brings the environment
up (unless one is named), sends open-loop for the duration, judges every declared limit, takes
the environment down and writes the report. Exit: 0 pass, 8 fail, 7 unverified.`,
		Example: "  seatrial run\n  seatrial run --scale 0.1 --duration 30s\n  seatrial run --env shop --rate 200/s",
		Args:    noArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return a.load(c, f, "run", false) },
	}
	f.add(c)
	return c
}

func (a *app) smokeCommand() *cobra.Command {
	f := &loadFlags{}
	c := &cobra.Command{
		Use:   "smoke",
		Short: "A short run: 10 s at a tenth of production's rate, where a 4xx is an error",
		Long: `smoke is a run of 10 s at scale 0.1 without warm-up. Under source none it sends the literal
GET and HEAD routes of safe_routes, each at least once. A page that you named must exist: 4xx
answers are errors.`,
		Example: "  seatrial smoke\n  seatrial smoke --source none",
		Args:    noArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return a.load(c, f, "smoke", true) },
	}
	f.add(c)
	return c
}

func (a *app) load(c *cobra.Command, f *loadFlags, command string, smoke bool) error {
	m, err := a.readManifest(f.overrides(c)...)
	if err != nil {
		return err
	}
	return a.loadManifest(c.Context(), m, f, command, smoke)
}

func (a *app) loadManifest(ctx context.Context, m *manifest.Manifest, f *loadFlags, command string, smoke bool) error {
	cfg := a.runConfig(m, f, command)
	cfg.Smoke = smoke
	return a.do(ctx, cfg)
}

func (a *app) runConfig(m *manifest.Manifest, f *loadFlags, command string) run.Config {
	return run.Config{
		Dir: a.dir, Manifest: m, Command: command, RunRoot: a.runDir, Version: Version,
		Reproduce: a.reproduce(), URL: f.url, Env: f.env, Keep: f.keep, Revision: f.rev, Slices: f.slices, Stdin: a.In,
		Progress: a.progress(), Watch: a.watch, Now: time.Now, Getenv: a.Getenv, Engaged: a.engage,
	}
}

// do makes a run and prints its final page.
func (a *app) do(ctx context.Context, cfg run.Config) error {
	a.command = cfg.Command
	res, err := run.Do(ctx, cfg)
	if err != nil {
		return err
	}
	return a.finish(res)
}

// finish prints the final page and sets the exit number.
func (a *app) finish(res *run.Result) error {
	a.done = max(a.done, 0)
	if exit := worst(res.Kinds); worseThan(exit, a.done) {
		a.done = exit
	}
	if a.json() {
		if a.runs != nil {
			*a.runs = append(*a.runs, res.Run)
		} else {
			a.printJSON(res.Run)
		}
		return summaryForCI(a.Getenv, res.Run)
	}
	if err := a.printRun(res.Run, res.Folder); err != nil {
		return fault.New(fault.EVD001, "the final page could not be printed").Because(err)
	}
	return summaryForCI(a.Getenv, res.Run)
}

// printRun is the final page; with -q its first sentence only.
func (a *app) printRun(r *evidence.Run, folder string) error {
	if a.quiet {
		_, err := fmt.Fprintln(a.Out, r.Sentence)
		return err
	}
	return report.Text(report.TextOptions{Color: a.colour(a.Out), Folder: a.shown(folder)})(a.Out, r)
}

// worseThan orders two exit numbers by precedence.
func worseThan(a, b int) bool {
	rank := func(x int) int {
		for i, e := range inRun {
			if e == x {
				return i
			}
		}
		return len(inRun)
	}
	return rank(a) < rank(b)
}

// summaryForCI appends the Markdown report where a CI system asks for it.
func summaryForCI(getenv func(string) string, r *evidence.Run) error {
	path := getenv("GITHUB_STEP_SUMMARY")
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		err = report.Markdown(f, r)
		if e := f.Close(); err == nil {
			err = e
		}
	}
	if err != nil {
		return fault.New(fault.EVD001, "the step summary could not be written").Because(err)
	}
	return nil
}

// progress is where preparing lines go: standard error, so that output stays clean.
func (a *app) progress() io.Writer {
	if a.quiet || a.json() {
		return nil
	}
	return a.Err
}

// watch chooses the live view: a terminal page, or one line every 10 s.
func (a *app) watch() watch.Watcher {
	if a.quiet || a.json() {
		return nil
	}
	if f, ok := a.Err.(*os.File); ok && isTerminal(f) {
		return tui.New(tui.Config{Out: f, Command: a.command, Color: a.colour(a.Err), Environ: os.Environ()})
	}
	return watch.Plain(a.Err)
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

func (a *app) colour(w io.Writer) bool {
	f := file(w)
	return f != nil && !a.noColor && isTerminal(f)
}

// shown is a path as people want it: relative to where they are, when that is shorter.
func (a *app) shown(path string) string {
	wd, err := os.Getwd()
	if err != nil {
		return path
	}
	if rel, ok := strings.CutPrefix(path, wd+string(os.PathSeparator)); ok {
		return rel
	}
	return path
}

// reproduce is the command line as given, quoted for a shell.
func (a *app) reproduce() string {
	out := "seatrial"
	for _, arg := range a.Args {
		out += " " + shellQuote(arg)
	}
	return out
}

func shellQuote(s string) string {
	plain := func(r rune) bool {
		return r == '-' || r == '_' || r == '.' || r == '/' || r == ':' || r == '=' || r == ',' || r == '@' || r == '+' ||
			('0' <= r && r <= '9') || ('a' <= r && r <= 'z') || ('A' <= r && r <= 'Z')
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
