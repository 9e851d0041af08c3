//go:build race

package payloadtest

import "testing"

// Unraced skips a test if the race detector is on. It is for tests that check the memory and the
// time of a single goroutine. With the detector, they take five to ten times as long.
func Unraced(t *testing.T) {
	t.Helper()
	t.Skip("runs without the race detector")
}
