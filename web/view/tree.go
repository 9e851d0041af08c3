package view

import (
	"html"
	"strconv"

	"github.com/a-h/templ"
)

// TreeNode is one field of a decoded body.
type TreeNode struct {
	Number   int    // number of the field; 0 = none, for example in a map entry
	Name     string // "" = the schema does not define the field
	Value    string // value as shown; "" if the children show it
	Kind     Kind
	Note     string // in faint ink after the value: "default, not on the wire", "16 B", "2 entries"
	Type     string
	Unknown  bool    // on the wire but not in the schema
	InError  bool    // the error text contains the value
	Masked   bool    // the value is hidden
	Revealed bool    // the value is shown, but hidden from others
	At       string  // position in the tree, such as "0.2.1"; it names the node on the page
	Bytes    []Bytes // position in the body; several if repeated
	Children []TreeNode
}

// Kind is the kind of a value, which determines its look.
type Kind string

const (
	KindNone   Kind = ""
	KindText   Kind = "s" // quoted text
	KindNumber Kind = "n" // numbers, times, bytes
	KindWord   Kind = "t" // enum values, true and false
)

// These constants limit a tree, a JSON text, a table or a dump, in bytes of HTML. They keep a
// letter's page under 300 KB for any body.
const (
	treeBudget   = 120_000
	jsonBudget   = 150_000
	headerBudget = 100_000
	rowCost      = 300 // markup of one tree or table row, rounded up
	maxValue     = 2_000
	maxDepth     = 40
)

// fit returns as much of the tree as fits into budget bytes of HTML, and the number of fields left
// out. It escapes and cuts names and values. It cuts a tree at its end, so that the shown part is
// contiguous. The argument "each" is the extra cost of every row in bytes.
func fit(nodes []TreeNode, budget, each int) (kept []TreeNode, left int) {
	room := budget
	return fitAt(nodes, &room, each, 0)
}

func fitAt(nodes []TreeNode, room *int, each, depth int) (kept []TreeNode, left int) {
	for _, n := range nodes {
		shown := n
		shown.Name, shown.Value, shown.Note, shown.Type = line(n.Name, 200), line(n.Value, maxValue), line(n.Note, 200), line(n.Type, 120)
		shown.Children = nil
		cost := rowCost + each
		for _, s := range []string{shown.Name, shown.Value, shown.Note, shown.Type} {
			cost += len(html.EscapeString(s))
		}
		if *room < cost || depth >= maxDepth {
			*room = min(*room, 0) // leave out all following fields too
			left += 1 + fields(n.Children)
			continue
		}
		*room -= cost
		var below int
		shown.Children, below = fitAt(n.Children, room, each, depth+1)
		left += below
		kept = append(kept, shown)
	}
	return kept, left
}

// fields returns the number of nodes, including all nested ones.
func fields(nodes []TreeNode) int {
	n := len(nodes)
	for _, node := range nodes {
		n += fields(node.Children)
	}
	return n
}

// Bytes is a range of the body. It includes From and excludes To.
type Bytes struct{ From, To int }

// node returns the attributes that name a node on the page.
func node(n TreeNode) templ.Attributes {
	return attribute(n.At != "", "id", "n"+n.At)
}

// linked reports whether a node is linked to its bytes. Masked and revealed nodes are not linked.
func (n TreeNode) linked() bool { return len(n.Bytes) > 0 && n.At != "" && !n.Masked && !n.Revealed }

// mark returns the text of the link to the bytes. The text contains the field number if there is
// one.
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
