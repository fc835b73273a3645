//go:build !linux

package httpload

func roles() map[string]func(string) { return nil }
