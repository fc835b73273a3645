package engine

import (
	"context"
	"time"
)

// Epoch is the instant from which a run's due times count. All workers of a run share it.
type Epoch struct{ start time.Time }

// NewEpoch makes an epoch of a wall-clock instant, which may lie ahead. It is tied to the monotonic
// clock at this moment, so that a step of the wall clock during the run moves nothing. The zero time
// means now.
func NewEpoch(start time.Time) Epoch {
	now := time.Now()
	if start.IsZero() {
		return Epoch{now}
	}
	return Epoch{now.Add(start.Sub(now))}
}

// Start is the instant itself.
func (e Epoch) Start() time.Time { return e.start }

// Now is the time since the epoch, on the monotonic clock; negative before it.
func (e Epoch) Now() time.Duration { return time.Since(e.start) }

// At is the instant of an offset.
func (e Epoch) At(d time.Duration) time.Time { return e.start.Add(d) }

// Waiter waits for one due time after the other without allocating. It binds the calling goroutine to
// its thread, where the system's own sleep is as sharp as it can be; Stop ends that and must be called
// by the same goroutine.
type Waiter struct {
	epoch Epoch
	timer *time.Timer
}

// NewWaiter makes a waiter for the calling goroutine.
func NewWaiter(e Epoch) *Waiter {
	t := time.NewTimer(time.Hour)
	t.Stop()
	sharpen()
	return &Waiter{epoch: e, timer: t}
}

// Until waits until offset d, and returns at once when it has passed. It is false when ctx ended,
// which it notices at the latest after sharp, far under the 100 ms of SA-4.
func (w *Waiter) Until(ctx context.Context, d time.Duration) bool {
	for {
		left := d - w.epoch.Now()
		switch {
		case left <= 0:
			return ctx.Err() == nil
		case left <= sharp:
			sleep(left)
			continue
		}
		w.timer.Reset(left - sharp)
		select {
		case <-w.timer.C:
		case <-ctx.Done():
			w.timer.Stop()
			return false
		}
	}
}

// Stop gives the thread back.
func (w *Waiter) Stop() {
	w.timer.Stop()
	blunt()
}

// TakeThread binds the calling goroutine to its thread and makes the system's waits as sharp there as
// they can be. The goroutine itself must call what it gives, to let the thread go.
func TakeThread() (release func()) {
	sharpen()
	return blunt
}
