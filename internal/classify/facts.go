package classify

import (
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
)

// header returns the value of a header as the text that rules match. Tables, lists and masked
// values count as missing headers, as they do in search.
func (c *Classifier) header(headers deadletter.Table, name string) (string, bool) {
	value, ok := headers[name]
	if _, list := value.([]any); !ok || list {
		return "", false
	}
	texts := headerTexts(value)
	if len(texts) == 0 {
		return "", false
	}
	if c.o.Mask != nil {
		if _, masked := c.o.Mask(name, texts[0]); masked {
			return "", false
		}
	}
	return texts[0], true
}

// fieldValues returns the values at a path of a decoded body, in the format of
// payload.Document.Value. If the path leads to a list without an index, it returns the values of
// all elements. Masked values count as missing. The result "ok" is false if no value was found.
func fieldValues(nodes []payload.Node, path string) (values []string, ok bool) {
	for i := range nodes {
		n := &nodes[i]
		if n.Unknown || n.Kind == payload.More {
			continue
		}
		if n.Key() == path {
			values = append(values, leafValues(n)...)
			continue
		}
		if rest, ok := strings.CutPrefix(path, n.Key()+"."); ok {
			values = append(values, valuesAt(n, rest)...)
		}
	}
	return values, len(values) > 0
}

// valuesAt returns the values at a path below a node.
func valuesAt(n *payload.Node, path string) []string {
	values, _ := fieldValues(n.Children, path)
	if n.Kind == payload.List {
		for i := range n.Children {
			values = append(values, valuesAt(&n.Children[i], path)...)
		}
	}
	return values
}

// leafValues returns the value of a node. If the node is a list, it returns the values of all
// elements.
func leafValues(n *payload.Node) []string {
	if n.Kind == payload.List {
		var values []string
		for i := range n.Children {
			values = append(values, leafValues(&n.Children[i])...)
		}
		return values
	}
	if value, ok := n.Scalar(); ok && !n.Masked && !n.Unknown {
		return []string{value}
	}
	return nil
}
