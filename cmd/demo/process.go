package main

import (
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// process is a child process that does not outlive this process, however this process ends.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when the child ends
	err   error         // how the child ended; set before ended is closed
}

// start starts cmd as the leader of its own process group. Ctrl-C in a terminal then reaches only
// the demo, which ends its children.
func start(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, ended: make(chan struct{})}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
	started := make(chan error)
	go func() {
		// For the kernel, the parent is the thread that forked. This thread must therefore live as
		// long as the child.
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

// stop asks the child to end and waits up to limit. If the child is still running, stop kills its
// whole process group.
func (p *process) stop(limit time.Duration) {
	select {
	case <-p.ended:
		return // the process id may have been reused
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
