//go:build race

package payloadtest

import "testing"

// Unraced skips a test under the race detector. Such a test checks the memory and time of a single
// goroutine, and it takes five to ten times as long with the detector.
func Unraced(t *testing.T) {
	t.Helper()
	t.Skip("runs without the race detector")
}
