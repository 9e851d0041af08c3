//go:build !race

package payloadtest

import "testing"

// Unraced does nothing without the race detector.
func Unraced(*testing.T) {}
