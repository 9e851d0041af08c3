package config

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// ruleText returns a rule as YAML that needs nothing else of the file: the values of its aliases
// are written out. Comments are kept, but for those in brackets, where the encoder breaks the text.
func ruleText(rule *yaml.Node) string {
	own := written(rule, false)
	own.HeadComment = "" // stands above the rule
	writeDollars(own)
	return encode(own)
}

// encode returns a node as YAML, without the last line break.
func encode(n *yaml.Node) string {
	var text strings.Builder
	out := yaml.NewEncoder(&text)
	out.SetIndent(2)
	if err := out.Encode(n); err != nil {
		return ""
	}
	return strings.TrimRight(text.String(), "\n")
}

// written returns a copy of a node without aliases, anchors, and comments in brackets.
func written(n *yaml.Node, inBrackets bool) *yaml.Node {
	n = resolve(n)
	own := *n
	own.Anchor, own.Content = "", nil
	if inBrackets {
		own.HeadComment, own.LineComment, own.FootComment = "", "", ""
	}
	for _, part := range n.Content {
		own.Content = append(own.Content, written(part, inBrackets || n.Style&yaml.FlowStyle != 0))
	}
	return &own
}
