package config

import (
	"fmt"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"go.yaml.in/yaml/v3"
)

// bounds contains the limits for reading a text from an untrusted source. If a *bounds is nil, the
// text is the operator's own file. Then only its aliases and the comparison of its rules have
// limits, so that no file takes minutes.
type bounds struct {
	mistakes int // maximum number of mistakes in the result
	left     int // number of mistakes that are not in the result
}

const (
	maxMistakes    = 50
	maxMistakeText = 500         // in bytes
	maxCompared    = 300_000_000 // number of steps; rules of 64 KiB normally take less than half of them
	maxComparedOwn = 5_000_000_000
	maxWrittenOwn  = 4 << 20 // in bytes; a file is never too long by what it has without aliases
)

// steps returns how many steps the comparison of rules may take.
func (b *bounds) steps() int {
	if b == nil {
		return maxComparedOwn
	}
	return maxCompared
}

// written returns how many bytes a text may have when its aliases are written out.
func (b *bounds) written(text string) int {
	if b == nil {
		return max(maxWrittenOwn, 2*len(text))
	}
	return maxWeight
}

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
