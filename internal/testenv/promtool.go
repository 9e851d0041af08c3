package testenv

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
)

// Promtool returns the path of promtool, which checks Prometheus rules. It first looks in the PATH,
// and then for the promtool that .ci/promtool fetched. If there is neither, the test is skipped.
// With DLO_TEST_REQUIRE=1, the test fails instead.
func Promtool(t testing.TB) string {
	t.Helper()
	if path, err := exec.LookPath("promtool"); err == nil {
		return path
	}
	module, err := moduleFolder()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(module, ".cache", "promtool")
	if !executable(path) {
		Unavailable(t, fmt.Errorf("%w: promtool; to get it: .ci/promtool, or apt-get install prometheus", ErrMissing))
	}
	return path
}
