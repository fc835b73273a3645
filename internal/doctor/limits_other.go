//go:build !linux && !darwin

package doctor

func descriptorLimit() (soft, hard uint64, known bool) { return 0, 0, false }

func freeSpace(string) (uint64, bool) { return 0, false }
