// Package repo reads a project's folder for `init` and proposes a manifest: what its services are and
// how they are built, run and known to be ready, and which recorded traffic lies there already. It
// only reads; it runs nothing and opens no socket.
package repo

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"seatrial/fault"
)

// Bounds of a scan: a monorepo must not take minutes, and a hostile file no memory.
const (
	maxEntries = 50_000
	maxDepth   = 8
	maxText    = 512 << 10
)

// Findings is what a folder was found to hold.
type Findings struct {
	Name     string    `json:"name"`
	Services []Service `json:"services"`
	Traffic  []Traffic `json:"traffic"`
	Notes    []string  `json:"notes,omitempty"` // what was seen and cannot be written into the manifest
}

// Service is a proposal for one service, in the manifest's words. Paths are relative to the folder.
type Service struct {
	Name       string            `json:"name"`
	Kind       string            `json:"kind"` // go, node, python, procfile
	From       string            `json:"from"` // the file that says so
	Build      string            `json:"build,omitempty"`
	Run        string            `json:"run"`
	Port       int               `json:"port,omitempty"` // 0: a free one is given as ${PORT}
	Health     string            `json:"health"`
	HealthFrom string            `json:"health_from,omitempty"` // the file in which the path was seen
	Env        map[string]string `json:"env,omitempty"`
}

// Traffic is recorded traffic that a load source can read.
type Traffic struct {
	Path   string `json:"path"`
	Source string `json:"source"` // otel, access_log
}

// scanner is one walk over a folder.
type scanner struct {
	root  string
	files []string // slash-separated, relative, sorted by the walk
	out   Findings
	short bool // the walk ended at a bound
}

// Scan reads dir. A folder that cannot be read at all is an error; a file that cannot be read is
// passed over.
func Scan(dir string) (Findings, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return Findings{}, fault.New(fault.MAN001, "the folder %s cannot be named", dir).Because(err)
	}
	s := &scanner{root: abs, out: Findings{Name: word(filepath.Base(abs), "project")}}
	if err := s.walk(); err != nil {
		return Findings{}, fault.New(fault.MAN001, "the folder %s cannot be read", dir).Because(err)
	}
	s.goServices()
	s.nodeServices()
	s.pythonServices()
	s.procfile()
	s.containers()
	s.traffic()
	s.settle()
	if s.short {
		s.note("the folder is large: only its first %d entries, %d levels deep, were looked at", maxEntries, maxDepth)
	}
	return s.out, nil
}

var errEnough = errors.New("enough")

// walk lists regular files. Folders that hold other people's code or build results are passed over,
// and links are not followed.
func (s *scanner) walk() error {
	n := 0
	err := filepath.WalkDir(s.root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			if p == s.root {
				return err
			}
			return nil // one folder that cannot be read does not spoil the rest
		}
		rel, err := filepath.Rel(s.root, p)
		if err != nil {
			return err
		}
		if n++; n > maxEntries {
			s.short = true
			return errEnough
		}
		if d.IsDir() {
			if rel != "." && (foreign(d.Name()) || strings.Count(filepath.ToSlash(rel), "/") >= maxDepth) {
				return fs.SkipDir
			}
			return nil
		}
		if d.Type().IsRegular() {
			s.files = append(s.files, filepath.ToSlash(rel))
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// foreign tells whether a folder holds nothing that the project serves.
func foreign(name string) bool {
	switch name {
	case "node_modules", "vendor", "dist", "build", "target", "testdata", "__pycache__", "venv", "env", "site-packages", "third_party":
		return true
	}
	return strings.HasPrefix(name, ".")
}

// text reads the beginning of a file; empty when it cannot be read.
func (s *scanner) text(rel string) string { return string(s.head(rel, maxText)) }

func (s *scanner) head(rel string, limit int64) []byte {
	path := filepath.Join(s.root, filepath.FromSlash(rel))
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil // opening a pipe would wait for its other end
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }() // only read from
	b, err := io.ReadAll(io.LimitReader(f, limit))
	if err != nil {
		return nil
	}
	return b
}

func (s *scanner) has(rel string) bool {
	_, found := slices.BinarySearch(s.files, rel)
	return found || slices.Contains(s.files, rel)
}

// named gives the files of a base name.
func (s *scanner) named(base string) []string {
	var out []string
	for _, f := range s.files {
		if path.Base(f) == base {
			out = append(out, f)
		}
	}
	return out
}

// under gives the files below a folder with one of the endings.
func (s *scanner) under(dir string, endings ...string) []string {
	var out []string
	for _, f := range s.files {
		if dir != "." && !strings.HasPrefix(f, dir+"/") {
			continue
		}
		if slices.ContainsFunc(endings, func(e string) bool { return strings.HasSuffix(f, e) }) {
			out = append(out, f)
		}
	}
	return out
}

// add proposes a service under a name of its own.
func (s *scanner) add(v Service) {
	base := word(v.Name, "service")
	v.Name = base
	for n := 2; slices.ContainsFunc(s.out.Services, func(o Service) bool { return o.Name == v.Name }); n++ {
		v.Name = base + "-" + itoa(n)
	}
	if v.Health == "" {
		v.Health = "/"
	}
	s.out.Services = append(s.out.Services, v)
}

// settle puts findings in a stable order.
func (s *scanner) settle() {
	slices.SortStableFunc(s.out.Services, func(a, b Service) int { return strings.Compare(a.Name, b.Name) })
	slices.SortStableFunc(s.out.Traffic, func(a, b Traffic) int { return strings.Compare(a.Path, b.Path) })
}
