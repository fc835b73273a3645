package evidence_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"seatrial/evidence"
	"seatrial/fault"
	"seatrial/judge"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.FixedZone("x", 3600))

func TestStoreWritesIncompleteFirstAndCompleteLast(t *testing.T) {
	root := filepath.Join(t.TempDir(), "runs")
	s, err := evidence.Create(root, "run", noon, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^20260304T110000Z-run-[0-9a-f]{6}$`).MatchString(s.ID()) {
		t.Errorf("folder is named %q", s.ID())
	}
	if info, err := os.Stat(s.Dir()); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("folder has mode %v, %v", info.Mode(), err)
	}
	f, err := evidence.Load(root, "latest")
	if err != nil {
		t.Fatal(err)
	}
	if f.Run.Complete || f.Run.Verdict != judge.Unverified || f.Problem == nil || f.Problem.Code != fault.EVD003 {
		t.Errorf("the first run.json: %+v, %v", f.Run, f.Problem)
	}
	run := &evidence.Run{Command: "run", Started: noon, Verdict: judge.Pass, Sentence: "pass: held"}
	if err := s.WriteRun(run); err != nil {
		t.Fatal(err)
	}
	if f, _ = evidence.Load(root, s.ID()); f.Run.Verdict != judge.Unverified || f.Run.Complete {
		t.Error("a state on the way has a verdict")
	}
	if err := s.Journal("start", map[string]any{"n": 1, "error": errors.New("x")}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(s.Stdout(), "a line\nhalf"); err != nil {
		t.Fatal(err)
	}
	var seen []string
	files := fileSet(func(name string) func(io.Writer, *evidence.Run) error {
		return func(w io.Writer, run *evidence.Run) error {
			seen = append(seen, name)
			if b, _ := os.ReadFile(filepath.Join(s.Dir(), evidence.RunFile)); !bytes.Contains(b, []byte(`"complete": false`)) {
				t.Errorf("run.json is complete before %s is written", name)
			}
			_, err := io.WriteString(w, name)
			return err
		}
	})
	if err := s.Finish(run, files); err != nil {
		t.Fatal(err)
	}
	if !run.Complete || run.ID != s.ID() || len(seen) != len(files) {
		t.Errorf("run %+v, rendered %q", run, seen)
	}
	if f, err = evidence.Load(root, s.ID()[:12]); err != nil || f.Problem != nil || f.Run.Verdict != judge.Pass {
		t.Fatalf("complete run reads as %+v, %v, %v", f, f.Problem, err)
	}
	if b, _ := os.ReadFile(filepath.Join(s.Dir(), evidence.StdoutFile)); string(b) != "a line\nhalf" {
		t.Errorf("stdout.log is %q", b)
	}
	for _, e := range dirNames(t, s.Dir()) {
		if strings.HasPrefix(e, ".") {
			t.Errorf("%s was left behind", e)
		}
	}
}

func fileSet(render func(string) func(io.Writer, *evidence.Run) error) []evidence.File {
	var out []evidence.File
	for _, name := range evidence.Expected() {
		if name != evidence.RunFile && name != evidence.JournalFile && name != evidence.StdoutFile {
			out = append(out, evidence.File{Name: name, Render: render(name)})
		}
	}
	return out
}

func dirNames(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestAFailingRendererTakesTheVerdictAway(t *testing.T) {
	root := t.TempDir()
	s, err := evidence.Create(root, "run", noon, nil)
	if err != nil {
		t.Fatal(err)
	}
	run := &evidence.Run{Verdict: judge.Pass, Sentence: "pass"}
	err = s.Finish(run, fileSet(func(name string) func(io.Writer, *evidence.Run) error {
		return func(w io.Writer, _ *evidence.Run) error {
			if name == "junit.xml" {
				return errors.New("no room, password=hunter2")
			}
			_, err := io.WriteString(w, "pass")
			return err
		}
	}))
	if e, ok := fault.As(err); !ok || e.Code != fault.EVD001 || strings.Contains(e.Message, "hunter2") || !strings.Contains(e.Message, "junit.xml") {
		t.Fatalf("error is %v", err)
	}
	if run.Verdict != judge.Unverified || run.Complete {
		t.Errorf("the run keeps its verdict: %+v", run)
	}
	f, err := evidence.Load(root, s.ID())
	if err != nil {
		t.Fatal(err)
	}
	if f.Run.Complete || f.Run.Verdict != judge.Unverified || f.Problem == nil || len(f.Run.Causes) != 1 {
		t.Errorf("the folder says %+v, %v", f.Run, f.Problem)
	}
	if slices.Contains(dirNames(t, s.Dir()), "report.html") {
		t.Error("a page with a verdict was left behind")
	}
}

func TestARootThatCannotBeMade(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := evidence.Create(filepath.Join(file, "runs"), "run", noon, nil)
	if e, ok := fault.As(err); !ok || e.Code != fault.EVD001 {
		t.Errorf("error is %v", err)
	}
}

func TestLoadFindsByPrefixSuffixAndPath(t *testing.T) {
	root := t.TempDir()
	if _, err := evidence.Load(root, "latest"); !isCode(err, fault.EVD002) {
		t.Errorf("no run at all: %v", err)
	}
	var ids []string
	for i := range 2 {
		s, err := evidence.Create(root, "run", noon.Add(time.Duration(i)*time.Minute), nil)
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		ids = append(ids, s.ID())
	}
	for _, c := range []struct{ ref, want string }{
		{"latest", ids[1]}, {"", ids[1]}, {ids[0], ids[0]}, {"20260304T1100", ids[0]},
		{ids[0][len(ids[0])-6:], ids[0]}, {filepath.Join(root, ids[0]), ids[0]},
	} {
		f, err := evidence.Load(root, c.ref)
		if err != nil || filepath.Base(f.Dir) != c.want {
			t.Errorf("%q: %v, %v", c.ref, f, err)
		}
	}
	for _, ref := range []string{"2026", "nothing", root, "../nothing"} {
		if _, err := evidence.Load(root, ref); !isCode(err, fault.EVD002) {
			t.Errorf("%q: %v", ref, err)
		}
	}
	list, err := evidence.List(root)
	if err != nil || len(list) != 2 || filepath.Base(list[0].Dir) != ids[1] {
		t.Errorf("list %v, %v", list, err)
	}
	if list, err := evidence.List(filepath.Join(root, "nothing")); err != nil || len(list) != 0 {
		t.Errorf("list of no root: %v, %v", list, err)
	}
}

func isCode(err error, code fault.Code) bool {
	e, ok := fault.As(err)
	return ok && e.Code == code
}

func TestDamagedRunsReadAsUnverified(t *testing.T) {
	for _, text := range []string{"", "{", "[]", "null", `{"schema":99,"complete":true,"verdict":"pass"}`,
		`{"verdict":"pass","complete":true}`, `{"schema":1,"verdict":"pass","complete":false}`,
		strings.Repeat("[", 100_000), `{"schema":1,"complete":true,"verdict":7}`} {
		root := t.TempDir()
		dir := filepath.Join(root, "20260304T110000Z-run-abcdef")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, evidence.RunFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := evidence.Load(root, "latest")
		if err != nil {
			t.Fatal(err)
		}
		if f.Problem == nil || f.Problem.Code != fault.EVD003 || f.Run.Verdict != judge.Unverified || f.Run.ID == "" {
			t.Errorf("%.40q reads as %+v, %v", text, f.Run, f.Problem)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"schema":1,"complete":true,"verdict":"pass","routes":[{"name":"GET /"}]}`))
	f.Add([]byte(`{"schema":1,"complete":false,"verdict":"pass"}`))
	f.Add([]byte(`{"schema":1,"series":[{"t":-1}],"total":{"p50_ms":1e308}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		run, err := evidence.Read(bytes.NewReader(b))
		if err != nil {
			if run != nil {
				t.Fatal("a run beside an error")
			}
			return
		}
		if !run.Complete && run.Verdict != judge.Unverified {
			t.Fatal("an incomplete run has a verdict")
		}
		var out bytes.Buffer
		if err := evidence.Write(&out, run); err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		if _, err := evidence.Read(&out); err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
	})
}

// The canary test: secrets planted in every text that reaches the store are in none of its files.
func TestNoFileHoldsACanary(t *testing.T) {
	const canary = "canary/4f9a1c+"
	s, err := evidence.Create(t.TempDir(), "run", noon, evidence.NewRedactor(canary))
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]any{"url": "http://u:" + canary + "@h", "password": canary, "nested": map[string]any{"x": []any{canary}},
		"struct": struct{ A string }{canary}, "error": fmt.Errorf("x: %s", canary), canary: 1}
	if err := s.Journal("x "+canary, fields); err != nil {
		t.Fatal(err)
	}
	out := s.Stdout()
	for _, part := range []string{"log " + canary[:5], canary[5:] + "\nCookie: sid=" + "other-canary-77\n"} {
		if _, err := io.WriteString(out, part); err != nil {
			t.Fatal(err)
		}
	}
	run := &evidence.Run{Sentence: canary, Reproduce: "TOKEN=other-canary-77 seatrial run", Target: evidence.TargetInfo{URL: "http://u:other-canary-77@h/"},
		Routes: []evidence.RouteResult{{Name: "GET /" + canary}}, Plan: evidence.PlanInfo{Pools: map[string]string{canary: canary}},
		Findings: []judge.Finding{{Reason: canary}}, Causes: []evidence.Cause{{Message: canary}}}
	files := fileSet(func(string) func(io.Writer, *evidence.Run) error {
		return func(w io.Writer, run *evidence.Run) error { return evidence.Write(w, run) }
	})
	if err := s.Finish(run, files); err != nil {
		t.Fatal(err)
	}
	if run.Sentence != evidence.Mask {
		t.Errorf("the caller goes on with %q", run.Sentence)
	}
	for _, name := range dirNames(t, s.Dir()) {
		b, err := os.ReadFile(filepath.Join(s.Dir(), name))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(b, []byte(canary)) || bytes.Contains(b, []byte("other-canary-77")) {
			t.Errorf("%s holds a canary:\n%s", name, b)
		}
		if name == evidence.JournalFile {
			for line := range bytes.Lines(b) {
				if !json.Valid(line) {
					t.Errorf("journal line %s", line)
				}
			}
		}
	}
}
