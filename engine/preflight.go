package engine

import "seatrial/fault"

// spareFDs is what a process needs beside its connections: evidence files, the poller, DNS, the
// control plane.
const spareFDs = 64

// Preflight raises the soft limit of file descriptors as far as the system allows, and gives GEN-004
// when the connections of a run cannot fit in it or in the range of local ports. A limit that cannot
// be read is not held against the run; running out of it is counted by Health. A local port can carry
// one connection to each of the target's addresses.
func Preflight(l Limits, addresses int) error {
	need := l.MaxConnections + spareFDs
	if have := raiseFDLimit(need); have >= 0 && have <= spareFDs {
		return fault.New(fault.GEN004, "this process may open %d file descriptors, and a run needs %d besides its connections", have, spareFDs).
			WithNext("Raise the limit (`ulimit -n %d`).", need)
	} else if have >= 0 && have < need {
		return fault.New(fault.GEN004, "%d connections need %d file descriptors, and this process may open %d", l.MaxConnections, need, have).
			WithNext("Raise the limit (`ulimit -n %d`), or set `max_connections` to %d or less.", need, have-spareFDs)
	}
	if ports := localPorts(); ports >= 0 && ports*max(1, addresses) < l.MaxConnections {
		return fault.New(fault.GEN004, "%d connections to %d address(es) need more local ports than the %d of this machine", l.MaxConnections, addresses, ports).
			WithNext("Widen the range of local ports (`net.ipv4.ip_local_port_range`), or set `max_connections` to %d or less.", ports*max(1, addresses))
	}
	return nil
}

// Machine describes the machine that sends. What cannot be read is empty, or negative.
type Machine struct {
	Kernel string
	CPU    string  // model
	Load1  float64 // load average of one minute
}
