package env

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"
)

// The operations of a journal. Every resource has an intent before it is made, a done once it
// exists, and a removed once it is gone.
const (
	opOpen    = "open" // first line: the environment's token, should env.json be lost
	opIntent  = "intent"
	opDone    = "done"
	opRemoved = "removed"
)

// maxEntry bounds one line of a journal in bytes, maxJournal all of it.
const (
	maxEntry   = 64 << 10
	maxJournal = 8 << 20
)

type entry struct {
	At       time.Time `json:"at"`
	Op       string    `json:"op"`
	Token    string    `json:"token,omitempty"`
	Resource *Resource `json:"resource,omitempty"`
}

// journal is an append-only file, one JSON document a line, synced at each append.
type journal struct{ f *os.File }

func openJournal(path string) (*journal, error) {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errors.New("not a regular file")}
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	if err := endLine(f); err != nil {
		_ = f.Close()
		return nil, err
	}
	return &journal{f: f}, nil
}

// endLine completes a last line that a crash cut short, so that the next entry has its own line.
func endLine(f *os.File) error {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return err
	}
	last := make([]byte, 1)
	if _, err := f.ReadAt(last, info.Size()-1); err != nil {
		return err
	}
	if last[0] == '\n' {
		return nil
	}
	_, err = f.Write([]byte{'\n'})
	return err
}

func (j *journal) append(e entry) error {
	e.At = time.Now().UTC()
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if _, err := j.f.Write(append(b, '\n')); err != nil {
		return err
	}
	return j.f.Sync()
}

func (j *journal) close() {
	if j != nil {
		_ = j.f.Close()
	}
}

// history is what a journal says.
type history struct {
	token       string
	outstanding []Resource // made or about to be made and not removed, in the order of making
	unreadable  int        // lines that could not be understood
}

func readHistory(path string) (history, error) {
	f, err := openRegular(path)
	if err != nil {
		return history{}, err
	}
	defer func() { _ = f.Close() }()
	return parseHistory(f)
}

// parseHistory replays a journal. A line that cannot be understood is counted and the rest is read:
// tear-down must find whatever it can.
func parseHistory(r io.Reader) (history, error) {
	var h history
	in := bufio.NewReaderSize(io.LimitReader(r, maxJournal), maxEntry)
	for {
		line, err := in.ReadSlice('\n')
		long := false
		for errors.Is(err, bufio.ErrBufferFull) {
			long = true
			_, err = in.ReadSlice('\n')
		}
		if line = bytes.TrimSpace(line); long {
			h.unreadable++
		} else if len(line) > 0 {
			h.apply(line)
		}
		if err == io.EOF {
			return h, nil
		}
		if err != nil {
			return h, err
		}
	}
}

func (h *history) apply(line []byte) {
	var e entry
	if json.Unmarshal(line, &e) != nil || (e.Op != opOpen && e.Resource == nil) {
		h.unreadable++
		return
	}
	if e.Op == opOpen {
		h.token = e.Token
		return
	}
	at := slices.IndexFunc(h.outstanding, func(r Resource) bool {
		return r.ID == e.Resource.ID && r.Kind == e.Resource.Kind
	})
	switch {
	case e.Op == opIntent && at < 0, e.Op == opDone && at < 0:
		h.outstanding = append(h.outstanding, *e.Resource)
	case e.Op == opDone:
		h.outstanding[at] = *e.Resource
	case e.Op == opRemoved && at >= 0:
		h.outstanding = slices.Delete(h.outstanding, at, at+1)
	case e.Op != opIntent && e.Op != opRemoved:
		h.unreadable++
	}
}
