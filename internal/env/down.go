package env

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"seatrial/fault"
)

// Down takes the environment down in the reverse order of its journal and gives the lock back. It
// never stops at the first failure; what is left is named in the error (ENV-006) and stays in the
// ledger. When ctx has ended, processes are ended without being asked first. A second call does
// nothing.
func (e *Environment) Down(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.down {
		return nil
	}
	e.down = true
	e.stop()
	e.journal.close()
	defer e.lock.release()
	return removeAll(ctx, e.cfg.Dir, e.cfg.Name, e.cfg.Provider)
}

// Down takes down an environment that no live process holds: a leftover or one that was kept.
func Down(ctx context.Context, dir, name string, p Provider) error {
	if err := checkName(name); err != nil {
		return err
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return ledgerFault(name, err)
	}
	if !Exists(dir, name) {
		return noSuch(name)
	}
	l, err := acquire(dir, name)
	if err != nil {
		return err
	}
	defer l.release()
	if !Exists(dir, name) {
		return noSuch(name) // its holder took it down while we came
	}
	return removeAll(ctx, dir, name, p)
}

// Prune takes down every leftover, dead, expired or broken environment and gives the names of those
// that are gone. Environments in use or kept are left alone.
func Prune(ctx context.Context, dir string, p Provider) ([]string, error) {
	infos, err := List(dir)
	if err != nil {
		return nil, err
	}
	var gone []string
	var errs []error
	for _, i := range infos {
		if i.State == InUse || i.State == Kept {
			continue
		}
		err := Down(ctx, dir, i.Name, p)
		if f, ok := fault.As(err); ok && (f.Code == fault.ENV007 || f.Code == fault.ENV005) {
			continue // another process was faster
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		gone = append(gone, i.Name)
	}
	return gone, errors.Join(errs...)
}

// removeAll replays the journal in reverse. The caller holds the lock.
func removeAll(ctx context.Context, dir, name string, p Provider) error {
	var left []string
	s, err := readFile(dir, name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s = file{}
	}
	h, err := readHistory(journalAt(dir, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		left = append(left, "the journal cannot be read: "+reason(err))
	}
	token := s.Token
	if token == "" {
		token = h.token
	}
	j, err := openJournal(journalAt(dir, name))
	if err != nil {
		j = nil // a sick disk must not keep processes alive
	}
	for _, r := range slices.Backward(h.outstanding) {
		if err := p.Remove(ctx, token, r); err != nil {
			left = append(left, fmt.Sprintf("%s %s: %s", r.Kind, r.ID, err))
			continue
		}
		if j != nil {
			_ = j.append(entry{Op: opRemoved, Resource: &r}) // Remove may be repeated, so a lost line does no harm
		}
	}
	if token != "" {
		if err := p.Sweep(ctx, token); err != nil {
			left = append(left, err.Error())
		}
	} else {
		left = append(left, fmt.Sprintf("whatever it started: its token is lost with env.json and the journal, so that nothing can be proved to be its own; look for processes with %s set, end them, and remove %s",
			MarkerEnv, filepath.Join(".seatrial", "environments", name)))
	}
	j.close()
	return finish(dir, name, &s, left)
}

// finish removes the ledger's folder, or records that something is left.
func finish(dir, name string, s *file, left []string) error {
	if len(left) == 0 {
		keepLogs(dir, name)
		if err := os.RemoveAll(envDir(dir, name)); err != nil {
			left = append(left, "the folder "+envDir(dir, name)+": "+reason(err))
		} else if err := syncDir(ledgerDir(dir)); err != nil {
			left = append(left, "the folder "+ledgerDir(dir)+": "+reason(err))
		}
	}
	if len(left) == 0 {
		return nil
	}
	if s.Token != "" && s.Keep {
		s.Keep = false // no longer up on purpose
		_ = s.write(dir)
	}
	return fault.New(fault.ENV006, "tear-down of the environment %q left %d behind: %s", name, len(left), left[0]).
		WithDetail(strings.Join(left, "\n"))
}
