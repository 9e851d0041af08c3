package main

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
)

// dieWithParent makes the kernel kill the child when the demo ends, even after kill -9.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }

// launcher returns the process id of the `go run` or `make` that started the demo. It returns 0 if
// the demo was started in another way. `go run` and `make` do not forward SIGTERM, so the demo has
// to notice when this process ends.
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
