// Package worktree checks revisions out beside the working tree, and describes what a folder holds.
// A revision is built in a work tree of its own, so that the working tree (dirty or not) is never
// touched; the build cache is shared because the environment of the build is.
package worktree

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"seatrial/fault"
)

// maxHashed is the size of the largest untracked file whose content goes into a digest, in bytes.
const maxHashed = 64 << 20

// maxOutput bounds what is kept of git's answers, in bytes.
const maxOutput = 64 << 10

// Add checks revision rev of the repository that holds repo out into the new folder into, detached,
// and gives its full commit. Nothing of the repository's own working tree changes.
func Add(ctx context.Context, repo, rev, into string) (commit string, err error) {
	if rev == "" || strings.HasPrefix(rev, "-") {
		return "", fault.New(fault.ENV008, "%q is not the name of a revision", rev)
	}
	commit, err = git(ctx, repo, "rev-parse", "--verify", "--quiet", "--end-of-options", rev+"^{commit}")
	if err != nil {
		return "", fault.New(fault.ENV008, "git knows no revision %q in %s", rev, filepath.Base(repo)).Because(err)
	}
	if _, err := os.Lstat(into); err == nil {
		return "", fault.New(fault.ENV008, "the folder %s for revision %q exists already", filepath.Base(into), rev)
	}
	if err := os.MkdirAll(filepath.Dir(into), 0o700); err != nil {
		return "", fault.New(fault.ENV008, "no folder could be made for revision %q", rev).Because(err)
	}
	if _, err := git(ctx, repo, "worktree", "add", "--detach", "--", into, commit); err != nil {
		undo := Remove(context.WithoutCancel(ctx), repo, into)
		return "", fault.New(fault.ENV008, "git could not check revision %q out", rev).
			WithDetail(err.Error()).Because(errors.Join(err, undo))
	}
	return commit, nil
}

// Remove removes a work tree that Add made, whatever was built in it. It is not an error when there
// is none.
func Remove(ctx context.Context, repo, into string) error {
	_, gitErr := git(ctx, repo, "worktree", "remove", "--force", "--force", "--", into)
	// git refuses what it does not know as its own; the folder goes all the same, and then git's
	// record of it.
	if err := os.RemoveAll(into); err != nil {
		return fault.New(fault.ENV006, "the work tree %s could not be removed", filepath.Base(into)).Because(errors.Join(err, gitErr))
	}
	if _, err := git(ctx, repo, "worktree", "prune"); err != nil {
		return fault.New(fault.ENV006, "git could not forget the work tree %s", filepath.Base(into)).Because(err)
	}
	return nil
}

// Below is where dir stands below the top of its repository: "." for the top itself.
func Below(ctx context.Context, dir string) (string, error) {
	prefix, err := git(ctx, dir, "rev-parse", "--show-prefix")
	if err != nil {
		return "", fault.New(fault.ENV008, "%s is not in a git repository", filepath.Base(dir)).Because(err)
	}
	return filepath.FromSlash(filepath.Clean(prefix)), nil
}

// Description says which revision a folder holds.
type Description struct {
	Commit string // full commit; empty outside git, or before the first commit
	Dirty  string // digest of what differs from Commit; empty when nothing does
}

// Describe gives the commit of dir and a digest of how dir differs from it: SHA-256 over the binary
// `git diff HEAD` below dir and over the names, modes and contents of untracked files that git does
// not ignore, in the order of their names; of an untracked file beyond 64 MiB the size and time of
// change stand for the content. Untracked files in .seatrial are Seatrial's own and do not count.
// Outside git both are empty.
func Describe(ctx context.Context, dir string) (Description, error) {
	if inside, err := git(ctx, dir, "rev-parse", "--is-inside-work-tree"); err != nil || inside != "true" {
		return Description{}, ctx.Err()
	}
	var d Description
	base := "HEAD"
	commit, err := git(ctx, dir, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if err == nil {
		d.Commit = commit
	} else if base, err = git(ctx, dir, "hash-object", "-t", "tree", "--stdin"); err != nil { // the empty tree
		return Description{}, describeFault(dir, err)
	}
	h := sha256.New()
	n := counter{w: h}
	if err := stream(ctx, dir, &n, "diff", "--binary", "--no-color", "--no-ext-diff", "--no-textconv", base, "--", "."); err != nil {
		return Description{}, describeFault(dir, err)
	}
	var names bytes.Buffer
	if err := stream(ctx, dir, &names, "ls-files", "--others", "--exclude-standard", "-z", "--", ".", ":(exclude).seatrial"); err != nil {
		return Description{}, describeFault(dir, err)
	}
	untracked := slices.DeleteFunc(strings.Split(names.String(), "\x00"), func(s string) bool { return s == "" })
	slices.Sort(untracked)
	for _, name := range untracked {
		if err := ctx.Err(); err != nil {
			return Description{}, err
		}
		if err := hashFile(&n, dir, name); err != nil {
			return Description{}, describeFault(dir, err)
		}
	}
	if n.n > 0 {
		d.Dirty = "sha256:" + hex.EncodeToString(h.Sum(nil))
	}
	return d, nil
}

func describeFault(dir string, err error) error {
	return fault.New(fault.ENV008, "git could not tell what %s holds", filepath.Base(dir)).Because(err)
}

// counter counts what goes into a digest: an empty one means clean.
type counter struct {
	w hash.Hash
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	c.n += int64(len(b))
	return c.w.Write(b)
}

func hashFile(w io.Writer, dir, name string) error {
	path := filepath.Join(dir, filepath.FromSlash(name))
	info, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // it went between the listing and now
	}
	if err != nil {
		return err
	}
	// Names and sizes are written with their lengths, so that no two sets of files look alike.
	if _, err := fmt.Fprintf(w, "%d:%s %v %d\n", len(name), name, info.Mode(), info.Size()); err != nil {
		return err
	}
	switch {
	case info.Mode()&os.ModeSymlink != 0:
		to, err := os.Readlink(path)
		if err == nil {
			_, err = io.WriteString(w, to)
		}
		return err
	case !info.Mode().IsRegular():
		return nil // a repository inside, a socket, a pipe: the name counts, reading could block
	}
	if info.Size() > maxHashed {
		_, err := fmt.Fprintf(w, "%d\n", info.ModTime().UnixNano())
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	_, err = io.Copy(w, f)
	return err
}

// git runs one command and gives its trimmed output.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	var out bounded
	err := stream(ctx, dir, &out, args...)
	return strings.TrimSpace(out.String()), err
}

// stream runs one command of git with its output to w. Variables by which a calling hook points git
// at another repository are left out, and git never asks for anything.
func stream(ctx context.Context, dir string, w io.Writer, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir, "-c", "core.quotePath=false", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"}, args...)...)
	for _, kv := range os.Environ() {
		k, _, _ := strings.Cut(kv, "=")
		switch k {
		case "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY":
			continue
		}
		cmd.Env = append(cmd.Env, kv)
	}
	cmd.Env = append(cmd.Env, "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "LC_ALL=C")
	var stderr bounded
	cmd.Stdout, cmd.Stderr = w, &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return nil
}

// bounded keeps the first maxOutput bytes.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if room := maxOutput - b.Len(); room > 0 {
		_, _ = b.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
