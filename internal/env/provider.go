package env

import (
	"context"
	"net/netip"

	"seatrial/manifest"
)

// Names of the variables that mark every process of an environment. A process that left its session
// is found again by them; Token is the environment's own and cannot be guessed.
const (
	MarkerEnv  = "SEATRIAL_ENV"  // the environment's token
	MarkerUnit = "SEATRIAL_UNIT" // the unit's ID, e.g. "catalogue/0"
)

// Unit is one thing that a Provider builds or starts: a replica of a service with every
// substitution made.
type Unit struct {
	ID        string // "catalogue/0", or "catalogue/build"
	Service   string
	Replica   int
	Token     string             // the environment's token, 64 hex digits
	Dir       string             // absolute working directory
	Command   string             // shell command line
	Env       []string           // the whole environment, KEY=VALUE, markers included
	Port      int                // TCP port that the unit is to listen on; 0 for a build
	Log       string             // absolute path of the file that takes standard output and error
	Resources manifest.Resources // what the unit may use
}

// Resource is one thing that exists outside Seatrial and has to be removed again. It is journalled
// before it is made (then Process is zero) and once more when it exists.
type Resource struct {
	Kind    string   `json:"kind"` // "process"
	ID      string   `json:"id"`   // Unit.ID
	Service string   `json:"service"`
	Replica int      `json:"replica"`
	Process Identity `json:"process"`        // leader of the session; zero while only intended
	Port    int      `json:"port,omitempty"` // 0 for a build
}

// Identity names one process for good: a number alone can be given to another process later.
type Identity struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start_ticks"` // clock ticks between boot and the start of the process
	Boot  string `json:"boot_id"`     // the kernel's identifier of this boot
}

// Instance is a started unit.
type Instance struct {
	Resource Resource
	Exited   <-chan struct{} // closed when the process that was started has ended
	Status   func() string   // how it ended, e.g. "exit status 1"; valid once Exited is closed
}

// Provider builds, starts, proves and removes units. There is one implementation per driver, and one
// conformance suite over all of them (package envtest). A Provider keeps no record of its own: the
// ledger is the only one, because it outlives the process.
type Provider interface {
	// Name is the driver's name, e.g. "process"; it is Resource.Kind too.
	Name() string
	// Build runs a build to its end, output to u.Log. When ctx ends it stops the build and what the
	// build started.
	Build(ctx context.Context, u Unit) error
	// Start starts a unit and returns as soon as it exists; it does not wait until it is ready.
	Start(ctx context.Context, u Unit) (Instance, error)
	// Alive tells whether the resource still exists as it was started.
	Alive(r Resource) bool
	// Prove returns nil only if what accepts connections on addr is r and nothing else.
	Prove(token string, r Resource, addr netip.AddrPort) error
	// Remove removes r and all that belongs to it: it asks first, waits, then forces. It removes
	// nothing else, whatever r says, and returns nil when r does not exist. When ctx has ended it
	// forces at once.
	Remove(ctx context.Context, token string, r Resource) error
	// Sweep removes everything that carries the token, whether journalled or not.
	Sweep(ctx context.Context, token string) error
	// Notes says which of the declared resources this driver cannot enforce, one sentence each.
	Notes(service string, r manifest.Resources) []string
}
