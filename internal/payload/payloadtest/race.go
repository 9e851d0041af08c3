//go:build race

package payloadtest

import "testing"

// Unraced leaves a test to the run without the race detector: it is one goroutine, whose memory and
// time are what is looked at, and takes five to ten times as long with it.
func Unraced(t *testing.T) {
	t.Helper()
	t.Skip("runs without the race detector")
}
