package main

import (
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// process is a child that does not outlive this process, however that ends.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed once the child is gone
	err   error         // how it ended; valid after ended
}

// start starts cmd as the leader of a process group of its own: Ctrl-C in a terminal reaches the
// demo only, and the demo ends its children.
func start(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, ended: make(chan struct{})}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
	started := make(chan error)
	go func() {
		// The kernel takes the thread that forked for the parent, so that thread has to live as
		// long as the child does.
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

// stop asks the child to end, waits at most limit, and then ends it with all that it started.
func (p *process) stop(limit time.Duration) {
	select {
	case <-p.ended:
		return // its number may be another's by now
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
