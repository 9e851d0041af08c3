package payloadtest

import (
	"runtime"
)

// Allocated returns the number of bytes that f allocates. Meanwhile, other goroutines must be idle.
func Allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}
