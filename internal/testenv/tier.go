package testenv

import (
	"os"
	"testing"
)

// Full marks a test that `make test` leaves out. `make test-full` runs it, and so does .ci/run,
// which sets DLO_TEST=rest. Call Full in the first line of a top-level test: .ci/test finds such
// tests by this line. CONTRIBUTING says which tests belong to `make test`.
func Full(t testing.TB) {
	t.Helper()
	if tier := os.Getenv("DLO_TEST"); tier != "full" && tier != "rest" {
		t.Skip("in test-full")
	}
}

// Soak marks a test that takes minutes or hours. `make soak` sets DLO_SOAK=1 and runs it.
func Soak(t testing.TB) {
	t.Helper()
	if os.Getenv("DLO_SOAK") != "1" {
		t.Skip("in soak")
	}
}

// Bench marks a test that only measures. `make bench` sets DLO_BENCH=1 and runs it.
func Bench(t testing.TB) {
	t.Helper()
	if os.Getenv("DLO_BENCH") != "1" {
		t.Skip("in bench")
	}
}
