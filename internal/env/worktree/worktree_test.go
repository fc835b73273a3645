package worktree

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"seatrial/fault"
)

// repository makes a repository with two commits that differ in app.txt.
func repository(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "my läden repo")
	run(t, "", "git", "init", "-q", dir)
	for _, v := range []string{"one", "two"} {
		write(t, filepath.Join(dir, "app.txt"), v)
		run(t, dir, "git", "add", ".")
		run(t, dir, "git", "-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false", "commit", "-q", "-m", v)
	}
	return dir
}

func run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = dir
	b, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, b)
	}
	return strings.TrimSpace(string(b))
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestAddAndRemove(t *testing.T) {
	repo := repository(t)
	write(t, filepath.Join(repo, "app.txt"), "dirty")
	into := filepath.Join(t.TempDir(), "runs", "base é")
	commit, err := Add(t.Context(), repo, "HEAD~1", into)
	if err != nil {
		t.Fatal(err)
	}
	if want := run(t, repo, "git", "rev-parse", "HEAD~1"); commit != want {
		t.Errorf("commit %s, want %s", commit, want)
	}
	if b, err := os.ReadFile(filepath.Join(into, "app.txt")); err != nil || string(b) != "one" {
		t.Errorf("the work tree holds %q, %v", b, err)
	}
	if b, err := os.ReadFile(filepath.Join(repo, "app.txt")); err != nil || string(b) != "dirty" {
		t.Errorf("the working tree was touched: %q, %v", b, err)
	}
	_, err = Add(t.Context(), repo, "HEAD", into)
	wantCode(t, err, fault.ENV008)

	write(t, filepath.Join(into, "built"), "x")
	for range 2 {
		if err := Remove(t.Context(), repo, into); err != nil {
			t.Fatal(err)
		}
	}
	if list := run(t, repo, "git", "worktree", "list"); strings.Contains(list, "base") {
		t.Errorf("git still knows: %s", list)
	}
	if _, err := os.Stat(into); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
}

func wantCode(t *testing.T, err error, code fault.Code) {
	t.Helper()
	if f, ok := fault.As(err); !ok || f.Code != code {
		t.Errorf("got %v, want %s", err, code)
	}
}

func TestAddRefuses(t *testing.T) {
	repo := repository(t)
	for _, rev := range []string{"", "-h", "--help", "nope", "HEAD:app.txt", "HEAD~9", "a b"} {
		into := filepath.Join(t.TempDir(), "w")
		_, err := Add(t.Context(), repo, rev, into)
		wantCode(t, err, fault.ENV008)
		if _, err := os.Stat(into); !os.IsNotExist(err) {
			t.Errorf("%q left a folder", rev)
		}
	}
	_, err := Add(t.Context(), t.TempDir(), "HEAD", filepath.Join(t.TempDir(), "w"))
	wantCode(t, err, fault.ENV008)
}

func TestDescribe(t *testing.T) {
	repo := repository(t)
	describe := func() Description {
		d, err := Describe(t.Context(), repo)
		if err != nil {
			t.Fatal(err)
		}
		if d.Commit != run(t, repo, "git", "rev-parse", "HEAD") {
			t.Errorf("commit %q", d.Commit)
		}
		return d
	}
	if d := describe(); d.Dirty != "" {
		t.Errorf("a clean tree has the digest %q", d.Dirty)
	}
	seen := map[string]string{"": "clean"}
	step := func(what string) string {
		d := describe().Dirty
		if before, ok := seen[d]; ok {
			t.Errorf("%s has the digest of %s", what, before)
		}
		seen[d] = what
		return d
	}
	write(t, filepath.Join(repo, "app.txt"), "three")
	changed := step("a change")
	run(t, repo, "git", "add", ".")
	if d := describe().Dirty; d != changed {
		t.Error("staging a change changed the digest")
	}
	write(t, filepath.Join(repo, "new\nfile"), "x")
	step("an untracked file")
	write(t, filepath.Join(repo, "new\nfile"), "y")
	step("other content of it")
	write(t, filepath.Join(repo, ".gitignore"), "ignored\n")
	ignoring := step("an ignore file")
	write(t, filepath.Join(repo, "ignored"), "x")
	if d := describe().Dirty; d != ignoring {
		t.Error("an ignored file changed the digest")
	}
	if err := os.Mkdir(filepath.Join(repo, ".seatrial"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(repo, ".seatrial", "run.json"), "x")
	if d := describe().Dirty; d != ignoring {
		t.Error("a file of Seatrial's own changed the digest")
	}
	big, err := os.Create(filepath.Join(repo, "big"))
	if err == nil {
		err = errors.Join(big.Truncate(maxHashed+1), big.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	step("a large file")
	if err := os.Symlink("nowhere", filepath.Join(repo, "link")); err != nil {
		t.Fatal(err)
	}
	step("a symbolic link")
}

func TestDescribeOutsideGitAndBeforeTheFirstCommit(t *testing.T) {
	t.Setenv("GIT_CEILING_DIRECTORIES", os.TempDir())
	dir := t.TempDir()
	if d, err := Describe(t.Context(), dir); err != nil || d != (Description{}) {
		t.Errorf("outside git: %+v, %v", d, err)
	}
	run(t, dir, "git", "init", "-q")
	write(t, filepath.Join(dir, "a"), "x")
	run(t, dir, "git", "add", "a")
	if d, err := Describe(t.Context(), dir); err != nil || d.Commit != "" || d.Dirty == "" {
		t.Errorf("before the first commit: %+v, %v", d, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Describe(ctx, dir); err == nil {
		t.Error("a cancelled Describe gave an answer")
	}
}
