package input

import (
	"os"
	"path/filepath"
)

// Folder is the folder of the current input; empty for standard input, which has none.
func (s *Set) Folder() string {
	if s.next == 0 || s.paths[s.next-1].open == "-" {
		return ""
	}
	return filepath.Dir(s.paths[s.next-1].open)
}

// Holds tells whether a file, by whatever name, is one of the inputs.
func (s *Set) Holds(file os.FileInfo) bool {
	for _, p := range s.paths {
		if p.open == "-" {
			continue
		}
		if info, err := os.Stat(p.open); err == nil && os.SameFile(info, file) {
			return true
		}
	}
	return false
}
