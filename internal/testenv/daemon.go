package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Daemon starts a program of the system in the foreground and stops it at the end of the test. The
// parameter "name" is the program, and the parameter "from" is the Debian package that contains it.
// If the program is not installed, the test is skipped. With DLO_TEST_REQUIRE=1, the test fails
// instead. If the test fails, Daemon logs what the program printed.
func Daemon(t testing.TB, name, from string, args ...string) {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if path = filepath.Join("/usr/sbin", name); !executable(path) {
			Unavailable(t, fmt.Errorf("%w: %s; to get it: apt-get install %s", ErrMissing, name, from))
		}
	}
	out, err := os.Create(filepath.Join(t.TempDir(), "output"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Env = append(os.Environ(), "HOME="+filepath.Dir(out.Name()))
	p, err := start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.kill()
		if text, err := os.ReadFile(out.Name()); t.Failed() && err == nil {
			t.Logf("%s: %s", name, text)
		}
	})
}

// FreePort returns a loopback port on which no program listens. No other test gets this port before
// the test ends.
func FreePort(t testing.TB) int {
	t.Helper()
	port, reserved, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = reserved.Close() })
	return port
}
