package testenv

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// process is a child process. On Linux, the child ends when this process ends, whatever the reason.
type process struct {
	pid   int
	ended chan struct{} // closed once the child has ended and was waited for
	err   error         // the result of the child; set before ended is closed
}

// start starts a command as the leader of a new process group. Ctrl-C in a terminal then reaches
// only this process, which ends its children.
func start(cmd *exec.Cmd) (*process, error) {
	p := &process{ended: make(chan struct{})}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
	started := make(chan error)
	go func() {
		// The kernel regards the thread that starts the child as its parent. This thread must therefore
		// live as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err == nil {
			p.pid = cmd.Process.Pid
		}
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return p, nil
}

// running reports whether the child is still running. For a nil process, it returns false.
func (p *process) running() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// kill ends the child and its process group with SIGKILL and waits for the child. If the child has
// ended, it does nothing.
func (p *process) kill() {
	if p.running() {
		p.signal(syscall.SIGKILL)
		<-p.ended
	}
}

// terminate sends SIGTERM to the child and waits until it ends. It waits no longer than the given
// limit.
func (p *process) terminate(limit time.Duration) error {
	if !p.running() {
		return nil
	}
	if err := syscall.Kill(p.pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("terminate process %d: %w", p.pid, err)
	}
	select {
	case <-p.ended:
		return nil
	case <-time.After(limit):
		return fmt.Errorf("process %d still runs %s after SIGTERM", p.pid, limit)
	}
}

// signal sends a signal to the process group of the child. The id of the group is the process id of
// the child. The kernel cannot reuse that id before this process has waited for the child.
func (p *process) signal(s syscall.Signal) {
	_ = syscall.Kill(-p.pid, s) // fails only if the group has ended
}
