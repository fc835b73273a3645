package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestFirstRunGuide executes the commands of docs/guides/first-run.md in a copy of the example: a
// manual that does not work is a defect. Its make targets must exist; they are run by CI itself.
func TestFirstRunGuide(t *testing.T) {
	root := filepath.Join("..", "..")
	guide, err := os.ReadFile(filepath.Join(root, "docs", "guides", "first-run.md"))
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t)
	example := filepath.Join(b.dir, "examples", "chandlery")
	if err := os.CopyFS(example, os.DirFS(filepath.Join(root, "examples", "chandlery"))); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(example, ".seatrial")); err != nil {
		t.Fatal(err)
	}
	b.write("examples/chandlery/go.mod", "module chandlery\n\ngo 1.26\n")
	ran := 0
	for _, line := range shellLines(string(guide)) {
		if target, ok := strings.CutPrefix(line, "make "); ok {
			if !bytes.Contains(makefile, []byte("\n"+target+":")) {
				t.Errorf("the guide names make %s, which does not exist", target)
			}
			continue
		}
		args, ok := strings.CutPrefix(line, "./seatrial ")
		if !ok {
			t.Errorf("the guide holds a command that this test does not know: %s", line)
			continue
		}
		cmd := exec.Command(b.seatrial, strings.Fields(args)...)
		cmd.Dir = b.dir
		out, err := cmd.CombinedOutput()
		if exit := exitNumber(err); err != nil && exit != exitUnproved {
			t.Errorf("%s: exit %d\n%s", line, exit, out)
		}
		ran++
	}
	if ran < 6 {
		t.Errorf("only %d commands of the guide were found", ran)
	}
}

// shellLines are the lines of a page's sh blocks.
func shellLines(page string) []string {
	var out []string
	inside := false
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "```"):
			inside = line == "```sh"
		case inside && line != "":
			out = append(out, line)
		}
	}
	return out
}
