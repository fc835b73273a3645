package httpload

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	pollBatch = 256
	// rawWait is the longest wait that the runtime is not told of. Telling it costs a hand-over of
	// the processor and back; not telling it holds up a garbage collection that begins meanwhile,
	// by this much at most.
	rawWait = 200 * time.Microsecond
	// longWait bounds every wait.
	longWait = time.Second
	// spin is the last stretch before a due time that a precise loop does not sleep.
	spin = 50 * time.Microsecond
)

// poller is an epoll instance with an eventfd that wakes it.
type poller struct {
	fd     int
	wake   int
	events [pollBatch]unix.EpollEvent
	ts     unix.Timespec
	old    bool // the kernel has no epoll_pwait2: waits are whole milliseconds
}

func newPoller() (*poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	wake, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	p := &poller{fd: fd, wake: wake}
	if err := p.add(wake, 0, 0, unix.EPOLLIN); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *poller) close() {
	_ = unix.Close(p.wake)
	_ = unix.Close(p.fd)
}

// everything is what a connection waits for, told once and for each change.
const everything = unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET&0xffffffff

// add registers a descriptor; slot and generation come back with its events.
func (p *poller) add(fd int, slot, generation int32, events uint32) error {
	return unix.EpollCtl(p.fd, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: slot, Pad: generation})
}

// Wake ends a wait from another goroutine.
func (p *poller) Wake() {
	one := [8]byte{1}
	_, _ = unix.Write(p.wake, one[:])
}

// awake takes the wake-ups that came.
func (p *poller) awake() {
	var b [8]byte
	_, _ = unix.Read(p.wake, b[:])
}

// wait gives events, after d at the latest; none for d <= 0 unless they are there.
func (p *poller) wait(d time.Duration) []unix.EpollEvent {
	d = min(max(d, 0), longWait)
	var n uintptr
	var e unix.Errno
	p.ts = unix.NsecToTimespec(int64(d))
	switch {
	case p.old:
		n, _, e = unix.Syscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.fd), uintptr(unsafe.Pointer(&p.events)), pollBatch,
			uintptr((d+time.Millisecond-1)/time.Millisecond), 0, 8)
	case d <= rawWait:
		n, _, e = unix.RawSyscall6(unix.SYS_EPOLL_PWAIT2, uintptr(p.fd), uintptr(unsafe.Pointer(&p.events)), pollBatch,
			uintptr(unsafe.Pointer(&p.ts)), 0, 8)
	default:
		n, _, e = unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(p.fd), uintptr(unsafe.Pointer(&p.events)), pollBatch,
			uintptr(unsafe.Pointer(&p.ts)), 0, 8)
	}
	switch e {
	case 0:
		return p.events[:n]
	case unix.ENOSYS:
		p.old = true
	}
	return nil
}

// readRaw and writeRaw are for descriptors that never block. They do not tell the runtime: that costs
// more than the call.
func readRaw(fd int, b []byte) (int, unix.Errno) {
	n, _, e := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	if e != 0 {
		return 0, e
	}
	return int(n), 0
}

func writeRaw(fd int, b []byte) (int, unix.Errno) {
	n, _, e := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), unix.MSG_NOSIGNAL, 0, 0)
	if e != 0 {
		return 0, e
	}
	return int(n), 0
}
