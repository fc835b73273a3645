//go:build !linux

package httpload

// What only the event loop uses.
type (
	loopConn struct{}
	deadline struct{}
)
