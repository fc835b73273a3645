package process

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"seatrial/internal/env"
)

// maxEnviron bounds how much of a process's environment is read; Linux allows 128 KiB a string.
const maxEnviron = 2 << 20

// ownSession keeps a service apart from the terminal's signals and gives its processes a common mark.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// scan reads every live process that this user can see.
func scan() (map[int]stat, error) {
	names, err := pids()
	if err != nil {
		return nil, err
	}
	out := make(map[int]stat, len(names))
	for _, pid := range names {
		if s, ok := readStat(pid); ok {
			out[pid] = s
		}
	}
	return out, nil
}

func pids() ([]int, error) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var out []int
	for _, n := range names {
		if pid, err := strconv.Atoi(n); err == nil {
			out = append(out, pid)
		}
	}
	return out, nil
}

func readStat(pid int) (stat, bool) {
	id, ok := env.Identify(pid)
	if !ok {
		return stat{}, false
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	end := bytes.LastIndexByte(b, ')')
	if err != nil || end < 0 {
		return stat{}, false
	}
	f := strings.Fields(string(b[end+1:]))
	if len(f) < 4 {
		return stat{}, false
	}
	s := stat{identity: id}
	s.parent, _ = strconv.Atoi(f[1])
	s.sid, _ = strconv.Atoi(f[3])
	s.token, s.unit = readMarkers(pid)
	return s, true
}

// readMarkers reads the marker variables as they were when the process was executed.
func readMarkers(pid int) (token, unit string) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return "", ""
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, maxEnviron))
	if err != nil {
		return "", ""
	}
	for kv := range bytes.SplitSeq(b, []byte{0}) {
		if v, ok := bytes.CutPrefix(kv, []byte(env.MarkerEnv+"=")); ok {
			token = string(v)
		} else if v, ok := bytes.CutPrefix(kv, []byte(env.MarkerUnit+"=")); ok {
			unit = string(v)
		}
	}
	return token, unit
}

// signal ends exactly the process of that identity: the descriptor pins it before its start time is
// compared, so that its number cannot pass to another in between.
func signal(id env.Identity, force bool) error {
	sig := unix.SIGTERM
	if force {
		sig = unix.SIGKILL
	}
	fd, err := unix.PidfdOpen(id.PID, 0)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) { // old kernels, some sandboxes
		if !id.Running() {
			return nil
		}
		return ignoreGone(unix.Kill(id.PID, sig))
	}
	if err != nil {
		return ignoreGone(err)
	}
	defer func() { _ = unix.Close(fd) }()
	if !id.Running() {
		return nil
	}
	return ignoreGone(unix.PidfdSendSignal(fd, sig, nil, 0))
}

func ignoreGone(err error) error {
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// listeners gives the inodes of all sockets that could accept a connection to addr: those bound to
// the address itself and those bound to all addresses.
func listeners(addr netip.AddrPort) (map[uint64]bool, error) {
	out := map[uint64]bool{}
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		f, err := os.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // IPv6 is off
		}
		if err != nil {
			return nil, err
		}
		err = readListeners(f, addr, out)
		_ = f.Close()
		if err != nil {
			return nil, fmt.Errorf("the kernel's socket table cannot be read: %w", err)
		}
	}
	return out, nil
}

const listening = "0A" // TCP_LISTEN

// readListeners reads one table of proc(5): "sl local_address rem_address st ... inode".
func readListeners(r io.Reader, addr netip.AddrPort, out map[uint64]bool) error {
	in := bufio.NewScanner(r)
	for in.Scan() {
		f := strings.Fields(in.Text())
		if len(f) < 10 || f[3] != listening {
			continue
		}
		local, ok := parseLocal(f[1])
		if !ok || local.Port() != addr.Port() {
			continue
		}
		ip := local.Addr().Unmap()
		if ip != addr.Addr().Unmap() && !ip.IsUnspecified() {
			continue
		}
		inode, err := strconv.ParseUint(f[9], 10, 64)
		if err != nil {
			return err
		}
		out[inode] = true
	}
	return in.Err()
}

// parseLocal reads "0100007F:1F90": each 32-bit word of the address in the machine's byte order.
func parseLocal(s string) (netip.AddrPort, bool) {
	host, port, ok := strings.Cut(s, ":")
	b, err := hex.DecodeString(host)
	n, perr := strconv.ParseUint(port, 16, 16)
	if !ok || err != nil || perr != nil || (len(b) != 4 && len(b) != 16) {
		return netip.AddrPort{}, false
	}
	for i := 0; i < len(b); i += 4 {
		binary.NativeEndian.PutUint32(b[i:], binary.BigEndian.Uint32(b[i:]))
	}
	ip, _ := netip.AddrFromSlice(b)
	return netip.AddrPortFrom(ip, uint16(n)), true
}

// ownAll tells whether every one of the sockets is held by a member, and by nobody else.
func (c clan) ownAll(procs map[int]stat, sockets map[uint64]bool, addr netip.AddrPort) error {
	owned := map[uint64]bool{}
	for pid := range procs {
		for _, inode := range held(pid, sockets) {
			if _, ok := c.members[pid]; !ok {
				return fmt.Errorf("process %d, which is not of this environment, listens on %s", pid, addr)
			}
			owned[inode] = true
		}
	}
	if len(owned) < len(sockets) {
		return fmt.Errorf("a process that this user cannot see listens on %s", addr)
	}
	return nil
}

// held gives those of the sockets that a process has open.
func held(pid int, sockets map[uint64]bool) []uint64 {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer func() { _ = d.Close() }()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil
	}
	var out []uint64
	for _, n := range names {
		link, err := os.Readlink(dir + "/" + n)
		num, ok := strings.CutPrefix(link, "socket:[")
		if err != nil || !ok {
			continue
		}
		inode, err := strconv.ParseUint(strings.TrimSuffix(num, "]"), 10, 64)
		if err == nil && sockets[inode] {
			out = append(out, inode)
		}
	}
	return out
}
