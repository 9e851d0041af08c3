package store_test

import "syscall"

// bind mounts a file over another.
func bind(from, over string) error { return syscall.Mount(from, over, "", syscall.MS_BIND, "") }

// unbind takes the mount away again.
func unbind(over string) error { return syscall.Unmount(over, 0) }
