//go:build unix && !linux

package engine

import (
	"time"

	"golang.org/x/sys/unix"
)

func processTimes() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return -1
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
