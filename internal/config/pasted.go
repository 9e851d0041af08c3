package config

import (
	"github.com/deadletteroffice/dlo/internal/rules"
	"go.yaml.in/yaml/v3"
)

// MaxPasted is the longest text of rules that is read, in bytes: some 500 rules. What it costs to
// hold rules against each other grows with the square of it.
const MaxPasted = 64 << 10

const maxWeight = 2 * MaxPasted // with its aliases written out

// Pasted are rules that somebody wrote to see what they would do.
type Pasted struct {
	Rules rules.Set
	Kept  []string // "rules" or "default": what the text does not have, and is as in use
	Other []string // settings of the text that are not about rules; they were not read
}

// ReadRules reads rules from a text: a list of rules, one rule, the rules and default of a
// configuration file, or such a file. What is wrong is said as of a file, in an *Error. The text
// may be anybody's: nothing but the rules and the default is read of it, no file is opened for it,
// and its cost is bounded. What the text does not have is as in use; of a whole file it is the
// default of dlo.
func ReadRules(text string, use *rules.Set) (Pasted, error) {
	d := &decoder{bounds: &bounds{mistakes: maxMistakes, steps: maxCompared}}
	var p Pasted
	if len(text) > MaxPasted {
		d.mistake(nil, "rules have at most %d KiB to be tried, and these have %d", MaxPasted>>10, (len(text)+1<<10-1)>>10)
		return p, d.failed(pastedName)
	}
	root := d.document(text)
	d.lines = nil // the text of each rule is not wanted, and takes long to find in a list in brackets
	switch {
	case len(d.mistakes) > 0:
	case root == nil || root.Tag == "!!null":
		d.mistake(nil, "there are no rules in this text")
	case lighter(root, maxWeight) < 0:
		d.mistake(root, "with its aliases written out this is too much to be tried; at most %d KiB are", maxWeight>>10)
	default:
		d.pasted(root, use, &p)
	}
	return p, d.failed(pastedName)
}

const pastedName = "rules" // stands before the places of mistakes

// pasted reads a text that is not too much.
func (d *decoder) pasted(root *yaml.Node, use *rules.Set, p *Pasted) {
	c := Defaults()
	c.Rules.Seed, c.Rules.Was, c.Rules.Channels = use.Seed, use.Was, use.Channels
	ruled, defaulted := false, false
	switch {
	case root.Kind == yaml.SequenceNode:
		ruled = true
		d.rules(root, 0, &c)
	case root.Kind != yaml.MappingNode:
		d.mistake(root, "give rules: a list of them, or rules: and default: as in a configuration file")
	case d.has(root, "name"): // which no file has, and every rule
		ruled = true
		d.rules(&yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{root}}, 0, &c)
	default:
		known := d.settings(root, &c)
		for key, read := range known {
			known[key] = func(n *yaml.Node) {
				switch key {
				case "rules":
					ruled = true
					read(n)
				case "default":
					defaulted = true
					read(n)
				case "channels":
					c.Rules.Channels = keysOf(n)
					fallthrough
				default:
					p.Other = append(p.Other, key)
				}
			}
		}
		d.mapping(root, "", known)
	}
	whole := len(p.Other) > 0
	if !ruled && !whole {
		c.Rules.Rules, p.Kept = use.Rules, append(p.Kept, "rules")
	}
	if !defaulted && !whole {
		c.Rules.Default, p.Kept = use.Default, append(p.Kept, "default")
	}
	d.checkMirrors(&c.Rules.Default)
	d.checkChannels(c.Rules.Channels)
	p.Rules = c.Rules
}

// keysOf are the keys of a mapping.
func keysOf(n *yaml.Node) []string {
	var names []string
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		names = append(names, n.Content[i].Value)
	}
	return names
}
