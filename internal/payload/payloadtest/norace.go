//go:build !race

package payloadtest

import "testing"

// Unraced does nothing if the race detector is off.
func Unraced(*testing.T) {}
