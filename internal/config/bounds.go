package config

import (
	"fmt"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"go.yaml.in/yaml/v3"
)

// bounds keep the reading of a text from anybody cheap. A nil *bounds has none: the operator's own
// file costs what it costs.
type bounds struct {
	mistakes int // that are kept
	left     int // out
	steps    int // that comparing rules with each other may still take
}

const (
	maxMistakes    = 50
	maxMistakeText = 500         // bytes
	maxCompared    = 300_000_000 // steps: the rules of 64 KiB as people write them take less than half
)

// full says that no more mistakes are kept, and counts the one that is left out.
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

// more says how many mistakes were left out.
func (b *bounds) more() []Mistake {
	if b == nil || b.left == 0 {
		return nil
	}
	return []Mistake{{Text: fmt.Sprintf("and %d more", b.left)}}
}

// weight is how much a node is to read, in bytes.
func (b *bounds) weight(n *yaml.Node) int {
	if b == nil {
		return 0
	}
	return maxWeight - lighter(n, maxWeight)
}

// compare takes the steps for two rules of these weights; false when there are none left. Then it
// is not known whether one of them is ever reached, as it is not of many other rules.
func (b *bounds) compare(one, other int) bool {
	if b == nil {
		return true
	}
	b.steps -= one * other
	return b.steps > 0
}

// lighter returns what is left of a weight after a node: a byte for each value and what it says,
// aliases written out. It stops below 0, so that it costs no more than the weight.
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
