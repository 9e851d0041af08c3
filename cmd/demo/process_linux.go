package main

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
)

// dieWithParent makes the kernel kill the child process when the demo ends. This also works if the
// demo is killed with kill -9.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }

// launcher returns the id of the `go run` or `make` process that started the demo. It returns 0 if
// something else started the demo. The demo must notice by itself that `go run` or `make` has
// ended, because neither of them forwards SIGTERM to the demo.
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
