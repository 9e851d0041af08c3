package view

import (
	"html"
	"strconv"

	"github.com/a-h/templ"
)

// TreeNode is one field of a decoded body.
type TreeNode struct {
	Number   int    // of the field; 0 = none, as in a map entry
	Name     string // "" = the schema does not know it
	Value    string // as shown; "" where the children say it
	Kind     Kind
	Note     string // in faint ink after the value: "default, not on the wire", "16 B", "2 entries"
	Type     string
	Unknown  bool    // on the wire, but not in the schema
	InError  bool    // the error text contains the value
	Masked   bool    // the value is hidden
	Revealed bool    // it is hidden from others
	At       string  // where it stands in the tree, "0.2.1": names it on the page
	Bytes    []Bytes // where it is in the body; several when it is there more than once
	Children []TreeNode
}

// Kind says how a value is set.
type Kind string

const (
	KindNone   Kind = ""
	KindText   Kind = "s" // text, in quotes
	KindNumber Kind = "n" // numbers, times, bytes
	KindWord   Kind = "t" // enum values, true and false
)

// A letter's page stays under 300 KB with any body: what a tree, a JSON text, a table or a dump may
// take of it, in bytes of HTML.
const (
	treeBudget   = 120_000
	jsonBudget   = 150_000
	headerBudget = 100_000
	rowCost      = 300 // markup of one row of a tree or table, rounded up
	maxValue     = 2_000
	maxDepth     = 40
)

// fit returns as much of the tree as fits into budget bytes of HTML, with names and values made
// visible and cut, and how many fields were left out. A tree is cut from its end, so that what is
// shown is contiguous. Each is what any row takes beyond the usual.
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
			*room = min(*room, 0) // what follows a field that is left out is left out too
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

// fields counts all fields below nodes.
func fields(nodes []TreeNode) int {
	n := len(nodes)
	for _, node := range nodes {
		n += fields(node.Children)
	}
	return n
}

// Bytes is a range of the body, From included, To not.
type Bytes struct{ From, To int }

// node are the attributes that name a node on the page.
func node(n TreeNode) templ.Attributes {
	return attribute(n.At != "", "id", "n"+n.At)
}

// linked says whether the bytes of a node are shown with it: hidden ones are not.
func (n TreeNode) linked() bool { return len(n.Bytes) > 0 && n.At != "" && !n.Masked && !n.Revealed }

// mark is what leads to the bytes: the number of the field, where it has one.
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
