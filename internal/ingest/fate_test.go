package ingest_test

import (
	"math/rand/v2"
	"slices"
	"strings"
)

// fate is a function that reports whether the accident with the given name happens now.
type fate func(point string) bool

// accidents returns a fate in which each named accident happens once, at its first opportunity. An
// accident that is listed twice happens twice.
func accidents(points ...string) fate {
	left := slices.Clone(points)
	return func(point string) bool {
		i := slices.Index(left, point)
		if i < 0 {
			return false
		}
		left = slices.Delete(left, i, i+1)
		return true
	}
}

// inTurn returns a fate in which the named accidents happen one after the other. Each accident
// happens at the first opportunity after the previous accident.
func inTurn(points ...string) fate {
	return func(point string) bool {
		if len(points) == 0 || point != points[0] {
			return false
		}
		points = points[1:]
		return true
	}
}

// luck returns a fate in which accidents happen at random points, at most the given number of them.
// Accidents that only a cluster can have do not happen. In a third of the fates, some letters have
// large bodies. A large body does not count as an accident.
func luck(random *rand.Rand, most int) fate {
	large := random.IntN(3) == 0
	return func(point string) bool {
		if point == "large bodies" {
			return large && random.IntN(2) == 0
		}
		if strings.HasPrefix(point, "keep ") || most == 0 || random.IntN(15) > 0 {
			return false
		}
		most--
		return true
	}
}
