//go:build !linux

package process

import (
	"errors"
	"net/netip"
	"syscall"

	"seatrial/internal/env"
)

// errSystem is the answer to everything here: where a process cannot be proved to be ours, none is
// started and none is ended.
var errSystem = errors.New("the process driver needs Linux: elsewhere this build cannot prove which process listens on a port")

func ownSession() *syscall.SysProcAttr { return nil }

func scan() (map[int]stat, error) { return nil, errSystem }

func signal(env.Identity, bool) error { return errSystem }

func listeners(netip.AddrPort) (map[uint64]bool, error) { return nil, errSystem }

func (c clan) ownAll(map[int]stat, map[uint64]bool, netip.AddrPort) error { return errSystem }
