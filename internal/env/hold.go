package env

import (
	"fmt"
	"hash/fnv"

	"seatrial/fault"
)

// HoldTarget takes an admitted target for one run of this folder, so that two runs cannot send above its
// max_rate together. It is ENV-007 while another run holds it. What it gives lets go.
func HoldTarget(dir, origin string) (release func(), err error) {
	h := fnv.New64a()
	_, _ = h.Write([]byte(origin))
	name := fmt.Sprintf("target-%016x", h.Sum64())
	l, err := acquire(dir, name)
	if e, ok := fault.As(err); ok && e.Code == fault.ENV007 {
		who := "another process"
		if id, ok := holder(dir, name); ok {
			who = fmt.Sprintf("process %d", id.PID)
		}
		return nil, fault.New(fault.ENV007, "the target %s is in use by a run of %s, and its max_rate is for all runs together", origin, who).
			WithNext("Wait for that run, or end it.")
	}
	if err != nil {
		return nil, err
	}
	return l.release, nil
}
