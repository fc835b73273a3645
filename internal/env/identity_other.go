//go:build !linux

package env

// Identify gives the identity of a running process. On this system it cannot be told apart from a
// later process of the same number, so none is ever given.
func Identify(int) (Identity, bool) { return Identity{}, false }

// Running tells whether this very process still runs; false where that cannot be known.
func (id Identity) Running() bool { return false }
