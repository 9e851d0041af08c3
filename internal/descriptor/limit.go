//go:build !windows

package descriptor

import "syscall"

// limitProcessor limits the processor time of this process.
func limitProcessor(seconds uint64) error {
	return syscall.Setrlimit(syscall.RLIMIT_CPU, &syscall.Rlimit{Cur: seconds, Max: seconds})
}
