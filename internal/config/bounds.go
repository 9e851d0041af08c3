package config

import (
	"fmt"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"go.yaml.in/yaml/v3"
)

// bounds contains the limits for reading a text from an untrusted source. If a *bounds is nil,
// there are no limits. This is so for the operator's own file.
type bounds struct {
	mistakes int // maximum number of mistakes in the result
	left     int // number of mistakes that are not in the result
	steps    int // number of steps that are left for comparing rules
}

const (
	maxMistakes    = 50
	maxMistakeText = 500         // in bytes
	maxCompared    = 300_000_000 // number of steps; rules of 64 KiB normally take less than half of them
)

// isFull reports whether the result contains the maximum number of mistakes. If so, it counts one
// more mistake that is not in the result.
func (b *bounds) isFull(kept int) bool {
	if b == nil || kept < b.mistakes {
		return false
	}
	b.left++
	return true
}

func (b *bounds) cut(text string) string {
	if b == nil {
		return text
	}
	return deadletter.Cut(text, maxMistakeText)
}

// omitted returns a mistake that says how many mistakes are not in the result. If the result
// contains all mistakes, omitted returns nil.
func (b *bounds) omitted() []deadletter.Mistake {
	if b == nil || b.left == 0 {
		return nil
	}
	return []deadletter.Mistake{{Text: fmt.Sprintf("and %d more", b.left)}}
}

// weight returns the size of a node in bytes.
func (b *bounds) weight(n *yaml.Node) int {
	if b == nil {
		return 0
	}
	return maxWeight - subtractSize(n, maxWeight)
}

// compare is called before two rules are compared, with the sizes of both rules. It deducts the
// cost of this comparison from a limited number of steps. If too few steps are left, it returns
// false, and the rules are not compared. In that case, dlo does not report that one of them can
// never be reached.
func (b *bounds) compare(one, other int) bool {
	if b == nil {
		return true
	}
	b.steps -= one * other
	return b.steps > 0
}

// subtractSize subtracts the size of a node from a budget and returns the rest. A value has the
// size of its text plus one byte. If an alias refers to a node, the size of that node counts again.
// subtractSize returns as soon as the rest is negative, so that the budget also limits how long it
// runs.
func subtractSize(n *yaml.Node, budget int) int {
	n = resolve(n)
	budget -= 1 + len(n.Value)
	for _, child := range n.Content {
		if budget < 0 {
			break
		}
		budget = subtractSize(child, budget)
	}
	return budget
}
