package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"

	"seatrial/engine"
	"seatrial/engine/httpload"
	"seatrial/evidence"
	"seatrial/fault"
	"seatrial/internal/consent"
	"seatrial/internal/env"
	"seatrial/internal/env/process"
	"seatrial/plan"
)

// aim is where a run sends, and what it brought up for that.
type aim struct {
	target  engine.Target
	env     *env.Environment // nil for an admitted target
	own     bool             // this run brought env up and takes it down
	notice  string           // what the page must state about an admitted target
	service string
	dir     string // the manifest's folder
	release func() // lets an admitted target go; nil for an environment
}

// takeAim admits the target: a URL, an admitted target of the manifest, an environment that is up,
// or one that it brings up. Nothing else can be aimed at (SA-1).
func takeAim(ctx context.Context, cfg Config, prep *preparation) (*aim, error) {
	if cfg.URL != "" {
		ledger := env.Ledger{Dir: cfg.Dir, Provider: process.Provider{}}
		t, notice, err := consent.AdmitURL(ctx, cfg.URL, cfg.Manifest.Targets, net.DefaultResolver, ledger)
		if err != nil {
			return nil, err
		}
		return admitted(cfg, prep, t, string(notice))
	}
	name, err := cfg.targetName()
	if err != nil {
		return nil, err
	}
	if t, ok := cfg.Manifest.Targets[name]; ok {
		target, notice, err := consent.Admit(ctx, name, t, net.DefaultResolver)
		if err != nil {
			return nil, err
		}
		return admitted(cfg, prep, target, string(notice))
	}
	return aimAtEnvironment(ctx, cfg, name)
}

// admitted aims at an admitted target, for this run alone.
func admitted(cfg Config, prep *preparation, t engine.Target, notice string) (*aim, error) {
	if err := checkRate(t, prep); err != nil {
		return nil, err
	}
	base := t.Base()
	place := base.Scheme + "://" + base.Host
	if path := t.Unix(); path != "" {
		place = "unix://" + path
	}
	release, err := env.HoldTarget(cfg.Dir, place)
	if err != nil {
		return nil, err
	}
	return &aim{target: t, notice: notice, release: release}, nil
}

// checkFlags refuses flags that would be passed over in silence: what is said of an environment means
// nothing for a target that Seatrial did not bring up.
func (cfg Config) checkFlags() error {
	switch name, _ := cfg.targetName(); {
	case cfg.URL != "" && (cfg.Env != "" || cfg.Revision != "" || cfg.Keep):
		return fault.New(fault.CLI001, "--url names where to send; --env, --revision and --keep are about an environment").
			WithNext("Give one or the other.")
	case cfg.Env != "" && cfg.Revision != "":
		return fault.New(fault.CLI001, "--env names an environment that is up, and --revision would bring up another").
			WithNext("Give one or the other.")
	case cfg.URL != "":
		return nil
	default:
		if _, ok := cfg.Manifest.Targets[name]; ok && (cfg.Env != "" || cfg.Revision != "" || cfg.Keep) {
			return fault.New(fault.CLI001, "the load goes to the target %q, which is no environment: --env, --revision and --keep mean nothing for it", name).
				WithNext("Leave them out, or name a service with --target.")
		}
	}
	return nil
}

// checkPlace refuses early what has no place to send at, before the traffic is read. What is proved and
// admitted comes later.
func (cfg Config) checkPlace() error {
	if cfg.URL != "" {
		return nil
	}
	if _, err := cfg.targetName(); err != nil {
		return err
	}
	if cfg.Env == "" {
		return nil
	}
	if err := env.CheckName(cfg.Env); err != nil {
		return err
	}
	if !env.Exists(cfg.Dir, cfg.Env) {
		return fault.New(fault.ENV005, "there is no environment called %q", cfg.Env)
	}
	return nil
}

// targetName is the manifest's load.target, or the only service or target that there is.
func (cfg Config) targetName() (string, error) {
	m := cfg.Manifest
	if m.Load.Target != "" {
		return m.Load.Target, nil
	}
	names := slices.Sorted(maps.Keys(m.Services))
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(m.Targets))
	}
	switch len(names) {
	case 0:
		return "", fault.New(fault.ENV001, "the manifest declares no service and no target to send at")
	case 1:
		return names[0], nil
	}
	return "", fault.New(fault.MAN004, "load.target is not set, and there are several to choose from: %s", strings.Join(names, ", ")).
		WithNext("Set `load.target` to one of them, or give --target.")
}

func aimAtEnvironment(ctx context.Context, cfg Config, service string) (*aim, error) {
	if cfg.Env != "" {
		e, err := env.Open(cfg.Dir, cfg.Env, process.Provider{})
		if err != nil {
			return nil, err
		}
		t, err := e.Target(service)
		if err != nil {
			return nil, err
		}
		return &aim{target: t, env: e, service: service}, nil
	}
	e, err := Bring{Manifest: cfg.Manifest, Name: environmentName(cfg), Revision: cfg.Revision, Keep: cfg.Keep, Out: cfg.Progress}.Up(ctx)
	if err != nil {
		return nil, err
	}
	a := &aim{env: e, own: true, service: service, dir: cfg.Dir}
	if a.target, err = e.Target(service); err != nil {
		return nil, errors.Join(err, nilOr(a.down(ctx, false)))
	}
	return a, nil
}

// environmentName is one that no other run of this folder takes at the same time.
func environmentName(cfg Config) string {
	return fmt.Sprintf("%s-%s-%d", cfg.Command, cfg.Now().UTC().Format("150405"), os.Getpid())
}

// checkRate refuses a plan whose mean rate is over what the target admits; bursts over it are held
// back by the engine.
func checkRate(t engine.Target, prep *preparation) error {
	if limit := t.MaxRate(); limit > 0 && prep.plan.Open.Rate > limit {
		return fault.New(fault.LOD001, "the plan sends %.4g requests a second and the target %s admits %.4g", prep.plan.Open.Rate, t.Proof().Name, limit).
			WithNext("Lower --rate or --scale, or raise `max_rate` of the target.")
	}
	if limit := t.MaxRate(); limit > 0 && prep.plan.ConnArrivals.Rate > limit {
		return fault.New(fault.LOD001, "the plan opens %.4g connections a second and the target %s admits %.4g", prep.plan.ConnArrivals.Rate, t.Proof().Name, limit).
			WithNext("Lower `load.connections.rate`, or raise `max_rate` of the target.")
	}
	return nil
}

// checkVersion refuses a version of HTTP that the target's scheme rules out, before anything is brought
// up. Services are plain HTTP.
func (cfg Config) checkVersion(p *plan.Plan) error {
	raw := "http://"
	if name, err := cfg.targetName(); cfg.URL != "" {
		raw = cfg.URL
	} else if t, ok := cfg.Manifest.Targets[name]; ok && err == nil {
		raw = t.URL
	}
	secure := strings.HasPrefix(strings.ToLower(raw), "https://")
	if !secure && cfg.Manifest.Set("load.connections.resume") {
		p.Warnings = append(p.Warnings, "load.connections.resume is about TLS handshakes, and the target is not https")
	}
	if p.Precise && p.Engine.Name != httpload.LoopName {
		p.Warnings = append(p.Warnings, "load.precise is for the event loop; the portable engine has no use for it")
	}
	switch {
	case secure:
		return nil
	case p.HTTP == httpload.HTTP2:
		e := cfg.Manifest.Problem(fault.MAN004, "load.http", "load.http is 2, which is agreed on in a TLS handshake, and the target is not https")
		e.Next = "Set load.http to 2-prior-knowledge, or name an https target."
		return e
	case p.HTTP == httpload.HTTP3:
		e := cfg.Manifest.Problem(fault.MAN004, "load.http", "load.http is 3, which needs TLS, and the target is not https")
		e.Next = "Name an https target, or set load.http to auto."
		return e
	case p.TLS.Insecure || p.TLS.RootCAs != nil || len(p.TLS.Certificates) > 0:
		e := cfg.Manifest.Problem(fault.MAN004, "load.tls", "load.tls says how TLS is made, and the target is not https")
		e.Next = "Name an https target, or remove load.tls."
		return e
	}
	return nil
}

// down takes down what the run brought up; it gives what is left.
func (a *aim) down(ctx context.Context, keep bool) *fault.Error {
	switch {
	case a.release != nil:
		a.release()
		return nil
	case a.env == nil:
		return nil
	case !a.own || keep:
		_ = a.env.Release()
		return nil
	}
	name := a.env.Info().Name
	err := a.env.Down(context.WithoutCancel(ctx))
	if err == nil {
		err = removeTree(ctx, a.dir, name)
	}
	if err == nil {
		return nil
	}
	if e, ok := fault.As(err); ok {
		return e
	}
	return fault.New(fault.ENV006, "the environment %s could not be taken down", name).Because(err)
}

func (a *aim) info() evidence.TargetInfo {
	base := a.target.Base()
	p := a.target.Proof()
	out := evidence.TargetInfo{URL: base.String(), Kind: p.Kind, Proof: p.Detail, MaxRate: a.target.MaxRate()}
	if path := a.target.Unix(); path != "" {
		out.URL = "unix://" + path
	}
	for _, addr := range a.target.Addrs() {
		out.Addrs = append(out.Addrs, addr.String())
	}
	return out
}
