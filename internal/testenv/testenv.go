// Package testenv gives tests, and `make demo`, the real things: private RabbitMQ nodes, a TCP
// relay that can be cut, a headless browser, and golden pages. Everything it starts listens on
// loopback, ends with the process that started it, and leaves no file behind.
//
// It does not touch the machine's own RabbitMQ service, nor a broker anybody else started, and no
// shipped package imports it.
package testenv

import (
	"errors"
	"os"
	"testing"
)

// ErrMissing says that something to run is not installed. The error around it names the command
// that would change that.
var ErrMissing = errors.New("not installed")

// Main runs the tests of a package and then ends the broker and the browser that they shared. It
// returns the exit code:
//
//	func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }
//
// Without it nothing stays running either, because both die with the test binary; only their
// folders then wait for the next run to be removed. m is an interface so that goleak or a test's
// own wrapper fits in between.
func Main(m interface{ Run() int }) int {
	defer shared.stop()
	defer chrome.stop()
	return m.Run()
}

// long leaves a test that starts something large out of a short run.
func long(t testing.TB, what string) {
	t.Helper()
	if testing.Short() {
		t.Skip("short: it takes " + what)
	}
}

// Unavailable ends t because err: as a skip where something is not installed, as a failure for
// every other reason, and as a failure in any case where DLO_TEST_REQUIRE=1, as in `make test`.
func Unavailable(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, ErrMissing) && os.Getenv("DLO_TEST_REQUIRE") != "1" {
		t.Skip(err)
	}
	t.Fatal(err)
}
