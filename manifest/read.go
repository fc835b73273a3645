package manifest

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"seatrial/fault"
)

// Override sets one value in place of the manifest's, as a command-line flag does.
type Override struct {
	Path  string // dotted path, e.g. "load.scale"
	Value string // as it would be written in the manifest
	Flag  string // what to blame when the value is not valid, e.g. "--scale"
}

// Read reads the manifest at path: a file, or a folder that holds seatrial.yaml. Every problem is
// returned at once, as a fault.List; a manifest is returned only when there is none.
func Read(path string, overrides ...Override) (*Manifest, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, File)
	}
	text, err := readBounded(path)
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, fault.New(fault.MAN001, "the folder of %s cannot be named", path).Because(err)
	}
	return parse(source{name: filepath.Base(path), text: text}, dir, overrides)
}

// Parse reads a manifest from memory; dir is the absolute folder that its paths are relative to.
func Parse(src []byte, dir string, overrides ...Override) (*Manifest, error) {
	if len(src) > maxBytes {
		return nil, tooLarge(File)
	}
	return parse(source{name: File, text: string(src)}, dir, overrides)
}

// Default is the effective configuration of a folder that has no manifest.
func Default(dir string, overrides ...Override) (*Manifest, error) {
	return parse(source{name: File, text: "version: 1\n"}, dir, overrides)
}

// readBounded reads a file of at most maxBytes.
func readBounded(path string) (string, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return "", fault.New(fault.MAN001, "%s is not a regular file", path) // opening a pipe would wait for its other end
	}
	f, err := os.Open(path)
	if err != nil {
		say := "%s cannot be opened"
		if errors.Is(err, fs.ErrNotExist) {
			say = "there is no %s"
		}
		return "", fault.New(fault.MAN001, say, path).Because(err)
	}
	defer func() { _ = f.Close() }() // only read from
	b, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return "", fault.New(fault.MAN001, "%s cannot be read", path).Because(err)
	}
	if len(b) > maxBytes {
		return "", tooLarge(filepath.Base(path))
	}
	return string(b), nil
}

func tooLarge(name string) error {
	return fault.New(fault.MAN002, "%s is larger than 1 MiB, so it is hardly a manifest", name)
}

func parse(src source, dir string, overrides []Override) (*Manifest, error) {
	src.text = strings.TrimPrefix(src.text, "\ufeff")
	root, problems := parseTree(src)
	if len(problems) > 0 {
		return nil, problems
	}
	m := &Manifest{Dir: dir, Origins: map[string]Origin{}, src: src}
	d := &decoder{src: src, origins: m.Origins, bad: map[string]bool{}}
	for _, o := range overrides {
		d.override(root, o)
	}
	d.structure("", root, reflect.ValueOf(m).Elem())
	c := &checker{decoder: d, m: m}
	c.defaults()
	c.check()
	if len(d.problems) > 0 {
		return nil, d.problems
	}
	return m, nil
}

// override places a flag's value in the tree, so that it is decoded and checked like any other.
func (d *decoder) override(root *node, o Override) {
	at := position{flag: o.Flag}
	if o.Flag == "" {
		at.flag = o.Path
	}
	n := root
	keys := split(o.Path)
	for i, key := range keys {
		f := n.get(key)
		if f == nil {
			n.fields = append(n.fields, field{key: key, at: at, value: &node{kind: mapping, at: at}})
			f = &n.fields[len(n.fields)-1]
		}
		if i == len(keys)-1 {
			f.value = &node{kind: scalar, text: o.Value, at: at}
			return
		}
		if f.value.kind != mapping {
			if f.value.kind != null {
				return // the manifest's own value is refused by its type
			}
			f.value.kind = mapping
		}
		n = f.value
	}
}

// Where tells where a value of a dotted path stands, for messages: "seatrial.yaml:12:5", a flag, or
// the file alone.
func (m *Manifest) Where(path string) string {
	at := m.position(path)
	e := m.src.problem(fault.MAN004, at, "")
	return strings.TrimSuffix(e.Message, ": ")
}

// Problem is an error about a value that only a later stage can judge; it shows where the value
// stands.
func (m *Manifest) Problem(code fault.Code, path, format string, args ...any) *fault.Error {
	return m.src.problem(code, m.position(path), format, args...)
}

func (m *Manifest) position(path string) position { return positionOf(m.Origins, path) }

// positionOf finds where a path stands; for one that nobody wrote, where its parent does.
func positionOf(origins map[string]Origin, path string) position {
	for path != "" {
		switch o := origins[path]; o.From {
		case "manifest":
			return position{line: o.Line, column: o.Column}
		case "flag":
			return position{flag: o.Why}
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return position{}
}

// Set tells whether a value was given by the manifest or a flag, not by a default.
func (m *Manifest) Set(path string) bool {
	from := m.Origins[path].From
	return from == "manifest" || from == "flag"
}

// Flagged tells whether a value was given by a flag.
func (m *Manifest) Flagged(path string) bool { return m.Origins[path].From == "flag" }

// Resolve makes a path of the manifest absolute; "-" and absolute paths stay as they are.
func (m *Manifest) Resolve(path string) string {
	if path == "-" || path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(m.Dir, path)
}
