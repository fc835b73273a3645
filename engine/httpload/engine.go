package httpload

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// The names of the engines.
const (
	Auto        = "auto" // the loop where there is one
	LoopName    = "loop"
	PortableOne = "portable"
)

// Engine sends one slice of a schedule; Loop and Portable are the two.
type Engine struct {
	Name string
	Run  func(context.Context, Config) (*Result, error)
}

// ErrNoLoop says that this system has no event loop.
var ErrNoLoop = errors.New("httpload: the event loop needs Linux; use auto or portable")

// Choose gives the engine of a name.
func Choose(name string) (Engine, error) {
	switch {
	case name == PortableOne || name == Auto && !HasLoop:
		return Engine{PortableOne, Portable}, nil
	case name == LoopName && !HasLoop:
		return Engine{}, ErrNoLoop
	case name == LoopName || name == Auto:
		return Engine{LoopName, Loop}, nil
	}
	return Engine{}, fmt.Errorf("httpload: there is no engine %q; there are auto, loop and portable", name)
}

// perLoop is the rate that one loop is given at most, requests per second: about a third of what it
// can send, so that a burst finds room. Fewer loops wake less often and keep their due times better.
const perLoop = 25_000

// Slices is how many slices of a schedule the engine wants side by side: one for the portable engine,
// whose goroutines use every core; loops by the rate and never more than there are cores, since each
// holds a thread, or connections, since each needs one.
func (e Engine) Slices(rate float64, cores, connections int) int {
	if e.Name != LoopName {
		return 1
	}
	return max(1, min(int(math.Ceil(rate/perLoop)), cores, connections))
}
