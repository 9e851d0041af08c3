package view

import (
	"html"
	"slices"
	"strconv"

	"github.com/deadletteroffice/dlo/internal/payload"
)

// treeNode is one field of a decoded body, as a page shows it.
type treeNode struct {
	payload.Node
	At       string // the position in the tree, such as "0.2.1", which names the node on the page
	InError  bool   // the text of the error contains the value
	Revealed bool   // the value is shown here, but masked for others
	Below    []treeNode
}

// kindClass returns the CSS class of a value, so that each kind of value has its own colour.
func (n treeNode) kindClass() string {
	switch n.Kind {
	case payload.String:
		return "s"
	case payload.Number, payload.Bytes, payload.Timestamp, payload.Duration:
		return "n"
	case payload.Enum, payload.Bool, payload.Null:
		return "t"
	}
	return ""
}

// These constants limit a tree, a JSON text, a table or a dump, in bytes of HTML. With them, the
// page of a letter stays under 150 KB if its text is ordinary, and under 303 KB for any body.
const (
	treeBudget   = 70_000
	jsonBudget   = 100_000
	headerBudget = 30_000
	rowCost      = 300 // the markup of one row of a tree or table, rounded up
	maxValue     = 2_000
	maxDepth     = 40
)

// tree makes the tree of a page from the fields of a body. It stops when it has filled its room.
type tree struct {
	room      int    // in bytes of HTML
	extra     int    // the extra cost of every row in bytes
	errorText string // nodes with values that this text quotes are marked
	revealed  string // the position of the node that is shown unmasked, or ""
	omitted   int    // the number of fields that had no room
}

// fit returns as many nodes as fit into the room. It escapes and cuts names and values. It omits
// fields only at the end, so that the part shown has no holes. The parameter "above" is the
// position of the node that contains the nodes.
func (t *tree) fit(nodes []payload.Node, above payload.Position) (kept []treeNode) {
	for i, n := range nodes {
		here := append(slices.Clip(above), i)
		shown := treeNode{Node: n, At: here.String(), InError: n.QuotedBy(t.errorText)}
		shown.Revealed = shown.At == t.revealed
		shown.Name, shown.Value, shown.Note, shown.Type = line(n.Name, 200), line(
			n.Value, maxValue,
		), line(n.Note, 200), line(n.Type, 120)
		cost := rowCost + t.extra
		for _, s := range []string{shown.Name, shown.Value, shown.Note, shown.Type} {
			cost += len(html.EscapeString(s))
		}
		if t.room < cost || len(above) >= maxDepth {
			t.room = min(t.room, 0) // omit all following fields too
			t.omitted += nodeCount(nodes[i : i+1])
			continue
		}
		t.room -= cost
		shown.Below = t.fit(n.Children, here)
		kept = append(kept, shown)
	}
	return kept
}

// nodeCount returns the number of nodes, including all nested nodes.
func nodeCount(nodes []payload.Node) int {
	n := len(nodes)
	for _, node := range nodes {
		n += nodeCount(node.Children)
	}
	return n
}

// hasLink reports whether a node links to its bytes. Masked nodes and nodes shown unmasked have no
// link.
func (n treeNode) hasLink() bool { return len(n.Ranges) > 0 && !n.Masked && !n.Revealed }

// mark returns the text of the link to the bytes of a node. This text is the number of the field.
// If the node has no number, the text is a dot.
func (n treeNode) mark() string {
	if n.Number > 0 {
		return strconv.Itoa(int(n.Number))
	}
	return "·"
}

func (n treeNode) key() string {
	switch {
	case n.Name != "":
		return n.Name
	case n.Unknown:
		return "unknown"
	}
	return "?"
}
