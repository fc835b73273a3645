package engine

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// sharp is the last stretch of a wait, which the kernel sleeps and not the runtime: an idle runtime
// waits in whole milliseconds.
const sharp = 2 * time.Millisecond

// sharpen takes a thread and asks for the least timer slack, which is 50 us otherwise. A kernel that
// refuses costs that much and no more.
func sharpen() {
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
}

// blunt undoes sharpen: the thread goes back to others with the default slack.
func blunt() {
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0)
	runtime.UnlockOSThread()
}

// sleep sleeps in the kernel; it may return early, when a signal comes.
func sleep(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&ts, nil)
}
