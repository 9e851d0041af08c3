package payloadtest

import (
	"runtime"
)

// Allocated returns how many bytes f allocates. Other goroutines must rest.
func Allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}
