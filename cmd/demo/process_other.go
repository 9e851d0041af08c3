//go:build !linux

package main

import "syscall"

// dieWithParent does nothing on this platform. After kill -9 of the demo, its dlo must be stopped
// by hand.
func dieWithParent(*syscall.SysProcAttr) {}

// launcher always returns 0 on this platform.
func launcher() int { return 0 }
