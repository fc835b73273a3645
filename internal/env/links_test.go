package env

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"seatrial/fault"
)

// TestNothingGoesThroughALink: folders of the ledger that are links are refused, and what they point at
// stays as it is.
func TestNothingGoesThroughALink(t *testing.T) {
	for _, link := range []string{"environments/q", "environments/.logs", "environments/.locks", "environments", "environments/.logs/q"} {
		t.Run(link, func(t *testing.T) {
			dir, away := t.TempDir(), t.TempDir()
			if err := os.Mkdir(filepath.Join(away, "logs"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(away, "logs", "canary"), []byte("x"), 0o644); err != nil {
				t.Fatal(err)
			}
			at := filepath.Join(dir, ".seatrial", link)
			if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(away, at); err != nil {
				t.Fatal(err)
			}
			if _, err := acquire(dir, "q"); err == nil {
				t.Error("the lock was taken through a link")
			} else if e, _ := fault.As(err); e == nil || e.Code != fault.ENV010 {
				t.Errorf("%v, want ENV-010", err)
			}
			if err := Down(t.Context(), dir, "q", nil); err == nil {
				t.Error("something was taken down through a link")
			}
			entries, err := os.ReadDir(away)
			if err != nil || len(entries) != 1 {
				t.Errorf("what the link points at was touched: %v, %v", entries, err)
			}
			if _, err := os.Stat(filepath.Join(away, "logs", "canary")); err != nil {
				t.Errorf("the canary is gone: %v", err)
			}
		})
	}
}

// TestALostTokenIsNoTearDown: when nothing can be proved, what may be left is said.
func TestALostTokenIsNoTearDown(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(envDir(dir, "q"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{filePath(dir, "q"), journalAt(dir, "q")} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	err := Down(t.Context(), dir, "q", nil)
	if e, _ := fault.As(err); e == nil || e.Code != fault.ENV006 {
		t.Errorf("%v, want ENV-006", err)
	}
	if !Exists(dir, "q") {
		t.Error("the ledger of what may be left is gone")
	}
}

// TestNames: what is no name never becomes a path.
func TestNames(t *testing.T) {
	for _, name := range []string{"", ".", "..", "../x", "a/b", `a\b`, ".hidden", "a\x00b", "../../.."} {
		if CheckName(name) == nil {
			t.Errorf("%q is taken for a name", name)
		}
	}
}

// TestLogsOfTheLastEnvironmentsAreKept: every run leaves logs, and only those of the last ones stay.
func TestLogsOfTheLastEnvironmentsAreKept(t *testing.T) {
	dir := t.TempDir()
	for i := range keptLogs + 5 {
		name := fmt.Sprintf("run-%02d", i)
		if err := os.MkdirAll(liveLogDir(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		keepLogs(dir, name)
		at := time.Now().Add(time.Duration(i-100) * time.Minute) // one after the other
		if err := os.Chtimes(oldLogDir(dir, name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	left, err := os.ReadDir(filepath.Dir(oldLogDir(dir, "x")))
	if err != nil || len(left) != keptLogs || left[0].Name() != "run-05" {
		t.Errorf("%d logs are left, the first is %v: %v", len(left), left[0], err)
	}
}
