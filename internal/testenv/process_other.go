//go:build !linux

package testenv

import "syscall"

// dieWithParent does nothing: only Linux can do this. Elsewhere a child is left running when a test binary is killed.
func dieWithParent(*syscall.SysProcAttr) {}
