package run

import (
	"context"
	"fmt"
	"path/filepath"

	"seatrial/fault"
	"seatrial/internal/intake"
	"seatrial/manifest"
	"seatrial/plan"
	"seatrial/traffic"
)

// preparation is everything that is decided before anything is started.
type preparation struct {
	plan    *plan.Plan
	traffic *intake.Traffic // nil under source none
	nothing *fault.Error    // why no route is left to send (LOD-013); then the plan has none
}

func prepare(ctx context.Context, cfg Config) (*preparation, error) {
	m := cfg.Manifest
	in := plan.Input{Manifest: m, Smoke: cfg.Smoke, Command: cfg.Command, Now: cfg.Now(), Getenv: cfg.Getenv}
	prep := &preparation{}
	if m.Load.Source != "none" {
		t, err := intake.Read(ctx, intake.Config{Kind: m.Load.Source, Format: m.Load.SourceConfig.Format,
			Paths: m.Load.SourceConfig.Path, Dir: m.Dir, Stdin: cfg.Stdin, Declared: m.Load.Traffic.Routes, Now: cfg.Now()})
		if err != nil {
			return nil, err
		}
		prep.traffic = t
		in.Source, in.Observed = t.Profile, t.Observed
		cfg.say("traffic: %d requests on %d routes from %s", t.Profile.Requests, len(t.Profile.Routes), m.Load.Source)
	}
	if p := m.Load.Traffic.Profile; p != "" {
		profile, err := readProfile(m, p, cfg)
		if err != nil {
			return nil, err
		}
		in.Profile = profile
	}
	return prep, prep.compile(in)
}

func readProfile(m *manifest.Manifest, path string, cfg Config) (*traffic.Profile, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(m.Dir, path)
	}
	return traffic.ReadProfileFile(path, cfg.Now(), m.Load.Traffic.MaxAge)
}

// compile makes the plan. That no route is left is a run's outcome, not a refusal (TR-9).
func (p *preparation) compile(in plan.Input) error {
	compiled, err := plan.Compile(in)
	if e, ok := fault.As(err); ok && e.Code == fault.LOD013 {
		p.nothing, p.plan = e, compiled
		return nil
	}
	if err != nil {
		return err
	}
	p.plan = compiled
	if p.traffic != nil && p.traffic.Warning != "" {
		p.plan.Warnings = append(p.plan.Warnings, p.traffic.Warning)
	}
	return nil
}

func (cfg Config) say(format string, args ...any) {
	if cfg.Progress != nil {
		_, _ = fmt.Fprintf(cfg.Progress, format+"\n", args...)
	}
}
