package run

import (
	"runtime"

	"seatrial/engine"
	"seatrial/evidence"
	"seatrial/plan"
)

// newRun is the run as it is written first: what was decided, and no result.
func (x *execution) newRun(id string) *evidence.Run {
	r := &evidence.Run{Schema: evidence.SchemaVersion, ID: id, Command: x.cfg.Command, Tool: "seatrial " + x.cfg.Version,
		Started: x.cfg.Now().UTC(), Sentence: "This run has not ended.", Host: host(), Reproduce: x.cfg.Reproduce}
	p := x.prep.plan
	r.Warnings = append([]string(nil), p.Warnings...)
	mix := p.Mix
	r.Traffic = &mix
	if x.prep.nothing == nil {
		r.Plan = planInfo(p)
	}
	if x.aim.target.OK() {
		r.Target = x.aim.info()
	}
	r.Environment = x.aim.environment()
	return r
}

func planInfo(p *plan.Plan) evidence.PlanInfo {
	out := evidence.PlanInfo{Digest: p.Digest, ScheduleDigest: p.ScheduleDigest(), Seed: p.Seed, Arrivals: p.Arrivals(),
		Process: string(p.Open.Kind), Rate: p.Open.Rate, Warmup: p.Warmup, Duration: p.Duration, Timeout: p.Limits.Timeout,
		MaxConnections: p.Limits.MaxConnections, Engine: p.Engine.Name, Checks: p.Checks, Pools: map[string]string{}}
	for _, r := range p.Routes {
		if r.Pool != "" {
			out.Pools[r.Name] = r.Pool
		}
	}
	return out
}

// environment describes what was brought up; nil for an admitted target.
func (a *aim) environment() *evidence.Environment {
	if a.env == nil {
		return nil
	}
	info := a.env.Info()
	return &evidence.Environment{Name: info.Name, Driver: info.Driver, Revision: info.Revision, Dirty: info.Dirty,
		Services: a.env.URLs(), StartupMS: a.env.StartupMS()}
}

func host() evidence.Host {
	h := evidence.Host{OS: runtime.GOOS, Arch: runtime.GOARCH, Cores: runtime.NumCPU(), Go: runtime.Version(), Steal: -1}
	m := engine.ReadMachine()
	h.Kernel, h.CPU, h.Load1 = m.Kernel, m.CPU, m.Load1
	return h
}
