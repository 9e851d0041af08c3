package payload

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
)

// Position is the position of a node in the tree, as an index at each level. The tree of a revealed
// body has the same nodes at the same positions, as far as both trees extend.
type Position []int

// ParsePosition parses a position such as "0.2.1".
func ParsePosition(text string) (Position, bool) {
	var p Position
	for _, part := range strings.Split(text, ".") {
		i, err := strconv.Atoi(part)
		if err != nil || i < 0 || len(p) > 2*maxTreeDepth {
			return nil, false
		}
		p = append(p, i)
	}
	return p, true
}

func (p Position) String() string {
	parts := make([]string, len(p))
	for i, n := range p {
		parts[i] = strconv.Itoa(n)
	}
	return strings.Join(parts, ".")
}

// At returns the node at a position, and its path with masked keys. It returns nil if there is no
// such node.
func (d *Document) At(p Position) (n *Node, path string) {
	nodes := d.Fields
	for _, at := range p {
		if at >= len(nodes) || nodes[at].Kind == More {
			return nil, ""
		}
		n = &nodes[at]
		nodes, path = n.Children, joined(path, n.label())
	}
	return n, path
}

func joined(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func isElement(name string) bool {
	return len(name) > 2 && name[0] == '[' && name[1] >= '0' && name[1] <= '9'
}

// label returns the name of a node in a path. For an unknown field, this is its number.
func (n *Node) label() string {
	if n.Unknown && n.Number > 0 {
		return strconv.Itoa(int(n.Number))
	}
	return n.Key()
}

// Text returns a node as text, as far as the tree contains it. A scalar is returned unchanged. Any
// other node becomes JSON of its names and values.
func (n *Node) Text() string {
	if n.isScalar() {
		return n.text
	}
	if n.Kind == Wire {
		return n.guess()
	}
	b, _ := json.Marshal(n.jsonValue()) // texts, lists and maps can always be encoded
	return string(b)
}

// guess returns the text of a value whose type is unknown.
func (n *Node) guess() string { return cmp.Or(n.text, n.Value) }

func (n *Node) jsonValue() any {
	switch {
	case n.isScalar():
		return n.text
	case n.Kind == Wire || n.Kind == More:
		return n.guess()
	case n.Kind == List:
		list := make([]any, len(n.Children))
		for i := range n.Children {
			list[i] = n.Children[i].jsonValue()
		}
		return list
	}
	object := make(map[string]any, len(n.Children))
	for i := range n.Children {
		object[n.Children[i].label()] = n.Children[i].jsonValue()
	}
	return object
}
