package env

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
)

// bootID is read once: it cannot change while the process lives.
var bootID = sync.OnceValue(func() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
})

// Identify gives the identity of a running process; false when there is none of that number, or
// when it has ended and only waits to be reaped.
func Identify(pid int) (Identity, bool) {
	if pid <= 0 {
		return Identity{}, false
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Identity{}, false
	}
	// The second field is the name in parentheses and may itself hold spaces and parentheses.
	end := bytes.LastIndexByte(b, ')')
	if end < 0 {
		return Identity{}, false
	}
	f := strings.Fields(string(b[end+1:]))
	if len(f) < 20 || f[0] == "Z" || f[0] == "X" {
		return Identity{}, false
	}
	start, err := strconv.ParseUint(f[19], 10, 64) // field 22 of proc(5)
	if err != nil {
		return Identity{}, false
	}
	return Identity{PID: pid, Start: start, Boot: bootID()}, true
}

// Running tells whether this very process still runs.
func (id Identity) Running() bool {
	now, ok := Identify(id.PID)
	return ok && id.Boot != "" && now == id
}
