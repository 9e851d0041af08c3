package store_test

import "syscall"

// bind mounts a file over another.
func bind(from, over string) error { return syscall.Mount(from, over, "", syscall.MS_BIND, "") }

// unbind removes the mount.
func unbind(over string) error { return syscall.Unmount(over, 0) }
