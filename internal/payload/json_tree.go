package payload

import (
	"fmt"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const maxTreeDepth = 64

// fromJSON returns the nodes of valid JSON: the members of an object, the elements of an array, or
// a single node without a name. The parameter "base" is the offset of src in the body.
func (t *tree) fromJSON(src []byte, base int, root place) []Node {
	r := &jsonReader{src: src}
	if c := r.peek(); !root.hidden && (c == '{' || c == '[') {
		nodes, _ := t.jsonChildren(r, root, base, 1)
		return nodes
	}
	if !t.takeNode() {
		return nil
	}
	var n Node
	t.jsonValue(r, &n, root, base, 1)
	return []Node{n}
}

// jsonChildren reads an object or an array from its opening bracket on. The result "total" is the
// number of all members or elements, including those that are not shown.
func (t *tree) jsonChildren(r *jsonReader, at place, base, depth int) (nodes []Node, total int) {
	open := r.src[r.at]
	r.at++
	for c := r.peek(); c != '}' && c != ']' && c != 0; c = r.peek() {
		from := r.at
		var name []byte
		if open == '{' {
			name = r.token()
			if r.peek() == ':' {
				r.at++
			}
		}
		switch {
		case open == '[' && total >= maxItems || !t.takeNode():
			r.skip()
		default:
			var n Node
			inner := at
			if open == '{' {
				key := unquoteJSON(name)
				t.key(&n, at.nameSpot(key), key, false)
				inner = at.enter(key, r)
				if at.md != nil {
					if fd := at.types.FieldNamed(at.md, key); fd != nil {
						n.also = otherName(fd, key)
					}
				}
			} else {
				n.Name = element(total)
			}
			t.jsonValue(r, &n, inner, base, depth)
			n.Ranges = []Range{{from + base, r.at + base}}
			nodes = append(nodes, n)
		}
		total++
		if r.peek() == ',' {
			r.at++
		}
	}
	r.at++
	if open == '[' && total > maxItems {
		nodes = append(nodes, Node{Kind: More, Value: deadletter.Count(total-maxItems) + " more items not shown"})
	}
	return nodes, total
}

func (t *tree) jsonValue(r *jsonReader, n *Node, at place, base, depth int) {
	if at.hidden {
		r.skip()
		t.hide(n)
		return
	}
	switch c := r.peek(); c {
	case '{', '[':
		if n.Kind = Message; c == '[' {
			n.Kind = List
		}
		if depth >= maxTreeDepth {
			r.skip()
			t.deep++
			n.addNote(fmt.Sprintf("deeper than %d levels, not shown", maxTreeDepth))
			return
		}
		var total int
		n.Children, total = t.jsonChildren(r, at, base, depth+1)
		if c == '[' {
			n.addNote(deadletter.Plural(total, "item", "items"))
		} else if total == 0 {
			n.addNote("empty")
		}
	case '"':
		text := unquoteJSON(r.token())
		at.spot = at.text(text)
		if raw, ok := unbase64(text); at.bytes && ok {
			if _, masked := at.apply(raw); masked {
				t.hide(n)
				return
			}
		}
		in := at.inside.read(at, text)
		at.hidden = at.hidden || in.hidden
		t.setScalar(n, at.spot, text, String)
		in.show(t, n)
	default:
		token := string(r.token())
		switch token {
		case "true", "false":
			t.setScalar(n, at.spot, token, Bool)
		case "null":
			t.setScalar(n, at.spot, token, Null)
		default:
			t.setScalar(n, at.text(token), token, Number)
		}
	}
}
