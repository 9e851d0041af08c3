//go:build !race

package payloadtest

import "testing"

// Unraced leaves a test to the run without the race detector.
func Unraced(*testing.T) {}
