package run

import (
	"context"
	"sync"
	"time"

	"seatrial/internal/crew"
	"seatrial/internal/watch"
	"seatrial/judge"
	"seatrial/plan"
	"seatrial/record"
)

// frameEvery is how often watchers get a copy of the totals and the abort rule looks at them.
const frameEvery = 200 * time.Millisecond

// monitor follows a running crew: it feeds the watcher and ends the run by the abort rule (LD-9).
type monitor struct {
	plan    *plan.Plan
	crew    *crew.InProcess
	watcher watch.Watcher
	stop    context.CancelFunc
	start   time.Time

	mu      sync.Mutex
	aborted float64 // error share at which the rule fired; 0 when it did not

	overFor         time.Duration
	ended, failures uint64
	looked          time.Time
}

// follow looks every frameEvery until ctx ends.
func (m *monitor) follow(ctx context.Context) {
	tick := time.NewTicker(frameEvery)
	defer tick.Stop()
	m.looked = m.start
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			sum := total(m.crew.Snapshots())
			if m.watcher != nil {
				m.watcher.Update(frameOf(m.plan, &sum, now.Sub(m.start)))
			}
			m.look(now, sum.Responses, sum.Errors)
		}
	}
}

// look is the abort rule: the error share of what ended since the last look stays over the limit
// for the whole window. A look at which nothing ended neither adds to the window nor breaks it.
func (m *monitor) look(now time.Time, responses, errs uint64) {
	ended, failures := responses-m.ended, errs-m.failures
	if ended == 0 || now.Sub(m.looked) < min(time.Second, m.plan.Abort.For/4) {
		return
	}
	share := float64(failures) / float64(ended)
	if share > m.plan.Abort.Rate {
		m.overFor += now.Sub(m.looked)
	} else {
		m.overFor = 0
	}
	m.ended, m.failures, m.looked = responses, errs, now
	if m.overFor >= m.plan.Abort.For && m.plan.Abort.For > 0 {
		m.mu.Lock()
		if m.aborted == 0 {
			m.aborted = share
		}
		m.mu.Unlock()
		m.stop()
	}
}

func (m *monitor) abortShare() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.aborted
}

// slowestShown is how many routes a live view names.
const slowestShown = 3

// total merges the live totals of all workers.
func total(shots []record.Snapshot) record.Snapshot {
	sum := shots[0]
	for _, s := range shots[1:] {
		sum.Merge(s)
	}
	return sum
}

// frameOf copies the live totals into one frame.
func frameOf(p *plan.Plan, sum *record.Snapshot, elapsed time.Duration) watch.Frame {
	recent := sum.Recent(elapsed, slowestShown)
	f := watch.Frame{Elapsed: elapsed, Total: p.Open.Duration, Phase: phase(p, elapsed), Ended: sum.Ended,
		Failures: sum.Errors, Offered: p.Open.Rate,
		P99: recent.P99, SendDelayP99: recent.SendDelayP99, Samples: recent.Totals.Responses}
	if recent.Span > 0 {
		f.Span = recent.Span
		f.Achieved = float64(recent.Totals.Answered) / recent.Span.Seconds()
	}
	if sum.Responses > 0 {
		f.Errors = float64(sum.Errors) / float64(sum.Responses)
	}
	for _, r := range recent.Slowest {
		f.Slowest = append(f.Slowest, watch.Slow{Route: p.Routes[r.Route].Name, Mean: r.Mean, Samples: r.Timed})
	}
	if recent.SendDelayP99 > judge.MaxSendDelayP99 {
		f.Warning = "the generator falls behind its schedule"
	}
	return f
}

func phase(p *plan.Plan, elapsed time.Duration) string {
	switch {
	case elapsed < p.Warmup:
		return watch.Warmup
	case elapsed < p.Open.Duration:
		return watch.Judged
	default:
		return watch.Drain
	}
}
