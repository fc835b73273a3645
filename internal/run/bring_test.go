package run

import (
	"os"
	"path/filepath"
	"testing"

	"seatrial/fault"
	"seatrial/manifest"
)

// TestNamesNeverLeaveTheFolder: whatever name is given, nothing outside the work trees is removed.
func TestNamesNeverLeaveTheFolder(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "project")
	canaries := []string{filepath.Join(root, "other", "canary"), filepath.Join(dir, "canary"), filepath.Join(dir, ".seatrial", "canary")}
	for _, c := range canaries {
		if err := os.MkdirAll(filepath.Dir(c), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(c, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, ".seatrial", "worktrees"), 0o755); err != nil {
		t.Fatal(err)
	}
	m := &manifest.Manifest{Dir: dir, Services: map[string]manifest.Service{"shop": {Run: "true"}}}
	for _, name := range []string{"..", "../..", "../../../other", "../../other", ".", ""} {
		if _, err := (Bring{Manifest: m, Name: name}).Up(t.Context()); err == nil {
			t.Errorf("up %q succeeded", name)
		} else if e, _ := fault.As(err); e == nil || e.Code != fault.CLI001 {
			t.Errorf("up %q: %v, want CLI-001", name, err)
		}
		if err := Down(t.Context(), dir, name); err == nil {
			t.Errorf("down %q succeeded", name)
		}
		_ = removeTree(t.Context(), dir, name)
	}
	// A work tree that is a link is not followed.
	if err := os.Symlink(filepath.Join(root, "other"), filepath.Join(dir, ".seatrial", "worktrees", "q")); err != nil {
		t.Fatal(err)
	}
	if err := removeTree(t.Context(), dir, "q"); err == nil {
		t.Error("a work tree that is a link was removed")
	}
	if _, err := Prune(t.Context(), dir); err != nil {
		t.Error(err)
	}
	for _, c := range canaries {
		if _, err := os.Stat(c); err != nil {
			t.Errorf("%s is gone", c)
		}
	}
}
