package env

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"seatrial/fault"
)

// maxLedgerFile bounds env.json in bytes; a ledger is a few kilobytes.
const maxLedgerFile = 4 << 20

// State says what is the matter with an environment of the ledger.
type State string

// The states that List tells apart.
const (
	InUse    State = "in use"   // a live process holds its lock
	Kept     State = "kept"     // up on purpose, nobody uses it now
	Expired  State = "expired"  // kept, and past its time to live
	Dead     State = "dead"     // kept, but a process of it has ended
	Leftover State = "leftover" // its owner is gone without taking it down
	Broken   State = "broken"   // its ledger cannot be read
)

// Info is what the ledger knows of one environment. The token is kept apart and never leaves the
// package.
type Info struct {
	Schema   int           `json:"schema"`
	ID       string        `json:"id"`
	Name     string        `json:"name"`
	Driver   string        `json:"driver"`
	Created  time.Time     `json:"created"`
	Owner    Identity      `json:"owner"` // the process that brought it up
	Keep     bool          `json:"keep"`
	TTL      time.Duration `json:"ttl_ns,omitempty"` // 0: none
	Revision string        `json:"revision,omitempty"`
	Dirty    string        `json:"dirty_digest,omitempty"`
	Notes    []string      `json:"notes,omitempty"`
	Services []Service     `json:"services"`

	State  State `json:"state,omitempty"`      // as List or Info saw it; never in env.json
	Holder int   `json:"holder_pid,omitempty"` // process that uses it now; 0 when none
}

// Service is one started replica.
type Service struct {
	Name      string   `json:"name"`
	Replica   int      `json:"replica"`
	URL       string   `json:"url"` // http://ADDRESS:PORT, loopback
	Resource  Resource `json:"resource"`
	Log       string   `json:"log"`        // absolute path
	StartupMS float64  `json:"startup_ms"` // from start to the first 2xx of the health path
}

// file is env.json.
type file struct {
	Info
	Token string `json:"token"` // 256 random bits in hex
}

func ledgerDir(dir string) string        { return filepath.Join(dir, ".seatrial", "environments") }
func envDir(dir, name string) string     { return filepath.Join(ledgerDir(dir), name) }
func lockPath(dir, name string) string   { return filepath.Join(ledgerDir(dir), ".locks", name) }
func oldLogDir(dir, name string) string  { return filepath.Join(ledgerDir(dir), ".logs", name) }
func filePath(dir, name string) string   { return filepath.Join(envDir(dir, name), "env.json") }
func journalAt(dir, name string) string  { return filepath.Join(envDir(dir, name), "journal.jsonl") }
func liveLogDir(dir, name string) string { return filepath.Join(envDir(dir, name), "logs") }

// checkName refuses what could not be the name of one folder.
func checkName(name string) error {
	bad := name == "" || len(name) > 100 || name[0] == '.' || !utf8.ValidString(name) ||
		strings.ContainsAny(name, `/\:`) || strings.ContainsFunc(name, unicode.IsControl)
	if bad {
		return fault.New(fault.CLI001, "%q cannot be the name of an environment", name).
			WithNext("Use letters, digits, spaces, dots and dashes, at most 100 bytes, not a dot first.")
	}
	return nil
}

// CheckName refuses what cannot be the name of an environment (CLI-001), before it becomes a path.
func CheckName(name string) error { return checkName(name) }

// realDirs refuses a ledger in which one of the folders that an environment uses is not a folder but a
// link or a file: nothing is written, moved or removed through one. Those that are not there are fine, and
// .seatrial itself may stand elsewhere.
func realDirs(dir, name string) error {
	ledger := ledgerDir(dir)
	for _, path := range []string{ledger, filepath.Dir(lockPath(dir, name)), filepath.Dir(oldLogDir(dir, name)),
		oldLogDir(dir, name), envDir(dir, name), liveLogDir(dir, name)} {
		info, err := os.Lstat(path)
		if err == nil && !info.IsDir() {
			rel, _ := filepath.Rel(dir, path)
			return fault.New(fault.ENV010, "%s is not a folder of Seatrial's own but a link or a file", rel).
				WithNext("Look at what it is, and move it out of the way.")
		}
	}
	return nil
}

func ledgerFault(name string, cause error) error {
	return fault.New(fault.ENV010, "the ledger of the environment %q cannot be written: %s", name, reason(cause)).Because(cause)
}

// reason words an error without the path it carries: the sentence already names the thing.
func reason(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	var le *os.LinkError
	if errors.As(err, &le) {
		return le.Err.Error()
	}
	return err.Error()
}

func noSuch(name string) error {
	return fault.New(fault.ENV005, "there is no environment called %q", name)
}

func readBounded(path string, limit int64) ([]byte, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = errors.New("file too large")
	}
	return b, err
}

// openRegular opens a file for reading that must be one: opening a pipe would wait for its other end.
func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errors.New("not a regular file")}
	}
	return os.Open(path)
}

func readFile(dir, name string) (file, error) {
	b, err := readBounded(filePath(dir, name), maxLedgerFile)
	if err != nil {
		return file{}, err
	}
	return parseFile(b, name)
}

func parseFile(b []byte, name string) (file, error) {
	var s file
	if err := json.Unmarshal(b, &s); err != nil {
		return file{}, err
	}
	if s.Schema != 1 || len(s.Token) != 64 || s.Name != name {
		return file{}, errors.New("not a ledger of this version and name")
	}
	return s, nil
}

// writeAtomic replaces path so that a reader, or the next start after a crash, sees the old content
// or the new one and nothing in between.
func writeAtomic(path string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".tmp-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if e := d.Close(); err == nil {
		err = e
	}
	return err
}

func (s *file) write(dir string) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return writeAtomic(filePath(dir, s.Name), append(b, '\n'))
}

// List gives every environment in the ledger of the project folder dir, by name.
func List(dir string) ([]Info, error) {
	entries, err := os.ReadDir(ledgerDir(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.New(fault.ENV010, "the ledger of environments cannot be read: %s", reason(err)).Because(err)
	}
	var out []Info
	for _, e := range entries {
		if e.IsDir() && checkName(e.Name()) == nil {
			out = append(out, inspect(dir, e.Name()))
		}
	}
	sort.Slice(out, func(i, k int) bool { return out[i].Name < out[k].Name })
	return out, nil
}

func inspect(dir, name string) Info {
	s, err := readFile(dir, name)
	info := s.Info
	if err != nil {
		info = Info{Name: name, State: Broken}
	} else {
		info.State, info.Holder = info.state(time.Now()), 0
	}
	if id, ok := holder(dir, name); ok {
		info.State, info.Holder = InUse, id.PID
	}
	return info
}

// state judges an environment whose lock nobody holds.
func (i *Info) state(now time.Time) State {
	if !i.Keep {
		return Leftover
	}
	for _, s := range i.Services {
		if s.Resource.Kind == "process" && !s.Resource.Process.Running() {
			return Dead
		}
	}
	if i.TTL > 0 && now.Sub(i.Created) > i.TTL {
		return Expired
	}
	return Kept
}
