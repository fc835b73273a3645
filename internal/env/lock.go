package env

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"

	"seatrial/fault"
)

// lock is held by the process that brings an environment up, uses it or takes it down. Lock files
// are never removed: removing one while another process waits on it would let two in.
type lock struct{ f *os.File }

// acquire takes the lock of an environment, or fails with ENV-007 naming the holder.
func acquire(dir, name string) (*lock, error) {
	if err := realDirs(dir, name); err != nil {
		return nil, err
	}
	path := lockPath(dir, name)
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, ledgerFault(name, errors.New("its lock is not a regular file"))
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, ledgerFault(name, err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, ledgerFault(name, err)
	}
	ok, err := tryLock(f)
	if err != nil {
		_ = f.Close()
		return nil, ledgerFault(name, err)
	}
	if !ok {
		_ = f.Close()
		return nil, heldFault(dir, name)
	}
	me, _ := Identify(os.Getpid())
	me.PID = os.Getpid()
	b, err := json.Marshal(me)
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteAt(b, 0)
	}
	if err != nil {
		_ = f.Close()
		return nil, ledgerFault(name, err)
	}
	return &lock{f: f}, nil
}

func heldFault(dir, name string) error {
	// The holder writes its number right after it took the lock; a loser may look in between.
	for range 20 {
		if id, ok := readHolder(dir, name); ok {
			return fault.New(fault.ENV007, "the environment %q is in use by process %d", name, id.PID)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return fault.New(fault.ENV007, "the environment %q is in use by another process", name)
}

func readHolder(dir, name string) (Identity, bool) {
	b, err := readBounded(lockPath(dir, name), 4096)
	if err != nil {
		return Identity{}, false
	}
	var id Identity
	if json.Unmarshal(b, &id) != nil || id.PID <= 0 {
		return Identity{}, false
	}
	return id, true
}

// holder gives the process that holds the lock now, without touching the lock: a reader that took
// it, even shared, could make a writer fail.
func holder(dir, name string) (Identity, bool) {
	id, ok := readHolder(dir, name)
	return id, ok && id.Running()
}

func (l *lock) release() {
	if l == nil || l.f == nil {
		return
	}
	_ = l.f.Truncate(0)
	_ = l.f.Close()
	l.f = nil
}
