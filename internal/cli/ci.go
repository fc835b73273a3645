package cli

import (
	"github.com/spf13/cobra"

	"seatrial/fault"
)

func (a *app) ciCommand() *cobra.Command {
	f := &loadFlags{}
	var always bool
	c := &cobra.Command{
		Use:   "ci",
		Short: "Run everything that the manifest enables, for a pipeline",
		Long: `ci runs what the manifest enables: load, when load.enabled is true. --load runs it although
the block is absent or disabled. The environment is taken down whatever happens, and the report
is written after that. Exit: 0 pass, 8 fail, 7 blocked or unverified.`,
		Example: "  seatrial ci\n  seatrial ci --load\n  seatrial ci -o json",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			m, err := a.readManifest(f.overrides(c)...)
			if err != nil {
				return err
			}
			if !m.Load.Enabled && !always {
				return fault.New(fault.GEN006, "the manifest enables nothing: load.enabled is not true").
					WithNext("Set `load.enabled: true`, or run `seatrial ci --load`.")
			}
			return a.loadManifest(c.Context(), m, f, "ci", false)
		},
	}
	f.add(c)
	c.Flags().BoolVar(&always, "load", false, "run load although load.enabled is not true")
	return c
}
