package testenv

import (
	"os"
	"strconv"
	"testing"
)

// Seeds returns the seeds for randomised tests: 1 to n, or n seeds after the number in DLO_SEEDS.
// Put the seed into the subtest's name, so that -run can repeat it.
func Seeds(t testing.TB, n int) []uint64 {
	t.Helper()
	var after uint64
	if text := os.Getenv("DLO_SEEDS"); text != "" {
		var err error
		if after, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("DLO_SEEDS: %v", err)
		}
	}
	list := make([]uint64, n)
	for i := range list {
		list[i] = after + uint64(i) + 1
	}
	return list
}
