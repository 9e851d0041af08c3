package testenv

import "syscall"

// dieWithParent has the kernel end the child when we end, also after kill -9. The wish survives exec, so it holds for what a shell
// or a chroot turns into.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
