package input

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPlaces(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(path, path+"2"); err != nil {
		t.Fatal(err)
	}
	set, err := Open([]string{"-", "a"}, strings.NewReader(""), dir)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path + "2")
	if err != nil || !set.Holds(info) {
		t.Errorf("the same file by another name is an input: %v", err)
	}
	if set.Folder() != "" || !set.Next() || set.Folder() != "" || !set.Next() || set.Folder() != dir {
		t.Errorf("folder %q, want none before and for standard input, then %q", set.Folder(), dir)
	}
}
