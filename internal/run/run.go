// Package run takes one run from a manifest to its evidence: plan, target, load, judgement,
// tear-down, report. It decides no exit number and prints nothing but progress.
package run

import (
	"context"
	"io"
	"time"

	"seatrial/evidence"
	"seatrial/fault"
	"seatrial/internal/watch"
	"seatrial/manifest"
)

// Config is what one run needs. Dir, Manifest, Command, RunRoot, Version and Now are required.
type Config struct {
	Dir       string // the manifest's folder
	Manifest  *manifest.Manifest
	Command   string // run, smoke, ci, demo
	Smoke     bool
	RunRoot   string // where run folders are made
	Version   string
	Reproduce string  // the plain command that runs it again
	URL       string  // send at this URL instead of the manifest's target
	Env       string  // use this environment, which is up already
	Revision  string  // bring this revision up instead of the working tree
	Replay    *Replay // send a recording again; nil: the manifest's mix
	Keep      bool    // leave an environment up that this run brought up
	Slices    int     // workers inside this process; as many as the engine wants unless set
	Stdin     io.Reader
	Progress  io.Writer            // lines for people while the run is prepared; may be nil
	Watch     func() watch.Watcher // makes the live view; may be nil, and may give nil
	Now       func() time.Time
	Getenv    func(string) string
	// Engaged is called before the first thing is made that an interrupt must not leave behind: from
	// then on an interrupt ends the run in order, until then there is nothing to lose. May be nil.
	Engaged func()
}

// Result is a run that came to an end, whatever its verdict.
type Result struct {
	Run    *evidence.Run
	Folder string       // the run's evidence
	Kinds  []fault.Kind // all that an exit number depends on; empty for a pass
}

// Do makes one run. An error means that there was no run: something was refused or not there before
// the first request. Everything after that is in the Result.
func Do(ctx context.Context, cfg Config) (*Result, error) {
	if err := cfg.checkFlags(); err != nil {
		return nil, err
	}
	if err := cfg.checkPlace(); err != nil {
		return nil, err
	}
	Ignore(cfg.Dir)
	prep, err := prepare(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if cfg.Engaged != nil {
		cfg.Engaged()
	}
	if prep.nothing != nil {
		return inconclusive(cfg, prep)
	}
	if err := cfg.checkVersion(prep.plan); err != nil {
		return nil, err
	}
	aim, err := takeAim(ctx, cfg, prep)
	if err != nil {
		return nil, err
	}
	return execute(ctx, cfg, prep, aim)
}
