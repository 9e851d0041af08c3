package testenv

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
)

// Promtool returns the path of promtool, which checks Prometheus rules: from the PATH, else as
// fetched by .ci/promtool. If there is none, t is skipped, or fails with DLO_TEST_REQUIRE=1.
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
