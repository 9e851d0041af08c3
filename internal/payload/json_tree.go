package payload

import (
	"fmt"
	"strconv"
)

const maxTreeDepth = 64

// fromJSON returns the nodes of valid JSON: the members of an object, the elements of an array, or one nameless node. Base is where src
// begins in the body.
func (t *tree) fromJSON(src []byte, base int) []Node {
	r := &jsonReader{src: src}
	switch r.peek() {
	case '{', '[':
		nodes, _ := t.jsonChildren(r, "", base, 1)
		return nodes
	}
	if !t.take() {
		return nil
	}
	var n Node
	t.jsonValue(r, &n, "", 1)
	return []Node{n}
}

// jsonChildren reads an object or array, its opening bracket next, and returns how many members or elements it has, shown or not.
func (t *tree) jsonChildren(r *jsonReader, path string, base, depth int) (nodes []Node, total int) {
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
		case open == '[' && total >= maxItems || !t.take():
			r.skip()
		default:
			var n Node
			inner := path
			if open == '{' {
				inner = t.key(&n, path, unquoteJSON(name), false)
			} else {
				n.Name = "[" + strconv.Itoa(total) + "]"
			}
			t.jsonValue(r, &n, inner, depth)
			if depth == 1 {
				n.Ranges = []Range{{from + base, r.at + base}}
			}
			nodes = append(nodes, n)
		}
		total++
		if r.peek() == ',' {
			r.at++
		}
	}
	r.at++
	if open == '[' && total > maxItems {
		nodes = append(nodes, Node{Kind: More, Value: count(total-maxItems) + " more items not shown"})
	}
	return nodes, total
}

func (t *tree) jsonValue(r *jsonReader, n *Node, path string, depth int) {
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
		n.Children, total = t.jsonChildren(r, path, 0, depth+1)
		if c == '[' {
			n.addNote(plural(total, "item", "items"))
		} else if total == 0 {
			n.addNote("empty")
		}
	case '"':
		t.set(n, path, unquoteJSON(r.token()), String)
	default:
		token := string(r.token())
		switch token {
		case "true", "false":
			t.set(n, path, token, Bool)
		case "null":
			t.set(n, path, token, Null)
		default:
			t.set(n, path, token, Number)
		}
	}
}
