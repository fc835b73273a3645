//go:build !linux

package httpload

// stallServer is for Linux, where two processes can read one monotonic clock.
func stallServer(string) { panic("no such server on this system") }
