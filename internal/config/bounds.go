package config

import (
	"fmt"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"go.yaml.in/yaml/v3"
)

// bounds limits the cost of parsing a text from an untrusted source. A nil *bounds imposes no
// limits and is used for the operator's own file.
type bounds struct {
	mistakes int // maximum number of mistakes that are kept
	left     int // number of mistakes that were omitted
	steps    int // number of steps left for comparing rules
}

const (
	maxMistakes    = 50
	maxMistakeText = 500         // bytes
	maxCompared    = 300_000_000 // steps; comparing ordinary rules of 64 KiB takes less than half
)

// full reports whether no more mistakes can be kept. If so, it counts one more mistake as omitted.
func (b *bounds) full(kept int) bool {
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

// more returns a mistake that gives the number of omitted mistakes. It returns nil if none were
// omitted.
func (b *bounds) more() []Mistake {
	if b == nil || b.left == 0 {
		return nil
	}
	return []Mistake{{Text: fmt.Sprintf("and %d more", b.left)}}
}

// weight returns the size of a node in bytes.
func (b *bounds) weight(n *yaml.Node) int {
	if b == nil {
		return 0
	}
	return maxWeight - lighter(n, maxWeight)
}

// compare uses up the steps that it takes to compare two rules of the given sizes. It returns false
// if too few steps are left. The caller then skips the comparison, so it may miss an unreachable
// rule.
func (b *bounds) compare(one, other int) bool {
	if b == nil {
		return true
	}
	b.steps -= one * other
	return b.steps > 0
}

// lighter subtracts the size of a node from left and returns the difference. Each value counts as
// one byte plus its length, and aliases are expanded. lighter stops once the difference is
// negative, so "left" also limits its cost.
func lighter(n *yaml.Node, left int) int {
	n = resolve(n)
	left -= 1 + len(n.Value)
	for _, child := range n.Content {
		if left < 0 {
			break
		}
		left = lighter(child, left)
	}
	return left
}
