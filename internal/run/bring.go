package run

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"seatrial/fault"
	"seatrial/internal/env"
	"seatrial/internal/env/process"
	"seatrial/internal/env/worktree"
	"seatrial/manifest"
)

// Bring says which environment to bring up.
type Bring struct {
	Manifest *manifest.Manifest
	Name     string        // of the environment
	Revision string        // a revision of the manifest's repository; empty: the working tree as it is
	Keep     bool          // it may outlive this process
	TTL      time.Duration // with Keep: env prune removes it after this; 0: never
	Out      io.Writer     // progress; may be nil
}

// Up brings an environment up. A revision other than the working tree is checked out beside it and
// built there, with the build cache shared (EN-3).
func (b Bring) Up(ctx context.Context) (*env.Environment, error) {
	dir := b.Manifest.Dir
	if err := env.CheckName(b.Name); err != nil {
		return nil, err
	}
	Ignore(dir)
	cfg := env.Config{Dir: dir, Name: b.Name, Services: b.Manifest.Services, Provider: process.Provider{},
		Keep: b.Keep, TTL: b.TTL, Out: b.Out}
	if b.Revision != "" {
		work, commit, err := checkOut(ctx, dir, b.Revision, b.Name)
		if err != nil {
			return nil, err
		}
		cfg.WorkDir, cfg.Revision = work, commit
	} else {
		d, err := worktree.Describe(ctx, dir)
		if err != nil {
			return nil, err
		}
		cfg.Revision, cfg.Dirty = d.Commit, d.Dirty
	}
	e, err := env.Up(ctx, cfg)
	if err != nil && b.Revision != "" {
		return nil, errors.Join(err, removeTree(ctx, dir, b.Name)) // this call made it
	}
	return e, err
}

// treeDir is where the work tree of an environment stands.
func treeDir(dir, name string) string { return filepath.Join(dir, ".seatrial", "worktrees", name) }

// checkOut gives the folder of the revision that stands for dir, and the commit.
func checkOut(ctx context.Context, dir, revision, name string) (work, commit string, err error) {
	below, err := worktree.Below(ctx, dir)
	if err != nil {
		return "", "", err
	}
	into := treeDir(dir, name)
	if env.Exists(dir, name) { // its tree, if it has one, is not ours to replace
		return "", "", fault.New(fault.ENV007, "there is an environment %q already", name).
			WithNext("Give --name another one, or take that one down with `seatrial env down %s`.", name)
	}
	if err := realTree(dir, name); err != nil {
		return "", "", err
	}
	commit, err = worktree.Add(ctx, dir, revision, into)
	if err != nil {
		return "", "", err
	}
	work = filepath.Join(into, below)
	if info, err := os.Stat(work); err != nil || !info.IsDir() {
		return "", "", errors.Join(fault.New(fault.ENV008, "the revision %q has no folder %s", revision, below), removeTree(ctx, dir, name))
	}
	return work, commit, nil
}

// realTree refuses a work tree whose folder, or the one above, is a link or a file: nothing is checked out
// or removed through one.
func realTree(dir, name string) error {
	into := treeDir(dir, name)
	for _, path := range []string{filepath.Dir(into), into} {
		if info, err := os.Lstat(path); err == nil && !info.IsDir() {
			rel, _ := filepath.Rel(dir, path)
			return fault.New(fault.ENV010, "%s is not a folder of Seatrial's own but a link or a file", rel).
				WithNext("Look at what it is, and move it out of the way.")
		}
	}
	return nil
}

// removeTree removes the work tree of an environment, if it has one.
func removeTree(ctx context.Context, dir, name string) error {
	into := treeDir(dir, name)
	if _, err := os.Lstat(into); err != nil {
		return nil
	}
	if err := errors.Join(env.CheckName(name), realTree(dir, name)); err != nil {
		return err
	}
	if err := worktree.Remove(context.WithoutCancel(ctx), dir, into); err != nil {
		return err
	}
	_ = os.Remove(filepath.Dir(into)) // stays when other environments have work trees
	return nil
}

// Down takes an environment of dir down, held by no live process, with its work tree.
func Down(ctx context.Context, dir, name string) error {
	if err := env.Down(ctx, dir, name, process.Provider{}); err != nil {
		return err // its tree may be in use
	}
	return removeTree(ctx, dir, name)
}

// Prune takes down leftovers and what is past its time, with their work trees, and gives the names of
// those that are gone.
func Prune(ctx context.Context, dir string) ([]string, error) {
	gone, err := env.Prune(ctx, dir, process.Provider{})
	trees, _ := os.ReadDir(filepath.Dir(treeDir(dir, "x")))
	for _, t := range trees {
		if t.IsDir() && env.CheckName(t.Name()) == nil && !env.Exists(dir, t.Name()) {
			err = errors.Join(err, removeTree(ctx, dir, t.Name()))
		}
	}
	return gone, err
}
