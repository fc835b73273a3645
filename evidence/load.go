package evidence

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"seatrial/fault"
	"seatrial/judge"
)

// Bounds of what is read back: run folders may come from anywhere.
const (
	maxRunBytes = 64 << 20  // run.json; a run of 500 routes over 4,096 seconds takes 3 MB
	maxRuns     = 1_000_000 // folders of one root
)

// Latest names the newest run for Load.
const Latest = "latest"

// Folder is a run that was read back. Run is never nil: of an incomplete folder it holds what could
// be read, and its verdict is unverified.
type Folder struct {
	Dir     string
	Run     *Run
	Missing []string     // files that a complete run has and this one lacks
	Problem *fault.Error // EVD-003 when the evidence is incomplete, else nil
}

// Expected are the files of a complete run.
func Expected() []string {
	return []string{RunFile, "summary.csv", "series.csv", "histograms.hlog", "report.html", "report.md", "junit.xml", JournalFile, StdoutFile}
}

// List reads the runs under root, newest first, without their series, routes and findings. A root that
// does not exist holds none.
func List(root string) ([]Folder, error) {
	names, err := runNames(root)
	if err != nil {
		return nil, err
	}
	out := make([]Folder, 0, len(names))
	for _, name := range slices.Backward(names) {
		f := read(filepath.Join(root, name))
		// A list holds all of its runs in memory at once: only what it shows of each is kept.
		f.Run.Series, f.Run.Routes, f.Run.Curve, f.Run.Findings, f.Run.Plan.Checks, f.Run.Plan.Pools = nil, nil, nil, nil, nil, nil
		out = append(out, *f)
	}
	return out, nil
}

// Load reads one run: by its path, by its name or the beginning of it, or by "latest". What matches
// no run, or more than one, is EVD-002. An incomplete run is no error: see Folder.Problem.
func Load(root, ref string) (*Folder, error) {
	if strings.ContainsRune(ref, filepath.Separator) || ref == "." {
		if _, err := os.Stat(filepath.Join(ref, RunFile)); err != nil {
			return nil, fault.New(fault.EVD002, "%s is not a run folder: it holds no %s", ref, RunFile).Because(err)
		}
		return read(ref), nil
	}
	names, err := runNames(root)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fault.New(fault.EVD002, "there is no run under %s", root).
			WithNext("Run `seatrial run` first, or give --run-dir.")
	}
	if ref == Latest || ref == "" {
		return read(filepath.Join(root, names[len(names)-1])), nil
	}
	return pick(root, ref, names)
}

// pick finds the one run whose name is ref or begins with it, or whose short id is ref.
func pick(root, ref string, names []string) (*Folder, error) {
	var found []string
	for _, name := range names {
		if name == ref {
			return read(filepath.Join(root, name)), nil
		}
		if strings.HasPrefix(name, ref) || strings.HasSuffix(name, "-"+ref) {
			found = append(found, name)
		}
	}
	switch len(found) {
	case 0:
		return nil, fault.New(fault.EVD002, "no run under %s is named %q", root, ref)
	case 1:
		return read(filepath.Join(root, found[0])), nil
	}
	shown := found[:min(len(found), 5)]
	return nil, fault.New(fault.EVD002, "%q names %d runs under %s", ref, len(found), root).
		WithNext("Give more of the name; it could be %s.", strings.Join(shown, ", "))
}

// runNames are the folders under root, oldest first: their names begin with the time.
func runNames(root string) ([]string, error) {
	dir, err := os.Open(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.New(fault.EVD002, "the runs under %s cannot be read: %s", root, reason(err)).Because(err)
	}
	defer func() { _ = dir.Close() }()
	entries, err := dir.ReadDir(maxRuns)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fault.New(fault.EVD002, "the runs under %s cannot be read: %s", root, reason(err)).Because(err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// read takes what there is of a folder.
func read(dir string) *Folder {
	f := &Folder{Dir: dir}
	run, err := readRun(filepath.Join(dir, RunFile))
	if run == nil {
		run = &Run{}
	}
	f.Run = run
	if run.ID == "" {
		run.ID = filepath.Base(dir)
	}
	for _, name := range Expected() {
		if _, statErr := os.Stat(filepath.Join(dir, name)); statErr != nil {
			f.Missing = append(f.Missing, name)
		}
	}
	if f.Problem = f.problem(err); f.Problem != nil {
		run.Verdict = judge.Unverified
	}
	return f
}

func (f *Folder) problem(err error) *fault.Error {
	var says []string
	switch {
	case err != nil:
		says = append(says, err.Error())
	case !f.Run.Complete:
		says = append(says, "the run ended before its evidence was written")
	}
	if len(f.Missing) > 0 {
		says = append(says, "missing: "+strings.Join(f.Missing, ", "))
	}
	if len(says) == 0 {
		return nil
	}
	return fault.New(fault.EVD003, "the evidence of %s is incomplete: %s", filepath.Base(f.Dir), strings.Join(says, "; "))
}

// readRun reads one run.json, bounded in size and checked for its version.
func readRun(path string) (*Run, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", RunFile) // opening a pipe would wait for its other end
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be opened: %s", RunFile, reason(err))
	}
	defer func() { _ = file.Close() }()
	return Read(file)
}

// Read reads run.json's text. It takes at most 64 MiB, and refuses a version that this build does
// not know. A verdict of an incomplete run reads as unverified.
func Read(r io.Reader) (*Run, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxRunBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %s", RunFile, reason(err))
	}
	if len(b) > maxRunBytes {
		return nil, fmt.Errorf("%s is larger than %d MiB", RunFile, maxRunBytes>>20)
	}
	run := &Run{}
	if err := json.Unmarshal(b, run); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", RunFile, err)
	}
	if run.Schema < 1 || run.Schema > SchemaVersion {
		return nil, fmt.Errorf("%s has version %d; this build reads versions 1 to %d", RunFile, run.Schema, SchemaVersion)
	}
	if !run.Complete {
		run.Verdict = judge.Unverified
	}
	return run, nil
}
