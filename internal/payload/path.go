package payload

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Queries, the search index, rules and reveals name a value of a body by its path, such as
// "to.address", "labels.env" (a map entry) or "items.[0].sku". Without an index, "items.sku" means
// every element. Each of the two names of a field is right (deadletter.FieldPath). Keys and JSON
// names may contain dots. An unknown field is named by its number.

// nodesAt returns the nodes with the given path, each with its position. The parameter "at" is the
// position of the given nodes' parent. A node that has exactly the given name comes before a node
// for which this is the other name, because a JSON body may have both names.
func nodesAt(nodes []Node, path string, at Position) (found []placedNode) {
	for _, other := range []bool{false, true} {
		for i := range nodes {
			n := &nodes[i]
			name := n.label()
			if other {
				name = n.also
			}
			rest, longer := strings.CutPrefix(path, name+".")
			switch {
			case n.Kind == More || other && (name == "" || name == n.label()):
			case name == path:
				found = append(found, placedNode{n, append(slices.Clip(at), i)})
			case longer:
				found = append(found, placedNode{n, append(slices.Clip(at), i)}.nodesAt(rest)...)
			}
		}
	}
	return found
}

type placedNode struct {
	*Node
	at Position
}

// nodesAt returns the nodes with a path that begins below p.
func (p placedNode) nodesAt(path string) []placedNode {
	found := nodesAt(p.Children, path, p.at)
	for _, element := range p.elements() {
		found = append(found, element.nodesAt(path)...)
	}
	return found
}

// elements returns the elements of a list. For any other node, it returns nil.
func (p placedNode) elements() (list []placedNode) {
	for i := 0; p.Kind == List && i < len(p.Children); i++ {
		list = append(list, placedNode{&p.Children[i], append(slices.Clip(p.at), i)})
	}
	return list
}

// otherName returns the other one of the two names of a field, which may be equal. The parameter
// "name" is one of them.
func otherName(fd protoreflect.FieldDescriptor, name string) string {
	if name == fd.JSONName() {
		return fieldName(fd)
	}
	return fd.JSONName()
}

// Value returns the first value at a path. The value is a text without quotes: numbers in decimal,
// enums by name, bytes in hex, times as on the page. For a masked value, Value returns the mask,
// and the result "masked" is true. Value finds only values that the tree shows and that have at
// most 4 KiB.
func (d *Document) Value(path string) (value string, masked, ok bool) {
	if n := d.scalarAt(path); n != nil {
		return n.text, n.Masked, true
	}
	return "", false, false
}

func (d *Document) scalarAt(path string) *Node {
	for _, p := range nodesAt(d.Fields, path, nil) {
		if p.isScalar() {
			return p.Node
		}
	}
	return nil
}

// ValuesAt returns all values at a path, in the format of Value. If the path leads to a list, these
// are its elements. Masked values count as missing. The result "ok" is false if there is no value.
func (d *Document) ValuesAt(path string) (values []string, ok bool) {
	list := nodesAt(d.Fields, path, nil)
	for len(list) > 0 {
		p := list[0]
		if list = append(p.elements(), list[1:]...); p.isScalar() && !p.Masked {
			values = append(values, p.text)
		}
	}
	return values, len(values) > 0
}

// Find returns the position of the first masked node at a path. If the path leads to a list, this
// may be an element of the list. Find returns nil if there is none.
func (d *Document) Find(path string) Position {
	root := placedNode{Node: &Node{Children: d.Fields}}
	if len(d.Fields) > 0 && isElement(d.Fields[0].Name) {
		root.Kind = List
	}
	for list := root.nodesAt(path); len(list) > 0; {
		if list[0].Masked {
			return list[0].at
		}
		list = append(list[0].elements(), list[1:]...)
	}
	return nil
}
