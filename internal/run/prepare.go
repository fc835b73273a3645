package run

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"seatrial/fault"
	"seatrial/internal/intake"
	"seatrial/manifest"
	"seatrial/plan"
	"seatrial/traffic"
	"seatrial/traffic/loki"
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
	if cfg.Replay != nil {
		return prep, prep.recording(ctx, cfg, in)
	}
	if m.Load.Source != "none" {
		server, err := logServer(&m.Load.SourceConfig, cfg.Getenv)
		if err != nil {
			return nil, err
		}
		t, err := intake.Read(ctx, intake.Config{Kind: m.Load.Source, Format: m.Load.SourceConfig.Format,
			Paths: m.Load.SourceConfig.Path, Dir: m.Dir, Stdin: cfg.Stdin, Declared: m.Load.Traffic.Routes, Now: cfg.Now(),
			Loki: server})
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

// logServer is what is asked of a log server; its credentials come from the environment. A variable that
// is named and holds nothing is refused (TRF-020).
func logServer(s *manifest.SourceConfig, getenv func(string) string) (loki.Config, error) {
	var missing error
	value := func(name string) string {
		if name == "" {
			return ""
		}
		v := strings.TrimSpace(getenv(name))
		if v == "" {
			missing = fault.New(fault.TRF020, "the environment variable %s, which load.source_config names for the log server, holds nothing", name).
				WithNext("Set it, or take its name out of the manifest.")
		}
		return v
	}
	out := loki.Config{URL: s.URL, Query: s.Query, Since: s.Since, Tenant: s.Tenant, User: value(s.UserEnv),
		Password: loki.Secret(value(s.PasswordEnv)), Bearer: loki.Secret(value(s.BearerEnv)), BatchSize: s.BatchSize}
	if s.Server == "victorialogs" {
		out.Backend = loki.VictoriaLogs
	}
	out.From, out.To = s.Range()
	return out, missing
}

// recording reads a recording for its routes and its length.
func (p *preparation) recording(ctx context.Context, cfg Config, in plan.Input) error {
	r := cfg.Replay
	from := r.Source
	from.NoValues, from.Declared, from.Now = true, cfg.Manifest.Load.Traffic.Routes, cfg.Now()
	t, err := intake.Read(ctx, from)
	if err != nil {
		return err
	}
	p.traffic, in.Source = t, t.Profile
	if in.Replay, err = r.length(t.Profile); err != nil && t.Profile.Requests > 0 {
		return err
	}
	in.Replay = max(in.Replay, 1)
	if name := cfg.Manifest.Load.Traffic.Profile; name != "" {
		if in.Profile, err = readProfile(cfg.Manifest, name, cfg); err != nil {
			return err
		}
	}
	cfg.say("recording: %d requests on %d routes", t.Profile.Requests, len(t.Profile.Routes))
	return p.compile(in)
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
