//go:build !race

package payload

import "testing"

func unraced(*testing.T) {}
