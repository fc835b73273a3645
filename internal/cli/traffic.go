package cli

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"seatrial/fault"
	"seatrial/internal/intake"
	"seatrial/internal/run"
	"seatrial/manifest"
	"seatrial/traffic"
)

func (a *app) trafficCommand() *cobra.Command {
	return group("traffic", "Record and show what production serves",
		"  seatrial traffic record --from access.log\n  seatrial traffic show",
		a.trafficRecord(), a.trafficMerge(), a.trafficShow(), a.trafficConvert())
}

const (
	profilePath = ".seatrial/traffic.json"
	partialPath = ".seatrial/partials/traffic.json"
)

type recordFlags struct {
	from    []string
	format  string
	out     string
	routes  []string
	partial bool
	salt    string
}

func (a *app) trafficRecord() *cobra.Command {
	f := &recordFlags{}
	c := &cobra.Command{
		Use:   "record --from PATH",
		Short: "Count what production served and write a profile to commit",
		Long: `record reads OTLP trace exports (JSON or protobuf) or access logs (those of the
usual servers, as text or JSON, see docs/log-formats.md; plain, gzip or zstd) and writes routes, weights, rates and baselines. It keeps no query string, no
header, no address and no identifier, and opens no socket.

With --partial it writes what it counted instead, for ` + "`seatrial traffic merge`" + `: record each part of a
large log where it lies, all under one --salt-file, and merge the parts into one profile. A
partial is not for committing: rare names that the whole may show to be values stand in it.`,
		Example: "  seatrial traffic record --from telemetry/traces.json\n  zcat logs/*.gz | seatrial traffic record --from -\n" +
			"  seatrial traffic record --from monday.log --partial --salt-file salt --out monday.json",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.record(c, f) },
	}
	c.Flags().StringArrayVar(&f.from, "from", nil, "file or glob `PATH`, - for standard input; may be given several times")
	c.Flags().StringVar(&f.format, "format", "", "format `F`: otel, a name of docs/log-formats.md such as combined, caddy or alb, or the format string of NGINX or Apache; recognised by content unless given")
	c.Flags().StringVar(&f.out, "out", "", "`PATH` that the profile goes to (default "+profilePath+"; with --partial "+partialPath+")")
	c.Flags().BoolVar(&f.partial, "partial", false, "write a part to be merged, not a profile")
	c.Flags().StringVar(&f.salt, "salt-file", "", "`PATH` of a secret that all parts share, of 16 bytes or more; values are hashed under it")
	c.Flags().StringArrayVar(&f.routes, "route", nil, "path template `T` that wins over shape and cardinality, e.g. '/shop/{category}/{slug}'; may be given several times")
	return c
}

func (a *app) record(c *cobra.Command, f *recordFlags) error {
	if len(f.from) == 0 {
		return usage("traffic record needs --from: the file that production wrote").
			WithNext("Run `seatrial traffic record --from access.log`.")
	}
	salt, err := a.salt(f)
	if err != nil {
		return err
	}
	for _, r := range f.routes {
		if _, err := traffic.NewBuilder(traffic.BuilderConfig{Declared: []string{r}}); err != nil {
			return usage("--route: %q is no path template", r).
				WithNext("Write a path such as '/shop/{category}/{slug}', with a method in front if it is for that one only.")
		}
	}
	routes := slices.Clone(f.routes)
	if m, err := a.readManifest(); err == nil {
		routes = append(routes, m.Load.Traffic.Routes...)
	} else if e, ok := fault.As(err); !ok || e.Code != fault.MAN001 {
		return err
	}
	kind, format := "", f.format
	if format == "otel" || format == "otlp" {
		kind, format = "otel", ""
	}
	cfg := intake.Config{Kind: kind, Format: format, Paths: f.from, Dir: a.dir, Stdin: a.In, Declared: routes, NoValues: true, Salt: salt, Now: time.Now()}
	if f.partial {
		return a.recordPartial(c.Context(), cfg, cmp.Or(f.out, partialPath))
	}
	t, err := intake.Read(c.Context(), cfg)
	if err != nil {
		return err
	}
	return a.keepProfile(t, cmp.Or(f.out, profilePath), false)
}

// keepProfile writes a profile and tells of it.
func (a *app) keepProfile(t *intake.Traffic, out string, merged bool) error {
	r := recordedTraffic{Skips: t.Skips, Profile: t.Profile, Warning: t.Warning, merged: merged}
	if t.Profile.Requests > 0 { // a profile of nothing must not replace one of something
		r.Path = out
		if out == profilePath {
			run.Ignore(a.dir)
		}
		if err := t.Profile.WriteFile(a.at(out)); err != nil {
			return fault.New(fault.EVD001, "the profile %s could not be written", out).Because(err)
		}
	}
	if a.json() {
		a.printJSON(r)
		return nil
	}
	return printRecorded(a.Out, r)
}

// recordedTraffic is the JSON answer of traffic record.
type recordedTraffic struct {
	Path    string           `json:"path"` // empty: nothing was written, since no request was counted
	Warning string           `json:"warning,omitempty"`
	Skips   *traffic.Skips   `json:"read"`
	Profile *traffic.Profile `json:"profile"`
	merged  bool
}

func (a *app) at(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(a.dir, path)
}

func (a *app) trafficShow() *cobra.Command {
	var path string
	c := &cobra.Command{
		Use:   "show",
		Short: "Print what production serves, and which of it the manifest's safe_routes reach",
		Long: `show prints the recorded profile, busiest route first, marks each route that the current
safe_routes reach, states the share of requests reached, and prints the safe_routes lines that
would cover the rest. It prints them and writes nothing.`,
		Example: "  seatrial traffic show\n  seatrial traffic show --profile old.json",
		Args:    noArgs,
		RunE:    func(*cobra.Command, []string) error { return a.show(path) },
	}
	c.Flags().StringVar(&path, "profile", "", "`PATH` of the profile to show (default: the manifest's load.traffic.profile, else "+profilePath+")")
	return c
}

func (a *app) show(path string) error {
	var load manifest.Load
	m, err := a.readManifest()
	switch e, ok := fault.As(err); {
	case err == nil:
		load = m.Load
	case !ok || e.Code != fault.MAN001:
		return err
	}
	if path == "" {
		path = load.Traffic.Profile
	}
	if path == "" {
		path = profilePath
	}
	profile, err := traffic.ReadProfileFile(a.at(path), time.Now(), load.Traffic.MaxAge)
	if err != nil {
		return err
	}
	policy, err := traffic.NewPolicy(load.SafeRoutes, load.UnsafeRoutes)
	if err != nil {
		return err
	}
	cover := traffic.Cover(profile, policy)
	if a.json() {
		a.printJSON(cover)
		return nil
	}
	return printCoverage(a.Out, profile, cover, policy.SingleStarWarnings(profile))
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{Use: "version", Short: "Print the version", Example: "  seatrial version", Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			if a.json() {
				a.printJSON(map[string]string{"version": Version})
				return nil
			}
			_, err := fmt.Fprintln(a.Out, "seatrial "+strings.TrimPrefix(Version, "v"))
			return err
		}}
}
