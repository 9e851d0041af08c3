package payload

import (
	"math"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// wireView shows the fields of a body of unknown type that has the wire format. Field numbers and
// wire types are certain. Everything else is marked as a guess.
func (r *reading) wireView(at spot) {
	doc := r.doc
	if !wireShaped(doc.Body, maxNodes) || r.budget.TakeMemory(treeMemory) != nil {
		return
	}
	t := &tree{body: doc.Body}
	doc.Fields = t.wireNodes(Range{0, len(doc.Body)}, at, 1)
	doc.Notes = append(doc.Notes, t.limitNotes()...)
	doc.Masked = doc.Masked || t.masked
}

// wireNodes returns the fields of a part of the body in their original order.
func (t *tree) wireNodes(part Range, at spot, depth int) []Node {
	var nodes []Node
	for from := part.From; from < part.To; {
		num, typ, n := protowire.ConsumeTag(t.body[from:part.To])
		if n < 0 {
			break
		}
		raw := t.body[from+n : part.To]
		size := protowire.ConsumeFieldValue(num, typ, raw)
		if size < 0 {
			break
		}
		to := from + n + size
		if t.takeNode() {
			node := Node{
				Number:  int32(num),
				Name:    "field " + strconv.Itoa(int(num)),
				Unknown: true,
				Kind:    Wire,
				Type:    wireName(typ),
				Ranges:  []Range{{from, to}},
			}
			t.wireValue(&node, num, typ, raw[:size], Range{from + n, to}, at, depth)
			nodes = append(nodes, node)
		}
		from = to
	}
	return nodes
}

// wireValue fills a node from the value "raw", which has no tag. The parameter "in" is the range of
// this value in the body.
func (t *tree) wireValue(n *Node, num protowire.Number, typ protowire.Type, raw []byte, in Range, at spot, depth int) {
	if at.hidden {
		t.hide(n)
		return
	}
	if text, other, ok := wireNumber(typ, raw); ok {
		n.text, n.Masked = at.apply(text)
		if t.masked = t.masked || n.Masked; !n.Masked && other != "" {
			n.addNote("or " + other)
		}
		t.show(n, false)
		n.addNote("a guess")
		return
	}
	if typ == protowire.StartGroupType {
		p, _ := protowire.ConsumeGroup(num, raw)
		n.Kind = Message
		if depth < maxTreeDepth {
			n.Children = t.wireNodes(Range{in.From, in.From + len(p)}, at, depth+1)
		} else {
			t.deep++
		}
		return
	}
	b, _ := protowire.ConsumeBytes(raw)
	in.From = in.To - len(b)
	switch {
	case len(b) == 0:
		n.addNote("empty")
	case printable(b):
		n.text, n.Masked = at.apply(string(b[:min(len(b), maxShown)]))
		t.masked = t.masked || n.Masked
		t.show(n, true)
		n.addNote("a guess: text")
	case wireShaped(b, maxNodes):
		n.Kind = Message
		n.addNote("a guess: message")
		if depth < maxTreeDepth {
			n.Children = t.wireNodes(in, at, depth+1)
		} else {
			t.deep++
		}
	default:
		t.bytes(n, at, b)
		if !n.Masked {
			n.Kind = Wire
		}
	}
}

// plausibleText returns f as text if f is a plausible value, and "" if it is not, for example
// because it is tiny or huge. The parameter "bits" is the size of the number in the body.
func plausibleText(f float64, bits int) string {
	if a := math.Abs(f); !(a >= 1e-6 && a <= 1e12) { // tiny, huge, or not a number
		return ""
	}
	return strconv.FormatFloat(f, 'g', -1, bits)
}
