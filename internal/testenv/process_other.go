//go:build !linux

package testenv

import (
	"errors"
	"syscall"
	"time"
)

// dieWithParent does nothing, because only Linux supports this. Elsewhere a child keeps running
// when a test binary is killed.
func dieWithParent(*syscall.SysProcAttr) {}

// CPU needs /proc, which only Linux has.
func CPU(int) (time.Duration, error) { return 0, errors.New("processor time is known on Linux only") }
