package main

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
)

// dieWithParent has the kernel end the child when we end, also after kill -9.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }

// launcher returns the process id of the `go run` or `make` that started us; 0 when it was
// something else. They do not pass a SIGTERM on, so the demo has to notice their end by itself.
func launcher() int {
	parent := os.Getppid()
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", parent))
	if err != nil {
		return 0
	}
	switch string(bytes.TrimSpace(name)) {
	case "go", "make":
		return parent
	}
	return 0
}
