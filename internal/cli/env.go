package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"seatrial/fault"
	"seatrial/internal/env"
	"seatrial/internal/run"
)

func (a *app) envCommand() *cobra.Command {
	return group("env", "Bring environments up and down", "  seatrial env up\n  seatrial env list\n  seatrial env down",
		a.envUp(), a.envDown(), a.envList(), a.envLogs(), a.envPrune())
}

func (a *app) envUp() *cobra.Command {
	var name, revision string
	var ttl time.Duration
	c := &cobra.Command{
		Use: "up", Short: "Build and start the manifest's services, and leave them up",
		Long: `up builds and starts every service of the manifest, each on a free port, and waits until its
health path answers. The environment stays up until env down. run --env NAME sends load at it.`,
		Example: "  seatrial env up\n  seatrial env up --name shop --ttl 2h",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			m, err := a.readManifest()
			if err != nil {
				return err
			}
			a.engage()
			e, err := run.Bring{Manifest: m, Name: nameOr(name, m.Name), Revision: revision, Keep: true, TTL: ttl, Out: a.progress()}.Up(c.Context())
			if err != nil {
				return err
			}
			if err := e.Release(); err != nil {
				return err
			}
			if a.json() {
				a.printJSON(e.Info())
				return nil
			}
			return printEnvironments(a.Out, []env.Info{e.Info()})
		},
	}
	c.Flags().StringVar(&name, "name", "", "`NAME` of the environment (default: the manifest's name)")
	c.Flags().StringVar(&revision, "revision", "", "build and start revision `REV` of this repository instead of the working tree")
	c.Flags().DurationVar(&ttl, "ttl", 0, "env prune removes it after `D`, e.g. 2h")
	return c
}

func nameOr(name, fallback string) string {
	if name != "" {
		return name
	}
	return fallback
}

func (a *app) envDown() *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use: "down [NAME]", Short: "Take an environment down, in reverse order",
		Long: `down stops everything that the environment's journal names, in reverse, does not stop at the
first failure, and says what is left. Without a name it takes the only environment.`,
		Example: "  seatrial env down\n  seatrial env down shop\n  seatrial env down --all",
		Args:    atMost(1),
		RunE: func(c *cobra.Command, args []string) error {
			names, err := a.environments(args, all)
			if err != nil {
				return err
			}
			return a.takeDown(c, names)
		},
	}
	c.Flags().BoolVar(&all, "all", false, "every environment of this folder")
	return c
}

// environments gives the names that a command means: those given, all, or the only one.
func (a *app) environments(args []string, all bool) ([]string, error) {
	if len(args) > 0 {
		return args, nil
	}
	list, err := env.List(a.dir)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(list))
	for i, e := range list {
		names[i] = e.Name
	}
	if !all && len(names) > 1 {
		return nil, usage("there are %d environments, and none was named", len(names)).
			WithNext("Name one, or give --all; `seatrial env list` shows them.")
	}
	return names, nil
}

func (a *app) takeDown(c *cobra.Command, names []string) error {
	a.engage()
	var failed error
	for _, name := range names {
		if err := run.Down(c.Context(), a.dir, name); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		if !a.json() && !a.quiet {
			_, _ = fmt.Fprintf(a.Out, "%s is down\n", name)
		}
	}
	if failed != nil {
		return failed
	}
	if a.json() {
		if names == nil {
			names = []string{}
		}
		a.printJSON(map[string]any{"down": names})
	} else if len(names) == 0 && !a.quiet {
		_, _ = fmt.Fprintln(a.Out, "no environment is up")
	}
	return nil
}

func (a *app) envList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the environments of this folder, leftovers too",
		Long:    "list prints every environment of the ledger. A leftover is one whose Seatrial process was killed.",
		Example: "  seatrial env list\n  seatrial env list -o json",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			list, err := env.List(a.dir)
			if err != nil {
				return err
			}
			if a.json() {
				if list == nil {
					list = []env.Info{}
				}
				a.printJSON(list)
				return nil
			}
			return printEnvironments(a.Out, list)
		},
	}
}

func (a *app) envLogs() *cobra.Command {
	var name, service string
	var follow bool
	c := &cobra.Command{
		Use: "logs [SERVICE]", Short: "Print what the services of an environment wrote",
		Example: "  seatrial env logs\n  seatrial env logs api --follow",
		Args:    atMost(1),
		RunE: func(c *cobra.Command, args []string) error {
			if a.json() {
				return usage("logs are text as the services wrote it, and have no JSON form")
			}
			if len(args) == 1 {
				service = args[0]
			}
			var given []string
			if name != "" {
				given = []string{name}
			}
			names, err := a.environments(given, false)
			if err != nil {
				return err
			}
			if len(names) == 0 {
				return fault.New(fault.ENV005, "no environment is up in this folder").
					WithNext("Run `seatrial env up`, or give --name for one that has gone.")
			}
			_, _ = a.readManifest() // for the secrets that the services were told; it may have gone
			a.engage()
			out := a.secrets.Writer(a.forEyes())
			return errors.Join(env.Logs(c.Context(), a.dir, names[0], service, follow, out), out.Close())
		},
	}
	c.Flags().StringVar(&name, "name", "", "`NAME` of the environment (default: the only one)")
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on printing until interrupted")
	return c
}

func (a *app) envPrune() *cobra.Command {
	return &cobra.Command{
		Use: "prune", Short: "Remove leftovers and environments past their time",
		Long:    "prune takes down what a killed process left, and what is older than its --ttl.",
		Example: "  seatrial env prune",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			a.engage()
			gone, err := run.Prune(c.Context(), a.dir)
			if a.json() {
				if gone == nil {
					gone = []string{}
				}
				a.printJSON(map[string]any{"removed": gone})
				return err
			}
			for _, name := range gone {
				_, _ = fmt.Fprintf(a.Out, "%s removed\n", name)
			}
			return err
		},
	}
}

// forEyes is standard output, without what would steer it where it is a terminal. Into a file or a pipe
// goes what was written.
func (a *app) forEyes() io.Writer {
	if f, ok := a.Out.(*os.File); ok && isTerminal(f) {
		return harmless{a.Out}
	}
	return a.Out
}

type harmless struct{ to io.Writer }

// Write implements io.Writer. A character that two writes share loses its parts.
func (h harmless) Write(b []byte) (int, error) {
	if _, err := io.WriteString(h.to, env.Harmless(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}
