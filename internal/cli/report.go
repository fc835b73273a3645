package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"seatrial/evidence"
	"seatrial/fault"
	"seatrial/report"
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
				a.printJSON(runs)
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
		RunE: func(_ *cobra.Command, args []string) error {
			name := "latest"
			if len(args) == 1 {
				name = args[0]
			}
			return a.showRun(name, format)
		},
	}
	c.Flags().StringVar(&format, "format", "text", "text, markdown, html, junit, csv or series: `F`")
	return c
}

func (a *app) showRun(name, format string) error {
	r, folder, err := evidence.Load(a.runDir, name)
	if err != nil {
		return err
	}
	if a.json() {
		a.printJSON(r)
	} else if err := a.render(r, folder, format); err != nil {
		return err
	}
	if !r.Complete {
		missing := evidence.Missing(folder)
		return fault.New(fault.EVD003, "the run %s is incomplete: it ended before its report was written", r.ID).
			WithDetail(missing)
	}
	return nil
}

func (a *app) render(r *evidence.Run, folder, format string) error {
	if format == "text" {
		return report.Text(a.Out, r, report.TextOptions{Color: a.colour(a.Out), Quiet: a.quiet, Folder: a.shown(folder)})
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
