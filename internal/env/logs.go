package env

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"
	"unicode"

	"seatrial/fault"
)

const (
	tailLines = 20      // shown with a failure
	tailBytes = 8 << 10 // at most
	pollLogs  = 200 * time.Millisecond
)

// tail gives the last lines of a log for a failure, without control characters: what a service
// prints must not steer the reader's terminal.
func tail(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	b, err := lastBytes(f, tailBytes)
	if err != nil {
		return ""
	}
	text := Harmless(string(b))
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}

// Harmless takes out what a terminal would obey: what a service prints must not steer it.
func Harmless(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || !unicode.IsControl(r) && r != unicode.ReplacementChar {
			return r
		}
		return -1
	}, strings.ToValidUTF8(text, ""))
}

// lastBytes gives the last n bytes of a file, from the start of a line where there is one.
func lastBytes(f *os.File, n int64) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	from := max(0, info.Size()-n)
	b, err := io.ReadAll(io.NewSectionReader(f, from, n))
	if from > 0 {
		if k := bytes.IndexByte(b, '\n'); k >= 0 {
			b = b[k+1:]
		}
	}
	return b, err
}

// watchLogs bounds the logs in dir while this process holds the environment. A service writes to its
// file itself, because a pipe would break, and the service with it, when Seatrial is killed. So a log
// is cut from outside: its last quarter is kept beside it as NAME.1 and the file starts anew. Lines
// written between the copy and the cut are lost. The result stops the watch and waits for it.
func watchLogs(dir string, limit int64) func() {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			trimLogs(dir, limit)
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
	return func() { cancel(); wg.Wait() }
}

func trimLogs(dir string, limit int64) {
	paths, _ := filepath.Glob(filepath.Join(escapeGlob(dir), "*.log"))
	for _, p := range paths {
		if info, err := os.Stat(p); err == nil && info.Size() > limit {
			_ = cutLog(p, limit/4) // on a full disk the next round tries again
		}
	}
}

func escapeGlob(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(s)
}

func cutLog(path string, keep int64) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	b, err := lastBytes(f, keep)
	if err != nil {
		return err
	}
	err = os.WriteFile(path+".1", b, 0o600)
	if e := f.Truncate(0); err == nil { // cut even when the copy failed: a full disk needs it most
		err = e
	}
	return err
}

// keepLogs saves the logs of an environment that is taken down, for reading afterwards. One set is
// kept per name, and of the names those of the last keptLogs: every run has a name of its own.
func keepLogs(dir, name string) {
	old := oldLogDir(dir, name)
	if os.MkdirAll(filepath.Dir(old), 0o700) != nil || os.RemoveAll(old) != nil {
		return
	}
	if os.Rename(liveLogDir(dir, name), old) == nil {
		now := time.Now()
		_ = os.Chtimes(old, now, now) // of this moment, not of its last file
	}
	dropOldLogs(filepath.Dir(old))
}

// keptLogs is how many environments' logs are kept.
const keptLogs = 20

// dropOldLogs removes all but the newest logs.
func dropOldLogs(all string) {
	entries, err := os.ReadDir(all)
	if err != nil || len(entries) <= keptLogs {
		return
	}
	when := func(e os.DirEntry) time.Time {
		info, err := e.Info()
		if err != nil {
			return time.Time{}
		}
		return info.ModTime()
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return when(b).Compare(when(a)) })
	for _, e := range entries[keptLogs:] {
		if e.IsDir() { // never through a link
			_ = os.RemoveAll(filepath.Join(all, e.Name()))
		}
	}
}

// Logs writes the logs of a service (all services when it is empty) to w, those of the last
// environment of that name when none is up. With follow it goes on until ctx ends or the environment
// is taken down. Lines carry their unit's name when there is more than one log.
func Logs(ctx context.Context, dir, name, service string, follow bool, w io.Writer) error {
	if err := checkName(name); err != nil {
		return err
	}
	logs := liveLogDir(dir, name)
	if _, err := os.Stat(logs); err != nil {
		logs, follow = oldLogDir(dir, name), false
	}
	paths, known, err := logFiles(logs, service)
	if err != nil {
		return noSuch(name)
	}
	if len(paths) == 0 && (service != "" || !follow) {
		return fault.New(fault.ENV005, "the environment %q has no log of the service %q", name, service).
			WithNext("It has: %s.", strings.Join(known, ", "))
	}
	c := copier{w: w, at: map[string]int64{}}
	for {
		if err := c.round(paths); err != nil || !follow {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pollLogs):
		}
		if paths, _, err = logFiles(logs, service); err != nil {
			return nil // taken down
		}
	}
}

// logFiles gives the logs of a service in order (what was cut off first) and the services known.
func logFiles(dir, service string) (paths, known []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		base := strings.TrimSuffix(strings.TrimSuffix(e.Name(), ".1"), ".log")
		owner := base
		if k := strings.LastIndexByte(base, '.'); k > 0 {
			owner = base[:k]
		}
		known = append(known, owner)
		if service == "" || owner == service {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	// "a.log.1" is older than "a.log".
	sort.Slice(paths, func(i, k int) bool {
		a, aOld := strings.CutSuffix(paths[i], ".1")
		b, bOld := strings.CutSuffix(paths[k], ".1")
		return a < b || a == b && aOld && !bOld
	})
	sort.Strings(known)
	return paths, slices.Compact(known), nil
}

// copier copies what is new in a set of files.
type copier struct {
	w  io.Writer
	at map[string]int64
}

func (c *copier) round(paths []string) error {
	for _, p := range paths {
		prefix := ""
		if len(paths) > 1 {
			prefix = strings.TrimSuffix(strings.TrimSuffix(filepath.Base(p), ".1"), ".log") + " | "
		}
		if strings.HasSuffix(p, ".1") && c.at[p] > 0 {
			continue // cut off while we follow: it was shown already
		}
		if err := c.copy(p, prefix); err != nil {
			return err
		}
	}
	return nil
}

func (c *copier) copy(path, prefix string) error {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fault.New(fault.ENV005, "the log %s cannot be read: %s", filepath.Base(path), reason(err)).Because(err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() < c.at[path] {
		c.at[path] = 0 // cut
	}
	in := io.NewSectionReader(f, c.at[path], info.Size()-c.at[path])
	n, err := copyLines(c.w, in, prefix)
	c.at[path] += n
	return err
}

// copyLines copies whole lines with a prefix; a last line without its end is copied as it is, and
// the count says how far it came.
func copyLines(w io.Writer, r io.Reader, prefix string) (int64, error) {
	if prefix == "" {
		return io.Copy(w, r)
	}
	var n int64
	buf := make([]byte, 32<<10)
	start := true
	for {
		k, err := r.Read(buf)
		for _, line := range bytes.SplitAfter(buf[:k], []byte{'\n'}) {
			if len(line) == 0 {
				continue
			}
			if start {
				if _, err := fmt.Fprint(w, prefix); err != nil {
					return n, err
				}
			}
			if _, err := w.Write(line); err != nil {
				return n, err
			}
			n += int64(len(line))
			start = line[len(line)-1] == '\n'
		}
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}
