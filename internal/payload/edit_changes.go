package payload

import (
	"fmt"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const maxChanged = 50 // maximum number of paths that are listed

// changed lists the paths at which two trees differ. The paths are in the order of the new tree.
// Removed values come at the end of their object.
type changed struct {
	// parts of the trees are masked, so that a path ends before the first name that people do not
	// see
	masked bool
	shown  []*jsonNode // the trees as people see them
	paths  []string
	more   int
}

func (c *changed) list(before, after *jsonNode) []string {
	c.compare(before, after, nil)
	if c.more > 0 {
		c.paths = append(c.paths, fmt.Sprintf("and %s more", deadletter.Count(c.more)))
	}
	return c.paths
}

func (c *changed) add(path []string) {
	if c.masked {
		most := 0
		for _, n := range c.shown {
			most = max(most, n.follow(path))
		}
		path = path[:most]
	}
	text := ""
	for _, name := range path {
		text = dotted(text, name)
	}
	if text == "" {
		text = "body"
	}
	switch {
	case slices.Contains(c.paths, text):
	case len(c.paths) < maxChanged:
		c.paths = append(c.paths, text)
	default:
		c.more++
	}
}

// follow returns how many names of a path lead to a value in the tree.
func (n *jsonNode) follow(path []string) int {
	for i, name := range path {
		at := -1
		switch n.kind {
		case '{':
			at = n.find(name)
		case '[':
			if i, ok := indexOf(strings.Trim(name, "[]")); ok && i < len(n.items) {
				at = i
			}
		}
		if at < 0 {
			return i
		}
		n = n.items[at]
	}
	return len(path)
}

func (c *changed) compare(a, b *jsonNode, path []string) {
	inner := func(name string) []string { return append(slices.Clip(path), name) }
	switch {
	case a.kind != b.kind || !isContainer(a.kind):
		if !sameJSON(a, b) {
			c.add(path)
		}
	case a.kind == '[':
		if len(a.items) != len(b.items) {
			c.add(path)
			return
		}
		for i := range a.items {
			c.compare(a.items[i], b.items[i], inner(element(i)))
		}
	default:
		for j := range b.names {
			if i := a.find(b.names[j].text); i >= 0 {
				c.compare(a.items[i], b.items[j], inner(b.names[j].text))
			} else {
				c.add(inner(b.names[j].text))
			}
		}
		for i := range a.names {
			if b.find(a.names[i].text) < 0 {
				c.add(inner(a.names[i].text))
			}
		}
	}
}

// dotted appends a name to a path, in the form that errors and lists of changes use. A path has at
// most about 300 bytes.
func dotted(path, name string) string {
	name, left := cut(visible(name, ""), 64)
	if left > 0 {
		name += "…"
	}
	switch {
	case path == "":
		return name
	case len(path) > 240:
		return path
	}
	return path + "." + name
}

// identities lists names of fields by which consumers recognise a message that they have seen
// before. The names are in lower case and without "_" and "-".
var identities = []string{"idempotencykey", "requestid", "messageid", "eventid"}

// sameIdentity looks for fields by which consumers may recognise a message. For example, a consumer
// may ignore a message whose request_id it has seen before. sameIdentity returns the names of at
// most two such top-level fields that the edit has not changed.
func sameIdentity(before, after *jsonNode) []string {
	var list []string
	for j, name := range after.names {
		if !slices.Contains(identities, strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name.text))) {
			continue
		}
		if i := before.find(name.text); i >= 0 && sameJSON(before.items[i], after.items[j]) && len(list) < 2 {
			list = append(list, visible(name.text, ""))
		}
	}
	return list
}
