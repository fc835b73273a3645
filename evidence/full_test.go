//go:build linux

package evidence_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"seatrial/evidence"
	"seatrial/fault"
	"seatrial/judge"
)

// A full disk is made with the file size limit of a child process: a write past it fails with EFBIG,
// as it does with ENOSPC, at any moment and without privileges.
const fullEnv = "SEATRIAL_TEST_FULL_ROOT"

func TestMain(m *testing.M) {
	if root := os.Getenv(fullEnv); root != "" {
		os.Exit(fillUp(root))
	}
	os.Exit(m.Run())
}

// fillUp is the child: it tells by its exit what Finish said.
func fillUp(root string) int {
	s, err := evidence.Create(root, "run", time.Now(), nil)
	if err != nil {
		return 40
	}
	limit := unix.Rlimit{Cur: 64 << 10, Max: 64 << 10}
	if unix.Setrlimit(unix.RLIMIT_FSIZE, &limit) != nil {
		return 41
	}
	run := &evidence.Run{Verdict: judge.Pass, Sentence: "pass: all held"}
	big := func(w io.Writer, _ *evidence.Run) error {
		_, err := w.Write(bytes.Repeat([]byte("x"), 1<<20))
		return err
	}
	if os.Getenv(fullEnv+"_STDOUT") != "" {
		_, _ = s.Stdout().Write(bytes.Repeat([]byte("line\n"), 1<<16))
		big = func(io.Writer, *evidence.Run) error { return nil }
	}
	err = s.Finish(run, []evidence.File{{Name: "report.html", Render: big}})
	e, ok := fault.As(err)
	if !ok || e.Code != fault.EVD001 || run.Verdict != judge.Unverified || run.Complete {
		return 42
	}
	_, _ = os.Stderr.WriteString(e.Message)
	return 0
}

func TestAFullDiskGivesNoVerdict(t *testing.T) {
	for name, extra := range map[string]string{"report.html": "", "stdout.log": fullEnv + "_STDOUT=1"} {
		root := t.TempDir()
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), fullEnv+"="+root, extra)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: child: %v: %s", name, err, out)
		}
		if !strings.Contains(string(out), name) || !strings.Contains(string(out), "file too large") {
			t.Errorf("the message does not name %s and why: %s", name, out)
		}
		f, err := evidence.Load(root, "latest")
		if err != nil {
			t.Fatal(err)
		}
		if f.Run.Complete || f.Run.Verdict != judge.Unverified || f.Problem == nil {
			t.Errorf("%s: the folder says %+v, %v", name, f.Run, f.Problem)
		}
	}
}

// A real device without room, for the system's own words.
func TestWriterOnAFullDevice(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = full.Close() }()
	w := evidence.NewRedactor().Writer(full)
	if _, err := w.Write([]byte("a line\n")); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("error is %v", err)
	}
	if err := w.Close(); err == nil {
		t.Error("Close forgot the error")
	}
}
