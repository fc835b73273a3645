// Package crew carries a run to the workers that send it: today to slices inside this process.
// Every worker gets a slice of the same schedule, so that any number of them sends exactly the
// sequence of one.
package crew

import (
	"context"
	"errors"
	"sync"
	"time"

	"seatrial/engine/httpload"
	"seatrial/record"
	"seatrial/schedule"
)

// Job is what every worker needs.
type Job struct {
	Engine   httpload.Engine          // what each worker runs
	Config   httpload.Config          // without Schedule and Recorder
	Schedule func() schedule.Schedule // the whole schedule, afresh for each worker
	// Connections gives the whole schedule of connection arrivals, afresh for each worker; nil, or
	// giving nil, when there are none.
	Connections func() schedule.Schedule
	Feed        Feed // in place of Schedule and Config.Requests; nil: they hold
	Record      record.Config
	Slices      int // workers; at least 1, and no more than connections: each needs one
}

// Feed gives each worker its own part of what is sent.
type Feed interface {
	Schedule(worker int) schedule.Schedule
	Requests(worker int) httpload.Requests
	// Recorder stands before the worker's own.
	Recorder(worker int, to httpload.Recorder) httpload.Recorder
}

// Slices is how many workers a job will have.
func Slices(job Job) int {
	n := max(1, job.Slices)
	if most := job.Config.Limits.MaxConnections; most > 0 {
		n = min(n, most)
	}
	return n
}

// InProcess runs the slices of a job side by side in this process.
type InProcess struct {
	shards []*record.Shard
	job    Job
	epoch  time.Time
}

// lead is how far ahead of now the epoch is set, so that every worker is ready when the first
// request is due.
const lead = 100 * time.Millisecond

// New prepares the workers' recorders, so that Snapshot works from the start.
func New(job Job) *InProcess {
	job.Slices = Slices(job)
	c := &InProcess{job: job, epoch: time.Now().Add(lead)}
	for range job.Slices {
		c.shards = append(c.shards, record.NewShard(job.Record))
	}
	return c
}

// Run sends everything, waits for the drain, and gives the merged tally. A stop through ctx is no
// error: what was due and not sent is in the tally's account.
func (c *InProcess) Run(ctx context.Context) (*record.Tally, []*httpload.Result, error) {
	results := make([]*httpload.Result, c.job.Slices)
	errs := make([]error, c.job.Slices)
	var wg sync.WaitGroup
	for k := range c.job.Slices {
		cfg := c.job.Config
		cfg.Recorder = c.shards[k]
		if f := c.job.Feed; f != nil {
			cfg.Schedule, cfg.Requests, cfg.Recorder = f.Schedule(k), f.Requests(k), f.Recorder(k, c.shards[k])
		} else {
			cfg.Schedule = schedule.Shard(c.job.Schedule(), k, c.job.Slices)
		}
		if c.job.Connections != nil {
			if whole := c.job.Connections(); whole != nil {
				cfg.Connections.Arrivals = schedule.Shard(whole, k, c.job.Slices)
			}
		}
		cfg.Epoch = c.epoch
		cfg.Limits.MaxConnections = share(cfg.Limits.MaxConnections, k, c.job.Slices)
		wg.Go(func() { results[k], errs[k] = c.job.Engine.Run(ctx, cfg) })
	}
	wg.Wait()
	tally := record.NewTally(c.job.Record)
	for _, s := range c.shards {
		s.MergeInto(tally)
	}
	return tally, results, errors.Join(errs...)
}

// share splits a bound over n workers, of which there are no more than the bound.
func share(total, k, n int) int {
	part := total / n
	if k < total%n {
		part++
	}
	return part
}

// Epoch is the instant from which due times count.
func (c *InProcess) Epoch() time.Time { return c.epoch }

// Snapshots are copies of the live totals, one per worker.
func (c *InProcess) Snapshots() []record.Snapshot {
	out := make([]record.Snapshot, len(c.shards))
	for i, s := range c.shards {
		out[i] = s.Snapshot()
	}
	return out
}
