//go:build !linux

package testenv

import (
	"errors"
	"syscall"
	"time"
)

// dieWithParent does nothing: only Linux can do this. Elsewhere a child is left running when a test
// binary is killed.
func dieWithParent(*syscall.SysProcAttr) {}

// CPU is read from /proc, which only Linux has.
func CPU(int) (time.Duration, error) { return 0, errors.New("processor time is known on Linux only") }
