package main

import (
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// process is a child process of the demo. On Linux, the kernel kills it if the demo is killed.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when the child has ended
	err   error         // result of the child; set before the channel "ended" is closed
}

// start starts cmd in a process group of its own. Ctrl-C in a terminal then reaches only the demo,
// and the demo ends its children.
func start(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, ended: make(chan struct{})}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
	started := make(chan error)
	go func() {
		// The kernel regards the thread that starts the child as the child's parent. This thread must
		// therefore live as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.ended)
		}
	}()
	return p, <-started
}

// stop asks the child to end, and waits no longer than the given limit. If the child is still
// running then, stop kills its process group.
func (p *process) stop(limit time.Duration) {
	select {
	case <-p.ended:
		return // send no signal, because another process may have the same id now
	default:
	}
	syscall.Kill(-p.cmd.Process.Pid, syscall.SIGTERM)
	select {
	case <-p.ended:
		return
	case <-time.After(limit):
	}
	syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.ended
}
