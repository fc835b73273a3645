package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"seatrial/evidence"
	"seatrial/fault"
)

func (a *app) reportCommand() *cobra.Command {
	return group("report", "List and show runs", "  seatrial report list\n  seatrial report show",
		a.reportList(), a.reportShow())
}

func (a *app) reportList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the runs, newest first",
		Long:    "list prints every run folder with its verdict; one that a crash cut short says incomplete.",
		Example: "  seatrial report list\n  seatrial report list -o json",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			runs, err := evidence.List(a.runDir)
			if err != nil {
				return err
			}
			if a.json() {
				a.printJSON(listed(runs))
				return nil
			}
			return printRuns(a.Out, runs)
		},
	}
}

func (a *app) reportShow() *cobra.Command {
	var format string
	c := &cobra.Command{
		Use: "show [RUN]", Short: "Show one run: the newest, or the one named by its folder or a prefix",
		Long: `show prints the final page of a run. Of a run that a crash cut short it says what is missing,
and exits 7.`,
		Example: "  seatrial report show\n  seatrial report show 20260501T101500Z-run-1a2b3c --format markdown",
		Args:    atMost(1),
		RunE: func(c *cobra.Command, args []string) error {
			if a.json() && c.Flags().Changed("format") {
				return usage("-o json prints run.json, and --format asks for another form").WithNext("Give one or the other.")
			}
			name := "latest"
			if len(args) == 1 {
				name = args[0]
			}
			return a.showRun(name, format)
		},
	}
	c.Flags().StringVar(&format, "format", "text", "form `F`: text, markdown, html, junit, csv or series")
	return c
}

func (a *app) showRun(name, format string) error {
	f, err := evidence.Load(a.runDir, name)
	if err != nil {
		return err
	}
	if a.json() {
		a.printJSON(f.Run)
	} else if err := a.render(f.Run, f.Dir, format); err != nil {
		return err
	}
	if f.Problem == nil {
		return nil
	}
	if a.json() {
		a.done = exitOf(f.Problem.Kind()) // one document on standard output: it says that it is incomplete
		return nil
	}
	return f.Problem
}

// listedRun is one run of report list -o json.
type listedRun struct {
	Run     *evidence.Run `json:"run"`
	Folder  string        `json:"folder"`
	Missing []string      `json:"missing,omitempty"`
}

func listed(runs []evidence.Folder) []listedRun {
	out := make([]listedRun, len(runs))
	for i, f := range runs {
		out[i] = listedRun{Run: f.Run, Folder: f.Dir, Missing: f.Missing}
	}
	return out
}

func (a *app) render(r *evidence.Run, folder, format string) error {
	if format == "text" {
		return a.printRun(r, folder)
	}
	file, ok := map[string]string{"markdown": "report.md", "html": "report.html", "junit": "junit.xml",
		"csv": "summary.csv", "series": "series.csv"}[format]
	if !ok {
		return usage("the format %q is not known; it is text, markdown, html, junit, csv or series", format)
	}
	f, err := os.Open(filepath.Join(folder, file))
	if err != nil {
		return fault.New(fault.EVD003, "the run %s has no %s", r.ID, file).Because(err)
	}
	defer func() { _ = f.Close() }()
	if _, err := io.Copy(a.Out, f); err != nil {
		return fmt.Errorf("print %s: %w", file, err)
	}
	return nil
}
