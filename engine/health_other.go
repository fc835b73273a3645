//go:build !linux

package engine

import "time"

// What only Linux tells is unmeasured elsewhere, and the report says so.

func readSystem() reading {
	return reading{cpu: processCPU(), retransmits: -1, drops: -1, suspended: -1, stolen: -1}
}

func processCPU() time.Duration { return processTimes() }

func openFDs() int { return -1 }

func localPorts() int { return -1 }

// ReadMachine describes this machine.
func ReadMachine() Machine { return Machine{Load1: -1} }
