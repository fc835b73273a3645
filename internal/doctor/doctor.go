// Package doctor looks at this machine and project before a run does, and says what is missing and
// how to get it. It starts nothing and sends nothing.
package doctor

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"seatrial/internal/env"
	"seatrial/manifest"
)

// State is how a check came out.
type State string

// The states, from good to bad. What could not be measured is a Warn that says so, never OK.
const (
	OK   State = "ok"
	Warn State = "warn" // a run works, with a caveat
	Bad  State = "bad"  // a run would fail
)

// Result is the outcome of one check.
type Result struct {
	Name  string `json:"name"` // what was looked at, e.g. "file descriptors"
	State State  `json:"state"`
	Text  string `json:"text"`           // what was found, one sentence
	Next  string `json:"next,omitempty"` // what to do; empty when OK
}

func ok(name, format string, args ...any) Result {
	return Result{Name: name, State: OK, Text: fmt.Sprintf(format, args...)}
}

func warn(name, next, format string, args ...any) Result {
	return Result{Name: name, State: Warn, Text: fmt.Sprintf(format, args...), Next: next}
}

func bad(name, next, format string, args ...any) Result {
	return Result{Name: name, State: Bad, Text: fmt.Sprintf(format, args...), Next: next}
}

// Check makes every check for the project folder dir, in a fixed order. Without a manifest (nil) the
// checks that need one are left out.
func Check(ctx context.Context, dir string, m *manifest.Manifest) []Result {
	var out []Result
	out = append(out, processDriver())
	out = append(out, tools(ctx, m)...)
	out = append(out, ports(m)...)
	out = append(out, descriptors(m), processors(), disk(dir), clock(), loopback(), writable(dir))
	out = append(out, environments(dir)...)
	if m == nil {
		out = append(out, warn("manifest", "Run `seatrial init` to write one.", "there is no %s here, so nothing can be run", manifest.File))
	} else {
		out = append(out, place(m), routes(m))
		out = append(out, targets(ctx, m)...)
		out = append(out, source(m)...)
		out = append(out, patterns(m)...)
		out = append(out, carried(m)...)
	}
	return out
}

// Worst is the worst state among results; OK for none.
func Worst(results []Result) State {
	worst := OK
	for _, r := range results {
		switch r.State {
		case Bad:
			return Bad
		case Warn:
			worst = Warn
		}
	}
	return worst
}

func processDriver() Result {
	if _, known := env.Identify(os.Getpid()); !known {
		return bad("process driver", "Run Seatrial on Linux, in a virtual machine or a container if need be.",
			"this system cannot tell which process listens on a port, so no environment can be proved to be Seatrial's")
	}
	return ok("process driver", "processes can be told apart and their ports proved")
}

// connections is how many connections a run may open.
func connections(m *manifest.Manifest) int {
	if m == nil || m.Load.MaxConnections <= 0 {
		return 1000
	}
	return m.Load.MaxConnections
}

// ports checks that there are local ports enough, and that fixed ports of services are free.
func ports(m *manifest.Manifest) []Result {
	const name = "ports"
	var out []Result
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return []Result{bad(name, "Close what holds the ports.", "no free port could be had on 127.0.0.1: %v", err)}
	}
	_ = l.Close()
	need := connections(m)
	lo, hi, known := portRange()
	switch {
	case !known:
		out = append(out, warn(name, "None is needed where the system has its usual range.", "the range of local ports could not be read; a free port could be had"))
	case hi-lo+1 < need:
		out = append(out, bad(name, "Widen net.ipv4.ip_local_port_range, or lower `load.max_connections`.",
			"%d local ports are fewer than the %d connections that a run may open", hi-lo+1, need))
	default:
		out = append(out, ok(name, "%d local ports (%d to %d) for up to %d connections", hi-lo+1, lo, hi, need))
	}
	if m == nil {
		return out
	}
	for _, s := range sorted(m.Services) {
		port := m.Services[s].Port
		if port == 0 {
			continue
		}
		l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			out = append(out, warn(name, "End the process that has it, or remove `port` so that a free one is chosen.",
				"port %d of the service %s is taken now", port, s))
			continue
		}
		_ = l.Close()
	}
	return out
}

func portRange() (lo, hi int, known bool) {
	b, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return 0, 0, false
	}
	n, err := fmt.Sscan(string(b), &lo, &hi)
	return lo, hi, n == 2 && err == nil
}

// spareDescriptors is what a run needs besides its connections: files, logs, the runtime.
const spareDescriptors = 128

func descriptors(m *manifest.Manifest) Result {
	const name = "file descriptors"
	need := uint64(connections(m) + spareDescriptors)
	soft, hard, known := descriptorLimit()
	switch {
	case !known:
		return warn(name, "None is needed where the limit is above the connections of a run.", "the limit could not be read")
	case hard < need:
		return bad(name, "Raise the limit (ulimit -Hn, or limits.conf), or lower `load.max_connections`.",
			"at most %d, and a run needs %d", hard, need)
	case soft < need:
		return warn(name, fmt.Sprintf("Run `ulimit -n %d` first.", need), "the limit is %d now, and a run needs %d", soft, need)
	}
	return ok(name, "%d, and a run needs %d", soft, need)
}

func processors() Result {
	const name = "processors"
	cores := runtime.GOMAXPROCS(0)
	b, err := os.ReadFile("/proc/loadavg")
	var load float64
	if err == nil {
		_, err = fmt.Sscan(string(b), &load)
	}
	switch {
	case err != nil:
		return warn(name, "Look that nothing else keeps the machine busy.", "%d cores; their load could not be read", cores)
	case load > float64(cores)/2:
		return warn(name, "Wait until the machine is quiet: figures measured beside other work are not the service's own.",
			"%d cores with a load of %.2f", cores, load)
	case cores < 2:
		return warn(name, "Use a machine with two cores or more, so that the generator and the service do not share one.", "one core")
	}
	return ok(name, "%d cores with a load of %.2f", cores, load)
}

// Free space below which a run is in danger, in bytes.
const (
	littleSpace = 1 << 30
	noSpace     = 100 << 20
)

func disk(dir string) Result {
	const name = "disk"
	free, known := freeSpace(dir)
	mib := free >> 20
	switch {
	case !known:
		return warn(name, "Look that there is 1 GiB free.", "the free space could not be read")
	case free < noSpace:
		return bad(name, "Free some space, or use --run-dir.", "%d MiB are free; evidence may not fit", mib)
	case free < littleSpace:
		return warn(name, "Free some space, or use --run-dir.", "%d MiB are free", mib)
	}
	return ok(name, "%d MiB are free", mib)
}

func clock() Result {
	const name = "clock source"
	b, err := os.ReadFile("/sys/devices/system/clocksource/clocksource0/current_clocksource")
	source := strings.TrimSpace(string(b))
	switch {
	case err != nil:
		return warn(name, "None is needed on most machines.", "the clock source could not be read")
	case source == "hpet" || source == "acpi_pm" || source == "jiffies" || source == "refined-jiffies" || source == "pit":
		return warn(name, "See why the kernel gave the processor's own counter up (dmesg | grep -i clocksource).",
			"%s is slow to read; send times cost more than they should", source)
	}
	return ok(name, "%s", source)
}

func loopback() Result {
	const name = "loopback"
	var have, lack []string
	for _, a := range []string{"127.0.0.1", "127.0.0.2", "::1"} {
		l, err := net.Listen("tcp", net.JoinHostPort(a, "0"))
		if err != nil {
			lack = append(lack, a)
			continue
		}
		_ = l.Close()
		have = append(have, a)
	}
	switch {
	case len(have) == 0 || have[0] != "127.0.0.1":
		return bad(name, "Bring the loopback interface up (ip link set lo up).", "127.0.0.1 cannot be used")
	case len(lack) > 0:
		return warn(name, "Only needed by services that listen there.", "127.0.0.1 works, %s not", strings.Join(lack, " and "))
	}
	return ok(name, "%s work", strings.Join(have, ", "))
}

// writable makes and removes a file where a run would write: in .seatrial, or in dir if there is none.
func writable(dir string) Result {
	const name = "run folder"
	at := filepath.Join(dir, ".seatrial")
	if _, err := os.Stat(at); os.IsNotExist(err) {
		at = dir
	}
	f, err := os.CreateTemp(at, ".doctor-*")
	if err == nil {
		_, err = f.WriteString("x")
		if e := f.Close(); err == nil {
			err = e
		}
		if e := os.Remove(f.Name()); err == nil {
			err = e
		}
	}
	if err != nil {
		return bad(name, "Make the folder writable, or use --run-dir.", "%s cannot be written: %v", filepath.Base(at), cause(err))
	}
	return ok(name, "the folder %q can be written", filepath.Base(at))
}

func environments(dir string) []Result {
	const name = "environments"
	infos, err := env.List(dir)
	if err != nil {
		return []Result{warn(name, "Look at the folder .seatrial/environments.", "%v", err)}
	}
	var out []Result
	up := 0
	for _, i := range infos {
		switch i.State {
		case env.InUse, env.Kept:
			up++
		default:
			out = append(out, warn(name, "Run `seatrial env prune`.", "%s is %s", i.Name, i.State))
		}
	}
	if len(out) == 0 {
		out = append(out, ok(name, "%d up, nothing left over", up))
	}
	return out
}
