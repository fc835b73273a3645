//go:build unix

package envtest

import (
	"os/exec"
	"syscall"
)

func leaveSession(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
