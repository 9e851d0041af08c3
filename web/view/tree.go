package view

import (
	"html"
	"strconv"

	"github.com/a-h/templ"
)

// TreeNode is one field of a decoded body.
type TreeNode struct {
	Number   int    // the number of the field; 0 if it has none, for example in a map entry
	Name     string // "" if the schema does not define the field
	Value    string // the value as shown; "" if the children show it
	Kind     Kind
	Note     string // a faint remark after the value, such as "default, not on the wire", "16 B" or "2 entries"
	Type     string
	Unknown  bool    // the body contains the field, but the schema does not define it
	InError  bool    // the text of the error contains the value
	Masked   bool    // the value is masked
	Revealed bool    // the value is shown here, but masked for others
	At       string  // the position in the tree, such as "0.2.1", which names the node on the page
	Bytes    []Bytes // the position in the body; several ranges if the field is repeated
	Children []TreeNode
}

// Kind says what a value is, for example a text or a number. The page shows each kind in its own
// colour.
type Kind string

const (
	KindNone   Kind = ""
	KindText   Kind = "s" // quoted text
	KindNumber Kind = "n" // numbers, times, bytes
	KindWord   Kind = "t" // enum values, true and false
)

// These constants limit a tree, a JSON text, a table or a dump, in bytes of HTML. With them, the
// page of a letter stays under 300 KB for any body.
const (
	treeBudget   = 120_000
	jsonBudget   = 150_000
	headerBudget = 100_000
	rowCost      = 300 // the markup of one row of a tree or table, rounded up
	maxValue     = 2_000
	maxDepth     = 40
)

// fitTree returns as much of a tree as fits into the budget. The budget is in bytes of HTML.
// fitTree also returns the number of fields that it omits. It escapes and cuts names and values. It
// omits fields only at the end, so that the part shown has no holes. The parameter "extra" is the
// extra cost of every row in bytes.
func fitTree(nodes []TreeNode, budget, extra int) (kept []TreeNode, omitted int) {
	room := budget
	return fitAt(nodes, &room, extra, 0)
}

func fitAt(nodes []TreeNode, room *int, extra, depth int) (kept []TreeNode, omitted int) {
	for _, n := range nodes {
		shown := n
		shown.Name, shown.Value, shown.Note, shown.Type = line(n.Name, 200), line(
			n.Value, maxValue,
		), line(n.Note, 200), line(n.Type, 120)
		shown.Children = nil
		cost := rowCost + extra
		for _, s := range []string{shown.Name, shown.Value, shown.Note, shown.Type} {
			cost += len(html.EscapeString(s))
		}
		if *room < cost || depth >= maxDepth {
			*room = min(*room, 0) // omit all following fields too
			omitted += 1 + nodeCount(n.Children)
			continue
		}
		*room -= cost
		var below int
		shown.Children, below = fitAt(n.Children, room, extra, depth+1)
		omitted += below
		kept = append(kept, shown)
	}
	return kept, omitted
}

// nodeCount returns the number of nodes, including all nested nodes.
func nodeCount(nodes []TreeNode) int {
	n := len(nodes)
	for _, node := range nodes {
		n += nodeCount(node.Children)
	}
	return n
}

// Bytes is a range of bytes in the body. From is its first byte, and To is the byte after its last.
type Bytes struct{ From, To int }

// nodeAttributes returns the HTML attribute that names a node on the page.
func nodeAttributes(n TreeNode) templ.Attributes {
	return attributeIf(n.At != "", "id", "n"+n.At)
}

// hasLink reports whether a node links to its bytes. Masked nodes and nodes shown unmasked have no
// link.
func (n TreeNode) hasLink() bool { return len(n.Bytes) > 0 && n.At != "" && !n.Masked && !n.Revealed }

// mark returns the text of the link to the bytes of a node. This text is the number of the field.
// If the node has no number, the text is a dot.
func (n TreeNode) mark() string {
	if n.Number > 0 {
		return strconv.Itoa(n.Number)
	}
	return "·"
}

func (n TreeNode) key() string {
	switch {
	case n.Name != "":
		return n.Name
	case n.Unknown:
		return "unknown"
	}
	return "?"
}
