//go:build !linux

package engine

import "time"

// sharp is zero: the runtime's timers do the whole wait.
const sharp = time.Duration(0)

func sharpen() {}

func blunt() {}

func sleep(d time.Duration) { time.Sleep(d) }
