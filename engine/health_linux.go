package engine

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// maxProc bounds what is read of one file under /proc.
const maxProc = 1 << 20

func readSystem() reading {
	return reading{cpu: processCPU(), retransmits: retransmits(slurp("/proc/net/snmp")), drops: interfaceDrops(slurp("/proc/net/dev")),
		suspended: suspended(), stolen: stolen(slurp("/proc/stat"))}
}

func slurp(name string) string {
	f, err := os.Open(name)
	if err != nil {
		return ""
	}
	b, err := io.ReadAll(io.LimitReader(f, maxProc))
	if cerr := f.Close(); err != nil || cerr != nil {
		return ""
	}
	return string(b)
}

func processCPU() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return -1
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// suspended is the time that the machine slept since it started.
func suspended() time.Duration {
	var boot, mono unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &mono) != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) != nil {
		return -1
	}
	return max(0, time.Duration(boot.Nano()-mono.Nano()))
}

// retransmits finds Tcp RetransSegs: a line of names and, below it, one of values.
func retransmits(snmp string) int64 {
	var names []string
	for line := range strings.Lines(snmp) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] != "Tcp:" {
			continue
		}
		if names == nil {
			names = f
			continue
		}
		for i, name := range names {
			if name == "RetransSegs" && i < len(f) {
				return number(f[i])
			}
		}
	}
	return -1
}

// interfaceDrops adds received and sent drops of all interfaces: fields 4 and 12 after the name.
func interfaceDrops(dev string) int64 {
	sum, seen := int64(0), false
	for line := range strings.Lines(dev) {
		_, counters, ok := strings.Cut(line, ":")
		if f := strings.Fields(counters); ok && len(f) >= 12 {
			in, out := number(f[3]), number(f[11])
			if in < 0 || out < 0 {
				return -1
			}
			sum, seen = sum+in+out, true
		}
	}
	if !seen {
		return -1
	}
	return sum
}

// stolen reads the eighth figure of the line "cpu", in hundredths of a second.
func stolen(stat string) time.Duration {
	line, _, _ := strings.Cut(stat, "\n")
	f := strings.Fields(line)
	if len(f) < 9 || f[0] != "cpu" {
		return -1
	}
	n := number(f[8])
	if n < 0 {
		return -1
	}
	return time.Duration(n) * 10 * time.Millisecond
}

func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// openFDs counts this process's file descriptors, less the one of the count itself.
func openFDs() int {
	d, err := os.Open("/proc/self/fd")
	if err != nil {
		return -1
	}
	n := -1
	for {
		names, err := d.Readdirnames(512)
		n += len(names)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			n = -1
			break
		}
	}
	if d.Close() != nil {
		return -1
	}
	return n
}

// localPorts is the size of the range from which the kernel gives ports to connects.
func localPorts() int {
	f := strings.Fields(slurp("/proc/sys/net/ipv4/ip_local_port_range"))
	if len(f) != 2 {
		return -1
	}
	lo, hi := number(f[0]), number(f[1])
	if lo < 0 || hi < lo {
		return -1
	}
	return int(hi - lo + 1)
}

// ReadMachine describes this machine.
func ReadMachine() Machine {
	m := Machine{Load1: -1}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		m.Kernel = string(u.Release[:max(0, bytes.IndexByte(u.Release[:], 0))])
	}
	for line := range strings.Lines(slurp("/proc/cpuinfo")) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			m.CPU = strings.TrimSpace(value)
			break
		}
	}
	if f := strings.Fields(slurp("/proc/loadavg")); len(f) > 0 {
		if v, err := strconv.ParseFloat(f[0], 64); err == nil {
			m.Load1 = v
		}
	}
	return m
}
