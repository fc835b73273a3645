package evidence

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"seatrial/fault"
	"seatrial/judge"
)

// The files of a run's folder that this package writes itself.
const (
	RunFile     = "run.json"
	JournalFile = "journal.jsonl"
	StdoutFile  = "stdout.log"
)

// File is one further file of the folder, and how it is rendered from a run. The same run gives the
// same bytes.
type File struct {
	Name   string
	Render func(io.Writer, *Run) error
}

// Store writes one run's folder. After a failed write it stays failed, and Finish gives no verdict:
// evidence with a hole is none. Its methods may be called from several goroutines.
type Store struct {
	dir    string
	redact *Redactor

	mu      sync.Mutex
	journal *os.File
	stdout  *os.File
	tee     *Writer
	failed  *fault.Error
	closed  bool
}

// idBytes of chance make two runs of one second distinct.
const idBytes = 3

// Create makes root/<UTC time>-<command>-<short id> (root is made too) and writes its first run.json,
// which says that the run is incomplete and unverified. A nil redactor recognises patterns only.
// Failures are EVD-001.
func Create(root, command string, now time.Time, redact *Redactor) (*Store, error) {
	if redact == nil {
		redact = NewRedactor()
	}
	s := &Store{redact: redact}
	if err := s.create(root, command, now); err != nil {
		return nil, fault.New(fault.EVD001, "the run folder under %s could not be made: %s", root, reason(err)).Because(err)
	}
	first := &Run{Schema: SchemaVersion, ID: s.ID(), Command: command, Started: now.UTC(), Sentence: incompleteSentence}
	if err := s.WriteRun(first); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

const incompleteSentence = "unverified: the run has not finished writing its evidence"

func (s *Store) create(root, command string, now time.Time) error {
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	for {
		var id [idBytes]byte
		_, _ = rand.Read(id[:]) // never fails, by its documentation
		s.dir = filepath.Join(root, now.UTC().Format("20060102T150405Z")+"-"+command+"-"+hex.EncodeToString(id[:]))
		err := os.Mkdir(s.dir, 0o700)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	var err error
	if s.journal, err = os.OpenFile(filepath.Join(s.dir, JournalFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
		return err
	}
	if s.stdout, err = os.OpenFile(filepath.Join(s.dir, StdoutFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
		_ = s.journal.Close()
		return err
	}
	s.tee = s.redact.Writer(s.stdout)
	return nil
}

// Dir is the run's folder.
func (s *Store) Dir() string { return s.dir }

// ID is the name of the run's folder.
func (s *Store) ID() string { return filepath.Base(s.dir) }

// Redactor is what the store passes everything through.
func (s *Store) Redactor() *Redactor { return s.redact }

// entry is one line of journal.jsonl.
type entry struct {
	Time   time.Time      `json:"time"`
	Event  string         `json:"event"`
	Fields map[string]any `json:"fields,omitempty"`
}

// Journal appends one event. Fields must be marshallable; their text is redacted.
func (s *Store) Journal(event string, fields map[string]any) error {
	line, err := json.Marshal(entry{Time: time.Now().UTC(), Event: s.redact.String(event), Fields: s.cleanMap(fields)})
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		return s.fail(JournalFile, err)
	}
	if s.closed {
		return s.fail(JournalFile, fs.ErrClosed)
	}
	if _, err = s.journal.Write(append(line, '\n')); err != nil {
		return s.fail(JournalFile, err)
	}
	return nil
}

// cleanMap redacts field by field, before JSON puts its own quotes around. What is not a plain value
// goes through JSON first.
func (s *Store) cleanMap(fields map[string]any) map[string]any {
	out := make(map[string]any, len(fields))
	for k, v := range fields {
		k = s.redact.String(k)
		if s.redact.String(k+"=x") != k+"=x" { // a key that names a secret masks whatever its value is
			v = Mask
		}
		out[k] = s.cleanValue(v)
	}
	return out
}

func (s *Store) cleanValue(v any) any {
	switch v := v.(type) {
	case nil, bool, int, int64, uint64, float64:
		return v
	case string:
		return s.redact.String(v)
	case error:
		return s.redact.String(v.Error())
	case fmt.Stringer:
		return s.redact.String(v.String())
	case map[string]any:
		return s.cleanMap(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = s.cleanValue(v[i])
		}
		return out
	}
	b, err := json.Marshal(v)
	if err != nil {
		return s.redact.String(fmt.Sprint(v))
	}
	var generic any
	if json.Unmarshal(b, &generic) != nil {
		return s.redact.String(string(b))
	}
	return s.cleanValue(generic)
}

// Stdout gives a writer to stdout.log, to be written beside the terminal. It never returns an error:
// a full disk must not end the terminal's output. Finish reports it.
func (s *Store) Stdout() io.Writer { return stdout{s} }

type stdout struct{ s *Store }

func (o stdout) Write(p []byte) (int, error) {
	if _, err := o.s.tee.Write(p); err != nil {
		o.s.mu.Lock()
		_ = o.s.fail(StdoutFile, err)
		o.s.mu.Unlock()
	}
	return len(p), nil
}

// WriteRun replaces run.json atomically with a state on the way. Whatever run says, the file says
// incomplete and unverified: only Finish writes a verdict.
func (s *Store) WriteRun(run *Run) error {
	interim := *run
	interim.Complete, interim.Verdict = false, judge.Unverified
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writeRun(s.redact.Run(&interim))
}

// Finish writes every file, and last of all run.json with complete set. When anything of the
// evidence could not be written the error is EVD-001, and run.json stays incomplete and unverified.
// It closes the store. Afterwards run is what was written, without its secrets, so that what is printed
// from it has none either.
func (s *Store) Finish(run *Run, files []File) error {
	defer s.close()
	run.ID, run.Schema = s.ID(), SchemaVersion
	final := s.redact.Run(run)
	final.Complete = true
	_ = s.Journal("finish", map[string]any{"verdict": final.Verdict})
	err := s.finish(final, files)
	if err != nil {
		s.leaveIncomplete(final, err)
	}
	*run = *final
	return err
}

func (s *Store) finish(final *Run, files []File) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.sync(); err != nil {
		return err
	}
	for _, f := range files {
		if err := s.replace(f.Name, func(w io.Writer) error { return f.Render(w, final) }); err != nil {
			return s.fail(f.Name, err)
		}
	}
	return s.writeRun(final)
}

// sync brings the journal and stdout.log to the disk, where a write that seemed to succeed may fail.
func (s *Store) sync() error {
	if s.failed != nil {
		return s.failed
	}
	if err := s.tee.Close(); err != nil {
		return s.fail(StdoutFile, err)
	}
	if err := s.stdout.Sync(); err != nil {
		return s.fail(StdoutFile, err)
	}
	if err := s.journal.Sync(); err != nil {
		return s.fail(JournalFile, err)
	}
	return nil
}

// leaveIncomplete takes back what a failed Finish may have left on the disk, and the verdict. It is best effort: the
// first run.json, written when there was room, says the same.
func (s *Store) leaveIncomplete(final *Run, cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range []string{"report.html", "report.md", "junit.xml"} {
		_ = os.Remove(filepath.Join(s.dir, name)) // pages that show a verdict which was not given
	}
	final.Complete, final.Verdict, final.Sentence = false, judge.Unverified, "unverified: the evidence could not be written"
	if e, ok := fault.As(cause); ok {
		final.Causes = append(final.Causes, Cause{Code: string(e.Code), Message: e.Message, Next: e.Next})
	}
	_ = s.replace(RunFile, func(w io.Writer) error { return Write(w, final) })
}

func (s *Store) writeRun(run *Run) error {
	if s.failed != nil {
		return s.failed
	}
	if err := s.replace(RunFile, func(w io.Writer) error { return Write(w, run) }); err != nil {
		return s.fail(RunFile, err)
	}
	return nil
}

// Write writes run.json's text.
func Write(w io.Writer, run *Run) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(run)
}

// replace writes a file beside its place, brings it to the disk, and only then gives it its name, so
// that a reader sees the old one or the new one and never a part.
func (s *Store) replace(name string, render func(io.Writer) error) (err error) {
	if filepath.Base(name) != name {
		return fmt.Errorf("%q is not a file name", name)
	}
	tmp, err := os.CreateTemp(s.dir, "."+name+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(tmp.Name())
		}
	}()
	err = render(tmp)
	if err == nil {
		err = tmp.Sync()
	}
	if closed := tmp.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	if err = os.Rename(tmp.Name(), filepath.Join(s.dir, name)); err != nil {
		return err
	}
	return syncDir(s.dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if closed := d.Close(); err == nil {
		err = closed
	}
	return err
}

// fail remembers the first failure. The lock must be held.
func (s *Store) fail(name string, err error) error {
	if s.failed == nil {
		s.failed = fault.New(fault.EVD001, "%s of run %s could not be written: %s", name, s.ID(), s.redact.String(reason(err))).Because(err)
	}
	return s.failed
}

// reason is the system's own words without the temporary path that a person never named.
func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// Close closes the store without a verdict; the evidence stays marked incomplete. It may follow
// Finish, and then does nothing.
func (s *Store) Close() { s.close() }

func (s *Store) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	_ = s.tee.Close()
	_ = s.stdout.Close()
	_ = s.journal.Close()
}
