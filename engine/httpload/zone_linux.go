package httpload

import (
	"net"
	"strconv"
)

// zone gives the number of an IPv6 zone, which is a number already or the name of an interface.
func zone(name string) uint32 {
	if name == "" {
		return 0
	}
	if n, err := strconv.ParseUint(name, 10, 32); err == nil {
		return uint32(n)
	}
	if i, err := net.InterfaceByName(name); err == nil {
		return uint32(i.Index)
	}
	return 0
}
