//go:build !linux

package main

import "syscall"

// dieWithParent can do nothing here: after kill -9 of the demo its dlo has to be ended by hand.
func dieWithParent(*syscall.SysProcAttr) {}

// launcher is not known here.
func launcher() int { return 0 }
