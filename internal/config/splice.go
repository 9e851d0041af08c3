package config

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// These are the reasons why dlo does not change a file.
const (
	unusual   = "the file is written in a form that dlo does not change"
	anchored  = "the key is written with an anchor, an alias or a merge key"
	templated = "the value contains ${...}, which is filled in from the environment; change the variable"
	commented = "the value contains a comment, which would be lost"
)

const longestValue = 16 << 10 // in bytes; dlo does not replace a longer value in a file

// source is the text of a YAML file.
type source struct {
	text    string
	newline string
}

// splice returns a text with a new value. All other bytes stay as they are. If splice does not find
// the place of the value, it returns the reason. The caller must read the result again and compare
// it with what was intended.
func splice(text string, v newValue) (changed, why string) {
	root, s := (&decoder{}).document(text), source{text, "\n"}
	if strings.Contains(text, "\r\n") {
		s.newline = "\r\n"
	}
	if root == nil || root.Kind != yaml.MappingNode || root.Style&yaml.FlowStyle != 0 || root.Column != 1 ||
		strings.ContainsAny(strings.ReplaceAll(text, "\r\n", ""), "\r\u0085\u2028\u2029") {
		return text, unusual
	}
	n := root
	for i, key := range v.keys {
		if n.Kind == yaml.AliasNode || n.Anchor != "" || position(n, "<<") >= 0 {
			return text, anchored
		}
		at := position(n, key)
		if at < 0 {
			return s.insert(n, n == root, key, nested(v.keys[i+1:], v.value))
		}
		n = n.Content[at]
	}
	return s.replace(n, v.value)
}

// insert adds a key, or an item of a list, at the end of a node.
func (s *source) insert(n *yaml.Node, root bool, key string, value *yaml.Node) (text, why string) {
	holder := &yaml.Node{Kind: n.Kind, Style: n.Style & yaml.FlowStyle, Content: []*yaml.Node{node(key), value}}
	if n.Kind == yaml.SequenceNode {
		holder.Content = holder.Content[1:]
	}
	flow, at, ok := holder.Style != 0, s.offset(n)+1, n.Kind != yaml.ScalarNode
	if len(n.Content) > 0 && !root {
		at, ok = s.end(n.Content[len(n.Content)-1])
	}
	if !ok {
		return s.text, unusual
	}
	entry := encode(holder)
	switch line := strings.IndexByte(s.text[at:], '\n'); {
	case flow && len(n.Content) > 0:
		entry = ", " + entry[1:len(entry)-1]
	case flow:
		entry = entry[1 : len(entry)-1]
	case root: // below the comments at the end of the file
		at, entry = len(strings.TrimRight(s.text, " \t\r\n")), s.indented("\n"+entry, 0)
	default: // behind the comment of the last entry
		if entry = s.indented("\n"+entry, n.Column-1); line < 0 {
			line = len(s.text) - at
		}
		at += len(strings.TrimSuffix(s.text[at:at+line], "\r"))
	}
	return s.text[:at] + entry + s.text[at:], ""
}

// replace writes a value in place of a node. The new value has the style of the old one.
func (s *source) replace(n, value *yaml.Node) (text, why string) {
	start := s.offset(n)
	stop, ok := s.end(n)
	switch {
	case hasAnchor(n):
		return s.text, anchored
	case !ok || stop < start:
		return s.text, unusual
	case strings.Contains(s.text[start:stop], "${"):
		return s.text, templated
	case strings.Contains(s.text[start:stop], "#"):
		return s.text, commented
	}
	own := inFlow(value)
	if n.Kind != yaml.ScalarNode && n.Style&yaml.FlowStyle == 0 { // the value is written in lines
		key := strings.TrimRight(s.text[:start], " \t\r\n")
		if n.Kind == yaml.SequenceNode && len(value.Content) > 0 {
			own = s.indented(encode(&yaml.Node{Kind: n.Kind, Content: value.Content}), n.Column-1)
		} else if strings.HasSuffix(key, ":") {
			return key + " " + own + s.text[stop:], ""
		}
	}
	return s.text[:start] + own + s.text[stop:], ""
}

// indented returns a text in which each line break is followed by spaces.
func (s *source) indented(text string, by int) string {
	return strings.ReplaceAll(text, "\n", s.newline+strings.Repeat(" ", by))
}

// offset returns the offset of a node. Its column counts characters, without a byte order mark.
func (s *source) offset(n *yaml.Node) int {
	at := len(s.text) - len(strings.TrimPrefix(s.text, "\ufeff"))
	for range n.Line - 1 {
		at += strings.IndexByte(s.text[at:], '\n') + 1
	}
	for range n.Column - 1 {
		_, size := utf8.DecodeRuneInString(s.text[at:])
		at += size
	}
	return at
}

// end returns the offset behind a node. It returns false if it is not certain.
func (s *source) end(n *yaml.Node) (int, bool) {
	start := s.offset(n)
	switch {
	case n.Kind == yaml.ScalarNode && n.Style == 0:
		return start + len(n.Value), strings.HasPrefix(s.text[start:], n.Value)
	case n.Kind != yaml.ScalarNode && n.Style&yaml.FlowStyle == 0:
		if len(n.Content) == 0 {
			return 0, false
		}
		return s.end(n.Content[len(n.Content)-1])
	}
	for stop := start + 1; stop <= min(len(s.text), start+longestValue); stop++ {
		if strings.IndexByte("]}'\"", s.text[stop-1]) >= 0 { // the shortest text with the value ends there
			if own := (&decoder{}).document(s.text[start:stop]); own != nil && sameNodes(own, n) {
				return stop, true
			}
		}
	}
	return 0, false
}

// position returns the index of the value of a key in a mapping, or of an item in a list. If there
// is none, it returns -1.
func position(n *yaml.Node, key string) int {
	if i, err := strconv.Atoi(key); n.Kind == yaml.SequenceNode && err == nil && i < len(n.Content) {
		return i
	}
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return i + 1
		}
	}
	return -1
}

// find returns the node below some keys of a tree without aliases. It returns nil if there is none.
func find(n *yaml.Node, keys ...string) *yaml.Node {
	for _, key := range keys {
		i := position(n, key)
		if i < 0 {
			return nil
		}
		n = n.Content[i]
	}
	return n
}

// put sets a value below some keys of a tree without aliases. It adds the keys that are missing.
func put(n *yaml.Node, keys []string, value *yaml.Node) {
	own := nested(keys[1:], value)
	switch i := position(n, keys[0]); {
	case i < 0 && n.Kind == yaml.SequenceNode:
		n.Content = append(n.Content, own)
	case i < 0:
		n.Content = append(n.Content, node(keys[0]), own)
	case len(keys) == 1 || n.Content[i].Kind == yaml.ScalarNode: // a key without a value is null
		own.LineComment = n.Content[i].LineComment
		n.Content[i] = own
	default:
		put(n.Content[i], keys[1:], value)
	}
}

// node returns a value as a YAML node, which is written on one line.
func node(v any) *yaml.Node {
	n := &yaml.Node{}
	if err := n.Encode(v); err != nil {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}
	}
	if n.Kind != yaml.ScalarNode {
		n.Style = yaml.FlowStyle
	}
	return n
}

// nested returns a value below some keys.
func nested(keys []string, value *yaml.Node) *yaml.Node {
	for _, key := range slices.Backward(keys) {
		if _, err := strconv.Atoi(key); err == nil {
			value = &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{value}}
		} else {
			value = &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle, Content: []*yaml.Node{node(key), value}}
		}
	}
	return value
}

// inFlow returns a node as YAML on one line.
func inFlow(n *yaml.Node) string {
	own := written(n, true)
	if own.Kind != yaml.ScalarNode {
		own.Style = yaml.FlowStyle
	}
	return encode(own)
}

func hasAnchor(n *yaml.Node) bool {
	return n.Kind == yaml.AliasNode || n.Anchor != "" || slices.ContainsFunc(n.Content, hasAnchor)
}

// sameNodes reports whether two trees without aliases have the same keys and values.
func sameNodes(a, b *yaml.Node) bool {
	return a.Kind == b.Kind && a.ShortTag() == b.ShortTag() && a.Value == b.Value &&
		slices.EqualFunc(a.Content, b.Content, sameNodes)
}
