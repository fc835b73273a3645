//go:build unix

package engine

import (
	"math"

	"golang.org/x/sys/unix"
)

func fdLimit() int {
	var r unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &r) != nil {
		return -1
	}
	return int(min(uint64(r.Cur), math.MaxInt32)) //nolint:unconvert // the field is signed on FreeBSD
}

// raiseFDLimit brings the soft limit to the hard one when need does not fit, and gives what holds now.
func raiseFDLimit(need int) int {
	if have := fdLimit(); have < 0 || have >= need {
		return have
	}
	var r unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &r) == nil {
		r.Cur = r.Max
		_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &r) // what holds is read again
	}
	return fdLimit()
}
