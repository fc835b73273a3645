package run

import (
	"os"
	"path/filepath"
)

// ignored is what version control should leave out of .seatrial. A traffic profile there is for
// committing.
const ignored = "# written by seatrial; the traffic profile is for committing\n/runs/\n/partials/\n/environments/\n/worktrees/\n/bin/\n"

// Ignore writes .seatrial/.gitignore into a project, unless there is one. That it cannot be written is
// found again where it matters.
func Ignore(dir string) {
	own := filepath.Join(dir, ".seatrial")
	if os.MkdirAll(own, 0o755) != nil {
		return
	}
	f, err := os.OpenFile(filepath.Join(own, ".gitignore"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return
	}
	_, _ = f.WriteString(ignored)
	_ = f.Close()
}
