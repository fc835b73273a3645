//go:build linux || darwin

package doctor

import "golang.org/x/sys/unix"

// descriptorLimit gives the soft and hard limit of open files.
func descriptorLimit() (soft, hard uint64, known bool) {
	var r unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &r) != nil {
		return 0, 0, false
	}
	return r.Cur, r.Max, true
}

// freeSpace gives the bytes that this user may still write below dir.
func freeSpace(dir string) (uint64, bool) {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil || s.Bsize <= 0 {
		return 0, false
	}
	return uint64(s.Bavail) * uint64(s.Bsize), true //nolint:unconvert // the fields differ in type from system to system
}
