//go:build !linux

package httpload

import (
	"context"
	"errors"
)

// HasLoop tells whether Loop works on this system.
const HasLoop = false

// Loop is there on Linux only; elsewhere Portable does the same work.
func Loop(context.Context, Config) (*Result, error) {
	return nil, errors.New("httpload: the event loop needs Linux")
}
