// Package testenv provides real dependencies for tests and `make demo`. These are private RabbitMQ
// nodes, a TCP relay that can be cut, a headless browser, and golden pages. Everything that it
// starts listens on loopback, leaves no files, and ends with the process that started it.
//
// The package touches neither the RabbitMQ service of the machine nor a broker that somebody else
// started. No shipped package imports it.
package testenv

import (
	"errors"
	"os"
	"testing"
)

// ErrMissing means that a required program is not installed. The error that wraps it names the
// command that installs the program.
var ErrMissing = errors.New("not installed")

// Main runs the tests of a package and then stops their shared brokers and browser. It returns the
// exit code:
//
//	func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }
//
// Without Main, the broker and the browser still die with the test binary. Only their folders stay,
// until the next run removes them. The parameter m is an interface, so that goleak or a test's own
// wrapper can be used in between.
func Main(m interface{ Run() int }) int {
	defer shared.stop()
	defer chrome.stop()
	return m.Run()
}

// skipIfShort skips the test in short mode. The parameter "what" says what the test needs, for
// example a broker.
func skipIfShort(t testing.TB, what string) {
	t.Helper()
	if testing.Short() {
		t.Skip("short: it takes " + what)
	}
}

// Unavailable ends the test because of an error. If a program is not installed, it skips the test.
// For any other error, and with DLO_TEST_REQUIRE=1 as in `make test`, it fails the test.
func Unavailable(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, ErrMissing) && os.Getenv("DLO_TEST_REQUIRE") != "1" {
		t.Skip(err)
	}
	t.Fatal(err)
}
