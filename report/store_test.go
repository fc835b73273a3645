package report_test

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"
	"time"

	"seatrial/evidence"
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
