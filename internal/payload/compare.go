package payload

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Field is a value of a body that can be compared with the same field of another letter.
type Field struct {
	Path   string
	Shown  string // the value as it is shown, masked
	Masked bool
	Cut    bool   // Shown is incomplete
	Whole  string // if Shown is cut or masked, the whole value; "" = it is not known. NOT masked
}

// Sameness is the result of comparing two fields.
type Sameness string

// These are the results of comparing two fields.
const (
	Equal      Sameness = "same"
	Different  Sameness = "different"
	OnlyA      Sameness = "only_a"
	OnlyB      Sameness = "only_b"
	Hidden     Sameness = "hidden"     // a value is masked, and the person who asks must not learn more
	Unfinished Sameness = "unfinished" // equal in the parts that are shown
)

// Comparison says how one field differs between two letters.
type Comparison struct {
	Path     string
	A, B     string // the two values as they are shown
	Sameness Sameness
}

// Compare compares two letters field by field. Two fields correspond if they have the same path.
// The result is in the order of a, followed by the fields that only b has. If the parameter
// "reveal" is true, the person who asks may see masked values, and Compare reports whether masked
// values are equal. Compare never shows these values.
func Compare(a, b []Field, reveal bool) []Comparison {
	type place struct {
		path string
		nth  int // number of the field among those with the same path
	}
	places := func(fields []Field) []place {
		seen := map[string]int{}
		list := make([]place, len(fields))
		for i, f := range fields {
			list[i] = place{f.Path, seen[f.Path]}
			seen[f.Path]++
		}
		return list
	}
	inA, inB := places(a), places(b)
	there := make(map[place]int, len(b))
	for i, p := range inB {
		there[p] = i
	}
	list := make([]Comparison, 0, max(len(a), len(b)))
	for i, p := range inA {
		j, ok := there[p]
		if !ok {
			list = append(list, Comparison{Path: p.path, A: a[i].Shown, Sameness: OnlyA})
			continue
		}
		delete(there, p)
		list = append(list, Comparison{
			Path:     p.path,
			A:        a[i].Shown,
			B:        b[j].Shown,
			Sameness: sameness(&a[i], &b[j], reveal),
		})
	}
	for j, p := range inB {
		if _, left := there[p]; left {
			list = append(list, Comparison{Path: p.path, B: b[j].Shown, Sameness: OnlyB})
		}
	}
	return list
}

// hides reports whether any part of a field is masked. This includes parts that were masked when
// the field was stored.
func (f *Field) hides() bool { return f.Masked || strings.Contains(f.Shown, Masked) }

func sameness(a, b *Field, reveal bool) Sameness {
	known := a.Whole != "" && b.Whole != ""
	switch masked := a.hides() || b.hides(); {
	case a.Shown != b.Shown: // everybody can see that they differ
		return Different
	case masked && !(reveal && known):
		return Hidden
	case known && a.Whole == b.Whole:
		return Equal
	case known:
		return Different
	case a.Cut || b.Cut:
		return Unfinished
	}
	return Equal
}

// Values returns the contents of a body with their paths. These are the leaves of its tree, or the
// body itself if it has no tree. If the parameter "hide" is true, the bytes of the body must not be
// revealed.
func (d *Document) Values(hide bool) []Field {
	var list []Field
	var walk func(nodes []Node, path string, element bool)
	walk = func(nodes []Node, path string, element bool) {
		for i := range nodes {
			n := &nodes[i]
			here := n.pathBelow(path)
			if len(n.Children) > 0 && !n.Masked {
				walk(n.Children, here, n.Kind == List)
				continue
			}
			list = append(list, d.leafField(n, here, element, hide))
		}
	}
	walk(d.Fields, "", false)
	if len(list) > 0 || d.Kind == Empty {
		return list
	}
	f := Field{Shown: d.Text, Masked: d.Masked, Whole: string(d.Body)}
	switch {
	case d.Kind == Text:
	case len(d.Fields) == 0 && (d.Kind == JSON || d.Kind == Protobuf): // a message without fields
		return nil
	case hide:
		f.Shown, f.Masked = Masked, true
	default:
		f.Shown = fmt.Sprintf("%s: %x", deadletter.Bytes(len(d.Body)), d.Body[:min(len(d.Body), shortValue)])
	}
	return []Field{f}
}

// pathBelow returns the path of a node whose parent has the given path: "order.items[0].sku".
func (n *Node) pathBelow(path string) string {
	if name := n.label(); path == "" || isElement(n.Name) {
		return path + name
	}
	return path + "." + n.label()
}

func (d *Document) leafField(n *Node, path string, element, hidden bool) Field {
	f := Field{
		Path:   path,
		Shown:  n.Value,
		Masked: n.Masked,
		Cut:    n.left > 0 || n.Kind == Wire && n.text == "" || n.Kind == More,
	}
	if f.Shown == "" {
		f.Shown = n.Note // for example "0 items"
		f.Cut = f.Cut || n.Kind == Message && len(n.Ranges) > 0 && n.Note != "" && n.Note != "empty"
	}
	if n.Masked || f.Cut && !hidden {
		f.Whole = d.sourceOf(n, element)
	}
	return f
}

// sourceOf returns the bytes of a node as they are in the body. For JSON, it removes the white
// space. The parameter "element" is true if the node is an element of a list.
func (d *Document) sourceOf(n *Node, element bool) string {
	var b bytes.Buffer
	for _, r := range n.Ranges {
		if r.From < 0 || r.To > len(d.Body) || r.From > r.To {
			return ""
		}
		b.Write(d.Body[r.From:r.To])
	}
	if d.Kind != JSON || b.Len() == 0 {
		return b.String()
	}
	around := "{}"
	if element {
		around = "[]"
	}
	var compact bytes.Buffer
	if json.Compact(&compact, []byte(around[:1]+b.String()+around[1:])) != nil {
		return b.String()
	}
	return compact.String()
}
