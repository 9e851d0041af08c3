package config

import (
	"github.com/deadletteroffice/dlo/internal/rules"
	"go.yaml.in/yaml/v3"
)

// MaxPasted is the maximum length in bytes of a text with rules, which is enough for about 500
// rules. The rules are compared with each other, so that the cost grows with the square of the
// length.
const MaxPasted = 64 << 10

const maxWeight = 2 * MaxPasted // in bytes; the target of an alias counts each time

// Pasted contains rules that a person wrote in order to see what they would do.
type Pasted struct {
	Rules rules.Set
	Kept  []string // the parts that the text does not contain, "rules" or "default"; those in use are kept
	Other []string // other settings in the text, which were ignored
}

// ReadRules reads rules from a text. The text may be a list of rules, or one rule. It may also
// contain the rules and the default of a configuration file, or a whole configuration file. The
// error is an *Error with all mistakes, as for a file.
//
// The text may come from an untrusted source. ReadRules therefore reads only the rules and the
// default, opens no files, and limits its own cost. If the text does not contain the rules or the
// default, those in use are kept. However, for a whole configuration file the defaults of dlo are
// used instead.
func ReadRules(text string, use *rules.Set) (Pasted, error) {
	d := &decoder{bounds: &bounds{mistakes: maxMistakes}}
	// a variable stays as it is written, because whoever wrote the text may not see the environment
	d.getenv = func(name string) string { return "${" + name + "}" }
	var p Pasted
	if len(text) > MaxPasted {
		d.mistake(
			nil, "rules to try have at most %d KiB, and these have %d KiB", MaxPasted>>10, (len(text)+1<<10-1)>>10,
		)
		return p, d.allMistakes(pastedName)
	}
	root := d.document(text)
	switch {
	case len(d.mistakes) > 0:
	case root == nil || root.Tag == "!!null":
		d.mistake(nil, "there are no rules in this text")
	default:
		d.pasted(root, use, &p)
	}
	return p, d.allMistakes(pastedName)
}

const pastedName = "rules" // stands for the name of the file in the positions of mistakes

// pasted reads rules from the root node of a text. The caller has checked that the text is small
// enough.
func (d *decoder) pasted(root *yaml.Node, use *rules.Set, p *Pasted) {
	c := Defaults()
	c.Rules.Seed, c.Rules.Channels = use.Seed, use.Channels
	ruled, defaulted := false, false
	switch {
	case root.Kind == yaml.SequenceNode:
		ruled = true
		d.rules(root, &c)
	case root.Kind != yaml.MappingNode:
		d.mistake(root, "give rules: a list of them, or rules: and default: as in a configuration file")
	case d.hasKey(root, "name"): // only a rule has the key name, so that this is a single rule
		ruled = true
		d.rules(&yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{root}}, &c)
	default:
		known := d.settings(&c)
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

// keysOf returns the keys of a mapping.
func keysOf(n *yaml.Node) []string {
	var names []string
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		names = append(names, n.Content[i].Value)
	}
	return names
}
