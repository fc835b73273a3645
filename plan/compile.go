package plan

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"seatrial/engine"
	"seatrial/engine/httpload"
	"seatrial/fault"
	"seatrial/manifest"
	"seatrial/report/figure"
	"seatrial/schedule"
	"seatrial/traffic"
)

// The figures of a smoke and of a source-less run (LD-2, TR-8).
const (
	SmokeDuration = 10 * time.Second
	SmokeScale    = 0.1
	AssumedRate   = 5.0 // requests per second before scale, under source none
)

// Input is what a plan is made from.
type Input struct {
	Manifest *manifest.Manifest
	Source   *traffic.Profile  // what the load source gave; nil under source none
	Observed *traffic.Observed // values seen in the source; nil when there are none
	Profile  *traffic.Profile  // the committed profile, read and not too old; nil when none is declared
	Smoke    bool
	Replay   time.Duration // how long the recording takes to be sent; 0: this is no replay
	Command  string        // run, smoke, ci, demo; for messages
	Now      time.Time
	Getenv   func(string) string // for auth and ${env:NAME}; nil: os.Getenv
}

// compiler collects a plan and every problem on the way.
type compiler struct {
	in       Input
	m        *manifest.Manifest
	load     *manifest.Load
	policy   *traffic.Policy
	plan     *Plan
	sent     []candidate
	problems fault.List
	carried  map[string]*cargo // by route
	// methods that a header of every request would turn its own method into (TR-40)
	overrides []string
}

// Compile turns a manifest and what production served into a plan, or gives every problem at once
// as a fault.List. When filtering leaves no route (LOD-013) and nothing else is wrong, the plan is
// given as well as the error: its Mix and Warnings say what was removed, and it has no routes.
func Compile(in Input) (*Plan, error) {
	if in.Getenv == nil {
		in.Getenv = os.Getenv
	}
	if in.Replay == 0 && (in.Source == nil) != (in.Manifest.Load.Source == manifest.SourceNone) {
		return nil, fault.New(fault.CLI002, "source %s was compiled with the traffic of another", in.Manifest.Load.Source)
	}
	c := &compiler{in: in, m: in.Manifest, load: &in.Manifest.Load, plan: &Plan{}}
	c.settings()
	c.headers()
	c.carriage()
	c.cargoes()
	if c.compilePolicy() {
		c.routes()
	}
	c.rates()
	c.connectionArrivals()
	if len(c.problems) > 0 {
		return nil, c.problems
	}
	c.mix()
	c.warnings()
	if len(c.sent) == 0 {
		return c.plan, fault.List{c.nothingLeft()}
	}
	c.checks()
	c.expectations()
	if err := c.assemble(); err != nil {
		return nil, err
	}
	c.warnOfShortSamples()
	return c.plan, nil
}

func (c *compiler) problem(code fault.Code, path, format string, args ...any) *fault.Error {
	e := c.m.Problem(code, path, format, args...)
	c.problems = append(c.problems, e)
	return e
}

func (c *compiler) warn(format string, args ...any) {
	c.plan.Warnings = append(c.plan.Warnings, fmt.Sprintf(format, args...))
}

// settings copies what the manifest decides alone. In a smoke, the manifest's duration and warm-up
// give way to the smoke's own unless a flag sets them.
func (c *compiler) settings() {
	p, l := c.plan, c.load
	p.Seed, p.Smoke, p.Host, p.Trace = l.Seed, c.in.Smoke, l.Host, l.Trace
	p.Duration, p.Warmup = l.Duration, l.Warmup
	if c.in.Smoke {
		if !c.m.Flagged("load.duration") {
			p.Duration = SmokeDuration
		}
		if !c.m.Flagged("load.warmup") {
			p.Warmup = 0
		}
	}
	c.compileEngine()
	p.Abort = Abort{Rate: l.Abort.ErrorRate, For: l.Abort.For}
	p.Limits = engine.Limits{Timeout: l.Timeout, Connect: l.ConnectTimeout, TLS: l.TLSTimeout, FirstByte: l.FirstByteTimeout,
		MaxConnections: l.MaxConnections, MaxHeader: 64 << 10, MaxBody: 64 << 20}
}

// compileEngine chooses what sends.
func (c *compiler) compileEngine() {
	e, err := httpload.Choose(c.load.Engine)
	if err != nil {
		c.problem(fault.MAN004, "load.engine", "load.engine is %s, and there is no such engine on this system", c.load.Engine).
			Next = "Set load.engine to auto or portable."
		return
	}
	c.plan.Engine, c.plan.Precise = e, c.load.Precise
}

// compilePolicy makes the route policy, or names each pattern that is not one, where it stands.
func (c *compiler) compilePolicy() bool {
	before := len(c.problems)
	for i, p := range c.load.SafeRoutes {
		_, err := traffic.NewPolicy([]string{p}, nil)
		c.badPattern(fmt.Sprintf("load.safe_routes[%d]", i), err)
	}
	for i, p := range c.load.UnsafeRoutes {
		_, err := traffic.NewPolicy(nil, []string{p})
		c.badPattern(fmt.Sprintf("load.unsafe_routes[%d]", i), err)
	}
	if len(c.problems) > before {
		return false
	}
	policy, err := traffic.NewPolicy(c.load.SafeRoutes, c.load.UnsafeRoutes)
	if err != nil {
		c.badPattern("load.safe_routes", err)
		return false
	}
	c.policy, c.plan.policy = policy, policy
	for _, h := range c.plan.Headers {
		if method, ok := traffic.HasOverrideHeader(map[string]string{h.Name: h.Value}); ok {
			c.overrides = append(c.overrides, method)
			c.plan.overrides = append(c.plan.overrides, method)
		}
	}
	return true
}

func (c *compiler) badPattern(path string, err error) {
	if e, ok := fault.As(err); ok {
		c.problem(e.Code, path, "%s", e.Message).Next = e.Next
	} else if err != nil {
		c.problem(fault.MAN004, path, "%v", err)
	}
}

// scale is the share of production's rate to send (LD-2).
func (c *compiler) scale() float64 {
	if c.in.Smoke && !c.m.Flagged("load.scale") && c.in.Source != nil {
		return SmokeScale
	}
	return c.load.Scale
}

// rates decides the arrival rate and the schedule's shape. A rate of the manifest stands in place of
// production's rate times scale; a smoke takes it only from the flag.
func (c *compiler) rates() {
	if c.in.Source != nil && c.in.Source.Requests == 0 {
		return // there is nothing to send at any rate: nothingLeft says so
	}
	if c.in.Replay > 0 {
		c.recordedRates()
		return
	}
	p, l := c.plan, c.load
	base := AssumedRate
	if c.in.Source != nil {
		base = c.in.Source.Rate
	}
	rate := base * c.scale()
	p.Mix.Scale = c.scale()
	declared := l.Rate > 0 && !c.in.Smoke && !c.m.Flagged("load.scale")
	if l.Rate > 0 && (declared || c.m.Flagged("load.rate")) {
		rate, p.Mix.Scale = float64(l.Rate), 0
		if c.in.Source != nil && base > 0 {
			p.Mix.Scale = rate / base
		}
	}
	p.Open = schedule.Open{Kind: schedule.Kind(l.Arrivals), Seed: p.Seed, Rate: rate, Duration: p.Warmup + p.Duration}
	if p.Open.Kind == schedule.Bursty {
		p.Open.Dispersion = c.dispersion()
	}
	if c.in.Smoke && c.in.Source == nil {
		p.Open.AtLeast = uint64(len(c.sent))
	}
	if rate <= 0 {
		c.problem(fault.MAN004, "load.source", "the source tells no rate, so load.rate is needed")
		return
	}
	if n := rate * p.Open.Duration.Seconds(); n > maxArrivals {
		c.problem(fault.MAN004, "load.duration", "%s for %s are %s, and one run sends %s at most",
			figure.Rate(rate), figure.Duration(p.Open.Duration), figure.Counted(uint64(min(n, math.MaxInt64)), "request"), figure.Count(maxArrivals)).
			Next = "Shorten load.duration, or lower load.rate or load.scale."
		return
	}
	if err := p.Open.Validate(); err != nil {
		c.problem(fault.MAN004, "load", "the schedule is not possible: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
}

// maxArrivals bounds a run: each request is accounted for, and so is each that a stop leaves unsent.
const maxArrivals = 1_000_000_000

// dispersion is what arrivals: bursty reproduces. Less than 1 is smoother than Poisson, which this
// process cannot give.
func (c *compiler) dispersion() float64 {
	for _, p := range []*traffic.Profile{c.in.Source, c.in.Profile} {
		if p != nil && p.Dispersion > 0 {
			if p.Dispersion < 1 {
				c.warn("production's arrivals are more even than Poisson (index of dispersion %.3g); bursty sends them as Poisson", p.Dispersion)
			}
			return max(1, p.Dispersion)
		}
	}
	c.problem(fault.MAN004, "load.arrivals", "load.arrivals is bursty, but neither the source nor the profile tells how bursty production is")
	return 1
}

// reference is what this run is compared with: the committed profile, else the source itself.
func (c *compiler) reference() *traffic.Profile {
	if c.in.Profile != nil {
		return c.in.Profile
	}
	return c.in.Source
}

// maxBlamed is how many patterns the message of nothingLeft names; its detail names all.
const maxBlamed = 3

// nothingLeft says which pattern removed how much (TR-9), the most first. The sentence itself does, as
// it is what every report shows.
func (c *compiler) nothingLeft() *fault.Error {
	what := "filtering left no route to send"
	if c.in.Source != nil && c.in.Source.Requests == 0 {
		what = "no route is left to send: the source holds no request that could be replayed"
	}
	for i, r := range c.plan.Mix.Patterns {
		if i == maxBlamed {
			what += "; and " + figure.Counted(uint64(len(c.plan.Mix.Patterns)-i), "more reason")
			break
		}
		what += fmt.Sprintf("; %.3g%% of the mix: %s", 100*r.Share, r.Pattern)
	}
	e := fault.New(fault.LOD013, "%s", what)
	var lines []string
	for _, r := range c.plan.Mix.Patterns {
		lines = append(lines, fmt.Sprintf("%5.1f%% of the mix, %s: %s", 100*r.Share, figure.Counted(uint64(r.Routes), "route"), r.Pattern))
	}
	for _, o := range c.plan.Mix.NotSent[:min(len(c.plan.Mix.NotSent), 5)] {
		lines = append(lines, fmt.Sprintf("%s: %s", o.Route, o.Reason))
	}
	return e.WithDetail(strings.Join(lines, "\n"))
}

// warnings says what a person should know before the run.
func (c *compiler) warnings() {
	if ref := c.reference(); ref != nil {
		c.plan.Warnings = append(c.plan.Warnings, c.policy.SingleStarWarnings(ref)...)
	}
	for _, name := range sortedKeys(c.load.Params) {
		if !slices.ContainsFunc(c.sent, func(s candidate) bool { return s.name() == name && s.by == byParams }) {
			c.warn("load.params names %s, which this run does not send", name)
		}
	}
	c.warnOfCargo()
	var bodies []string
	for _, s := range c.sent {
		if g := c.carried[s.name()]; g != nil && len(g.body) > 0 {
			continue
		}
		if s.method == "POST" || s.method == "PUT" || s.method == "PATCH" {
			bodies = append(bodies, s.name())
		}
	}
	if len(bodies) > 0 {
		c.warn("sent without a body, because a source records none and load.requests gives none: %s", brief(bodies))
	}
}

// brief joins a few names and counts the rest.
func brief(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// assemble makes the request sequence and the digest.
func (c *compiler) assemble() error {
	p := c.plan
	if p.Recorded {
		p.carriage, p.arrivals = c.carriageDigest(), c.in.Source.Requests
		p.Digest = p.digest()
		return nil
	}
	p.requests = newRequests(p.Seed, c.sent, c.carried, p.Open.AtLeast > 0)
	p.carriage = c.carriageDigest()
	var err error
	if p.arrivals, err = schedule.Count(p.Open); err != nil {
		return fault.New(fault.CLI002, "a schedule that was checked is refused").Because(err)
	}
	if p.arrivals == 0 {
		c.warn("at %.3g requests a second for %s nothing is due; raise the rate or the duration", p.Open.Rate, p.Open.Duration)
	}
	p.Digest = p.digest()
	return nil
}
