package store_test

import "syscall"

// bind mounts one file over another file.
func bind(from, over string) error { return syscall.Mount(from, over, "", syscall.MS_BIND, "") }

// unbind removes the mount that bind made.
func unbind(over string) error { return syscall.Unmount(over, 0) }
