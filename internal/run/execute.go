package run

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"

	"seatrial/engine"
	"seatrial/engine/httpload"
	"seatrial/evidence"
	"seatrial/fault"
	"seatrial/internal/crew"
	"seatrial/internal/watch"
	"seatrial/plan"
	"seatrial/record"
	"seatrial/report/figure"
)

// stopDrain is how long answers that are on their way are waited for after an interrupt.
const stopDrain = 500 * time.Millisecond

// execution is one run from its evidence folder to its end.
type execution struct {
	cfg            Config
	prep           *preparation
	aim            *aim
	store          *evidence.Store
	run            *evidence.Run
	tally          *record.Tally
	health         engine.Health
	arrivals       httpload.ConnAccount // of connections by their own schedule, behind the warm-up
	arrivalsWarmup httpload.ConnAccount
	cpu            []float64
	aborted        float64
	stopped        bool         // by an interrupt
	unread         *fault.Error // the recording could not be read to its end
	lost           *fault.Error // the target was found not to be ours any more
	ran            time.Duration
	kinds          []fault.Kind
	watcher        watch.Watcher
}

func execute(ctx context.Context, cfg Config, prep *preparation, aim *aim) (*Result, error) {
	x := &execution{cfg: cfg, prep: prep, aim: aim}
	if err := x.open(); err != nil {
		_ = aim.down(ctx, cfg.Keep)
		return nil, err
	}
	if err := x.send(ctx); err != nil {
		x.finishWatch()
		x.store.Close()
		return nil, errors.Join(err, nilOr(aim.down(ctx, cfg.Keep)))
	}
	x.judge()
	x.finishWatch()
	x.tearDown(ctx)
	return x.close()
}

// tearDown takes down what the run brought up, before the report is written, so that what is left
// stands in it (LD-14).
func (x *execution) tearDown(ctx context.Context) {
	left := x.aim.down(ctx, x.cfg.Keep)
	if left == nil {
		x.note("torn down", nil)
		return
	}
	x.note("tear-down left something behind", map[string]any{"what": left.Message})
	x.cause(left)
	x.run.Leftovers = append(x.run.Leftovers, strings.TrimSpace(left.Message+"\n"+left.Detail))
}

// nilOr keeps a nil *fault.Error from becoming an error that is not nil.
func nilOr(e *fault.Error) error {
	if e == nil {
		return nil
	}
	return e
}

// note writes one line of the journal. A failure to write it is found again when the evidence is
// finished: a store that failed once stays failed.
func (x *execution) note(event string, fields map[string]any) { _ = x.store.Journal(event, fields) }

// open checks the generator's limits and writes the evidence folder, marked incomplete.
func (x *execution) open() error {
	if err := httpload.CheckBind(x.aim.target, x.prep.plan.Connections.Bind); err != nil {
		return x.cfg.Manifest.Problem(fault.MAN004, "load.connections.bind", "load.connections.bind: %v", err)
	}
	if err := engine.Preflight(x.prep.plan.Limits, len(x.aim.target.Addrs())*max(1, len(x.prep.plan.Connections.Bind))); err != nil {
		return err
	}
	redact := evidence.NewRedactor(append(x.prep.plan.Secrets(), ServiceSecrets(x.cfg.Manifest, x.cfg.Getenv)...)...)
	store, err := evidence.Create(x.cfg.RunRoot, x.cfg.Command, x.cfg.Now(), redact)
	if err != nil {
		return err
	}
	x.store = store
	x.run = x.newRun(store.ID())
	return store.WriteRun(x.run)
}

// send runs the load to its end, to an abort or to an interrupt.
func (x *execution) send(ctx context.Context) error {
	p := x.prep.plan
	sending, stop := context.WithCancel(ctx)
	defer stop()
	for _, w := range x.run.Warnings {
		x.say("warning: %s", w)
	}
	x.say("sending %s at %s for %s to %s", figure.Counted(x.run.Plan.Arrivals, "request"), figure.Rate(p.Open.Rate),
		figure.Duration(p.Open.Duration), x.run.Target.URL)
	x.note("sending", map[string]any{"arrivals": x.run.Plan.Arrivals, "digest": x.run.Plan.ScheduleDigest})
	if err := x.load(sending, stop); err != nil {
		return err
	}
	x.stopped = ctx.Err() != nil && x.aborted == 0
	x.note("sending ended", map[string]any{"aborted": x.aborted > 0, "interrupted": x.stopped})
	return nil
}

// load runs the crew beside its monitor and the generator's self-check.
func (x *execution) load(ctx context.Context, stop context.CancelFunc) error {
	p := x.prep.plan
	m := &monitor{plan: p, stop: stop}
	if x.cfg.Watch != nil {
		m.watcher = x.cfg.Watch()
	}
	sampler := engine.StartHealth()
	load, feed := x.job(ctx)
	// Last of all: it sets the epoch a moment ahead, and what stands between would eat that up.
	job := crew.New(load)
	if m.crew, m.start = job, job.Epoch(); feed != nil {
		feed.Begin(m.start)
	}
	following, done := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() { m.follow(following) })
	wg.Go(func() { x.guard(following, stop) })
	x.ran = p.Open.Duration
	wg.Go(func() {
		select {
		case <-ctx.Done(): // an interrupt, or the abort rule
			x.ran = min(x.ran, max(0, time.Since(m.start)))
		case <-following.Done():
		}
	})
	tally, results, err := job.Run(ctx)
	done()
	wg.Wait()
	x.health, x.cpu = sampler.Stop(), sampler.CPUSeries()
	x.aborted = m.abortShare()
	x.watcher = m.watcher
	x.run.Host.Steal = sampler.Steal()
	if err != nil {
		return err
	}
	x.tally = tally
	x.addUp(results)
	if feed != nil {
		x.fed(feed, released(results), ctx.Err() != nil)
		return nil
	}
	if ctx.Err() != nil {
		x.tally.AddUnsent(p.Unreleased(released(results)))
	}
	x.tally.Settle(intended(p))
	return nil
}

// released is how far each worker came in its slice of the schedule.
func released(results []*httpload.Result) []uint64 {
	out := make([]uint64, len(results))
	for k, r := range results {
		out[k] = r.Released
	}
	return out
}

// slices is how many workers send side by side.
func (x *execution) slices() int {
	if x.cfg.Slices > 0 {
		return x.cfg.Slices
	}
	p := x.prep.plan
	return p.Engine.Slices(p.Open.Rate, runtime.GOMAXPROCS(0), p.Limits.MaxConnections)
}

// guardEvery is how often it is proved again that what listens is the environment's own process.
const guardEvery = time.Second

// guard ends the run when the service can no longer be proved to be ours (SA-1): it may have died, and
// somebody else may have its port. Once more after the end, the run must have been ours to the last.
func (x *execution) guard(ctx context.Context, stop context.CancelFunc) {
	if x.aim.env == nil {
		return
	}
	tick := time.NewTicker(guardEvery)
	defer tick.Stop()
	for ended := false; !ended; {
		select {
		case <-ctx.Done():
			ended = true
		case <-tick.C:
		}
		err := x.aim.env.Verify(x.aim.service)
		if err == nil {
			continue
		}
		e, ok := fault.As(err)
		if !ok {
			e = fault.New(fault.LOD001, "the service %q cannot be proved to be ours any more", x.aim.service).Because(err)
		}
		x.lost = e
		stop()
		return
	}
}

// addUp puts what the workers observed of themselves into the generator's health.
func (x *execution) addUp(results []*httpload.Result) {
	x.health.ConnLimit = x.prep.plan.Limits.MaxConnections
	k := &evidence.Connections{HTTP: string(x.prep.plan.HTTP)}
	connect, shake := record.NewHistogram(), record.NewHistogram()
	var why httpload.Reasons
	for _, r := range results {
		r.AddTo(&x.health)
		k.Opened += r.ConnOpened
		k.HTTP2 += r.HTTP2
		k.HTTP3 += r.HTTP3
		k.FullHandshakes += r.FullShakes
		k.ResumedHandshakes += r.Resumed
		k.Resent += r.Resent
		if r.Connect != nil {
			connect.Merge(r.Connect)
			shake.Merge(r.Shake)
		}
		x.arrivals.Add(r.Arrivals)
		x.arrivalsWarmup.Add(r.ArrivalsWarmup)
		k.Failed += r.ConnFailed
		k.HTTP1 += r.HTTP1
		why.Merge(r.Why)
	}
	if p := x.prep.plan; p.ConnArrivals.Rate > 0 {
		k.Arrivals = &evidence.ConnArrivals{Process: string(p.ConnArrivals.Kind), Rate: p.ConnArrivals.Rate, Account: x.arrivals}
	}
	k.Times(connect, shake)
	k.Why = why
	k.Insecure = x.prep.plan.TLS.Insecure
	x.run.Connections = k
}

// recordConfig has an exact counter at each declared latency limit.
func recordConfig(p *plan.Plan) record.Config {
	return record.Config{Routes: len(p.Routes), Warmup: p.Warmup, End: p.End(), Limits: p.RouteLimits()}
}

// intended is what the schedule meant to send, counted from the schedule itself.
func intended(p *plan.Plan) record.Intended {
	warmup, routes := p.Due()
	return record.Intended{Warmup: warmup, Routes: routes}
}

func (x *execution) finishWatch() {
	if x.watcher != nil {
		x.watcher.Done(watch.Final{Verdict: x.run.Verdict, Sentence: x.run.Sentence, Folder: x.store.Dir()})
		x.watcher = nil
	}
}

func (x *execution) say(format string, args ...any) {
	x.cfg.say(format, args...)
	_, _ = fmt.Fprintf(x.store.Stdout(), format+"\n", args...)
}

func (x *execution) engineConfig() httpload.Config {
	p := x.prep.plan
	return httpload.Config{
		Target: x.aim.target, Requests: p, Limits: p.Limits, Headers: p.Headers, Host: p.Host,
		UserAgent: "seatrial/" + x.cfg.Version, Trace: p.Trace, Precise: p.Precise, HTTP: p.HTTP, TLS: p.TLS, Connections: p.Connections, Seed: p.Seed, StopDrain: stopDrain,
	}
}
