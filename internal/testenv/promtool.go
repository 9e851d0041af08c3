package testenv

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
)

// Promtool returns the path of promtool, which checks rules of Prometheus: that on the PATH, else
// the one that .ci/promtool fetched. Without one t is skipped, or fails where DLO_TEST_REQUIRE=1.
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
