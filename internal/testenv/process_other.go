//go:build !linux

package testenv

import (
	"errors"
	"syscall"
	"time"
)

// dieWithParent does nothing on this platform, because only Linux supports it. A child keeps
// running after the test binary was killed.
func dieWithParent(*syscall.SysProcAttr) {}

// CPU returns an error on this platform, because only Linux has /proc.
func CPU(int) (time.Duration, error) { return 0, errors.New("processor time is known on Linux only") }
