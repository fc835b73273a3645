//go:build !unix

package engine

import "time"

// This system has no such limit that could be read.

func fdLimit() int { return -1 }

func raiseFDLimit(int) int { return -1 }

func processTimes() time.Duration { return -1 }
