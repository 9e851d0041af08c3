//go:build !linux

package main

import "syscall"

// dieWithParent does nothing on this platform. If the demo is killed with kill -9, the user must
// stop dlo by hand.
func dieWithParent(*syscall.SysProcAttr) {}

// launcher always returns 0 on this platform.
func launcher() int { return 0 }
