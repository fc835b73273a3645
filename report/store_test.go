package report_test

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"seatrial/evidence"
	"seatrial/fault"
	"seatrial/report"
)

// A canary in every text of a run is in no file of its folder, in no form.
func TestNoRenderedFileHoldsACanary(t *testing.T) {
	const canary = "c4n<ry&/4f9a1c\"x"
	run := hostile("GET /x " + canary + " y")
	store, err := evidence.Create(t.TempDir(), "run", time.Now(), evidence.NewRedactor(canary))
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Finish(run, report.Files()); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(store.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(evidence.Expected()) {
		t.Errorf("%d files, want %d", len(entries), len(evidence.Expected()))
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(store.Dir(), e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for _, form := range []string{"4f9a1c", "NGY5YTFj", base64.StdEncoding.EncodeToString([]byte(canary))} {
			if bytes.Contains(b, []byte(form)) {
				t.Errorf("%s holds the canary as %q", e.Name(), form)
			}
		}
	}
	f, err := evidence.Load(filepath.Dir(store.Dir()), "latest")
	if err != nil || f.Problem != nil {
		t.Errorf("the folder reads as %v, %v", f.Problem, err)
	}
}

func TestStepSummary(t *testing.T) {
	path := filepath.Join(t.TempDir(), "summary.md")
	env := map[string]string{}
	getenv := func(k string) string { return env[k] }
	if wrote, err := report.StepSummary(sample(), getenv); wrote || err != nil {
		t.Errorf("without a file: %v, %v", wrote, err)
	}
	env[report.StepSummaryVariable] = path
	for range 2 {
		if wrote, err := report.StepSummary(sample(), getenv); !wrote || err != nil {
			t.Fatalf("%v, %v", wrote, err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil || strings.Count(string(b), "## ❌ FAIL") != 2 {
		t.Errorf("the summary is %q, %v", b, err)
	}
	env[report.StepSummaryVariable] = filepath.Join(path, "x")
	if _, err := report.StepSummary(sample(), getenv); err == nil {
		t.Error("a failed write is hidden")
	} else if e, ok := fault.As(err); !ok || e.Code != fault.EVD001 {
		t.Errorf("error is %v", err)
	}
}
