package rabbitmq_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// onEachVersion runs a test on the RabbitMQ that is installed, and on each further version that
// `make brokers` fetches. The parameter "root" of the test is for testenv.BrokerIn. If
// DLO_TEST_BROKER names a version, the test runs on that version only.
//
// A version is skipped if `make brokers` tried to fetch it and could not. If nobody tried, it is
// missing like any other program that tests need.
func onEachVersion(t *testing.T, test func(t *testing.T, root string)) {
	t.Helper()
	roots := map[string]string{"installed": ""}
	if os.Getenv("DLO_TEST_BROKER") == "" {
		list, err := exec.Command("../../.ci/brokers", "--list").Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, folder := range strings.Fields(string(list)) {
			roots[folder] = filepath.Join(".cache", folder)
		}
	}
	for name, root := range roots {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if root != "" {
				skipIfNotFetched(t, filepath.Join("../..", root))
			}
			test(t, root)
		})
	}
}

// skipIfNotFetched skips a test if the RabbitMQ in a root folder cannot be had on this machine.
func skipIfNotFetched(t *testing.T, root string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: RabbitMQ below " + root + " runs in a chroot")
	}
	if _, err := os.Stat(root); err == nil {
		return
	}
	if log, err := os.ReadFile(root + ".log"); err == nil { // of the attempt to fetch it
		lines := bytes.Split(bytes.TrimSpace(log), []byte("\n"))
		t.Skipf("%s could not be fetched: %s", filepath.Base(root), lines[len(lines)-1])
	}
}
