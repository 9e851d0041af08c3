package testenv

import (
	"os"
	"strconv"
	"testing"
)

// Seeds returns n seeds for randomised tests. The first seed is 1. If the variable DLO_SEEDS is set
// to N, the first seed is N+1. Put the seed into the name of the subtest, so that -run can repeat
// it.
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
