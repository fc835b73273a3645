//go:build !unix

package envtest

import "os/exec"

func leaveSession(*exec.Cmd) {}
