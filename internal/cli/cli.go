// Package cli is the command line: one file per command, and the only place that knows exit numbers.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/spf13/cobra"

	"seatrial/evidence"
	"seatrial/fault"
	"seatrial/manifest"
)

// Version is the version of this build; the release build sets it.
var Version = "dev"

// Process is what the command line needs of its process.
type Process struct {
	Args     []string
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
	Exit     func(int) // ends the process at once, for a second interrupt
}

// app carries the global flags and the process to the commands.
type app struct {
	Process
	dir     string
	output  string
	noColor bool
	quiet   bool
	verbose bool
	runDir  string
	secrets *evidence.Redactor // everything that is told about a failure passes it
	command string             // the load command that runs, for the live view
	engaged *atomic.Bool       // something was begun that an interrupt must end in order
	runs    *[]*evidence.Run   // gathers runs that are printed as one JSON document; nil: each is its own
	// done is the exit that a finished command asks for, when it ended without an error.
	done int
}

// Main runs one command and gives its exit number.
func Main(p Process) int {
	out := &output{w: p.Out}
	a := &app{Process: p, secrets: evidence.NewRedactor(), engaged: &atomic.Bool{}}
	a.Out = out
	ctx, stop := a.interruptible()
	defer stop()
	root := a.root()
	root.SetArgs(p.Args)
	root.SetIn(p.In)
	root.SetOut(out)
	root.SetErr(p.Err)
	err := root.ExecuteContext(ctx)
	if failed := out.failed(); failed != nil {
		return a.unheard(err, failed)
	}
	if err != nil {
		if wantsJSON(p.Args) {
			a.output = "json" // what stands behind an unknown flag was not parsed
		}
		return a.fail(err)
	}
	return a.done
}

// unheard ends a command whose answer did not reach standard output. What the command found out stands,
// unless that was good or nothing.
func (a *app) unheard(err, failed error) int {
	e := fault.New(fault.EVD001, "the answer could not be written to standard output").Because(failed).
		WithNext("Give it somewhere to go, then ask again; a run's evidence is in its folder.")
	_, _ = fmt.Fprint(a.Err, a.errorText(a.clean(e)))
	exit := a.done
	if found := faults(err); len(found) > 0 {
		exit = exitOf(found[0].Kind())
	}
	if exit == exitPass || exit == exitUnproved {
		exit = exitOf(e.Kind())
	}
	return exit
}

// wantsJSON tells whether a command line asks for JSON, however the rest of it reads.
func wantsJSON(args []string) bool {
	for i, arg := range args {
		switch {
		case arg == "--":
			return false
		case arg == "-o=json" || arg == "-ojson" || arg == "--output=json":
			return true
		case (arg == "-o" || arg == "--output") && i+1 < len(args) && args[i+1] == "json":
			return true
		}
	}
	return false
}

// interruptible gives a context that the first interrupt cancels; the second ends the process at
// once, leaving the evidence marked incomplete (SA-4). While there is nothing to lose the first one does:
// a read that waits for a peer cannot be told to stop. A terminal that goes away interrupts too.
func (a *app) interruptible() (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // it is under nohup
		signal.Notify(signals, syscall.SIGHUP)
	}
	stopped := make(chan struct{})
	go func() {
		for n := 0; ; n++ {
			select {
			case <-stopped:
				return
			case <-signals:
				if n > 0 {
					a.Exit(exitCancelled)
				}
				cancel()
				if !a.engaged.Load() {
					a.Exit(a.fail(context.Canceled))
				}
			}
		}
	}()
	return ctx, func() { signal.Stop(signals); close(stopped); cancel() }
}

// engage says that an interrupt has something to end in order from now on.
func (a *app) engage() { a.engaged.Store(true) }

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "seatrial",
		Short: "Production-shaped load that ends in a verdict",
		Long: `Seatrial turns real traffic into a profile, brings your application up, sends it
requests when production would, and answers: pass, fail, blocked or unverified.`,
		Example:       "  seatrial init\n  seatrial traffic record --from access.log\n  seatrial run",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noArgs,
		RunE:          func(c *cobra.Command, _ []string) error { return helpOnly(c) },
		PersistentPreRunE: func(*cobra.Command, []string) error {
			return a.checkGlobals()
		},
	}
	root.SuggestionsMinimumDistance = 2
	f := root.PersistentFlags()
	f.StringVarP(&a.dir, "directory", "C", ".", "run as if started in `DIR`")
	f.StringVarP(&a.output, "output", "o", "text", "`text` or json")
	f.BoolVar(&a.noColor, "no-color", false, "no colours (also: NO_COLOR)")
	f.BoolVarP(&a.quiet, "quiet", "q", false, "print the result only")
	f.BoolVarP(&a.verbose, "verbose", "v", false, "print causes of errors too")
	f.StringVar(&a.runDir, "run-dir", "", "folder of the run folders (default .seatrial/runs)")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usage("%s", strings.TrimSuffix(err.Error(), ".")).WithNext("Run `%s --help`; it ends with a worked example.", c.CommandPath())
	})
	root.AddCommand(a.initCommand(), a.demoCommand(), a.doctorCommand(), a.explainCommand(), a.schemaCommand(),
		a.trafficCommand(), a.envCommand(), a.runCommand(), a.replayCommand(), a.smokeCommand(), a.ciCommand(), a.reportCommand(),
		a.versionCommand(), a.docsCommand())
	root.InitDefaultCompletionCmd()
	return root
}

func (a *app) checkGlobals() error {
	if a.output != "text" && a.output != "json" {
		return usage("the output format %q is not known; it is text or json", a.output)
	}
	dir, err := filepath.Abs(a.dir)
	if err != nil {
		return usage("the folder %q of -C cannot be used", a.dir).Because(err)
	}
	switch info, err := os.Stat(dir); {
	case err != nil:
		return usage("the folder %q of -C does not exist", a.dir).WithNext("Give -C the folder that holds %s.", manifest.File)
	case !info.IsDir():
		return usage("-C wants a folder, and %q is a file", a.dir).WithNext("Give -C the folder that holds %s.", manifest.File)
	}
	a.dir = dir
	a.noColor = a.noColor || a.Getenv("NO_COLOR") != ""
	if a.runDir == "" {
		a.runDir = filepath.Join(a.dir, ".seatrial", "runs")
	}
	return nil
}

func usage(format string, args ...any) *fault.Error { return fault.New(fault.CLI001, format, args...) }

// noArgs refuses arguments with our own words.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if c.HasSubCommands() {
		e := usage("%s has no command %q", c.CommandPath(), args[0])
		if near := c.SuggestionsFor(args[0]); len(near) > 0 {
			e = e.WithNext("Did you mean `%s %s`?", c.CommandPath(), strings.Join(near, "` or `"+c.CommandPath()+" "))
		}
		return e
	}
	return usage("%s takes no argument, and got %q", c.CommandPath(), args[0])
}

// atMost refuses more than n arguments with our own words.
func atMost(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > n {
			return usage("%s takes at most %d argument(s), and got %d", c.CommandPath(), n, len(args))
		}
		return nil
	}
}

// helpOnly is what a command without an action does. Help is text: who asked for JSON has no answer.
func helpOnly(c *cobra.Command) error {
	if out, err := c.Flags().GetString("output"); err == nil && out == "json" {
		return usage("%s needs a command", c.CommandPath()).WithNext("Run `%s --help`.", c.CommandPath())
	}
	return c.Help()
}

// group is a command that only holds others.
func group(use, short, example string, subs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Example: example, Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return helpOnly(c) }}
	c.SuggestionsMinimumDistance = 2
	c.AddCommand(subs...)
	return c
}

func (a *app) json() bool { return a.output == "json" }

func cancelled(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
