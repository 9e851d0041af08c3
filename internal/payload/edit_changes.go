package payload

import (
	"fmt"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const maxChanged = 50 // maximum number of paths that are listed

// changes lists the paths at which two trees differ, and the additional paths in the list "extra".
// The paths are in the order of the new tree. Removed values come at the end of their object. Names
// are in the form in which people see them.
func changes(before, after *jsonNode, extra []string) []string {
	c := &changed{}
	c.compare(before, after, "")
	for _, path := range extra {
		// a masked value was replaced; the list must not disclose whether the new value is equal
		if !slices.Contains(c.paths, path) {
			c.add(path)
		}
	}
	if c.more > 0 {
		c.paths = append(c.paths, fmt.Sprintf("and %s more", deadletter.Count(c.more)))
	}
	return c.paths
}

type changed struct {
	paths []string
	more  int
}

func (c *changed) add(path string) {
	if path == "" {
		path = "body"
	}
	if len(c.paths) < maxChanged {
		c.paths = append(c.paths, path)
	} else {
		c.more++
	}
}

func (c *changed) compare(a, b *jsonNode, path string) {
	switch {
	case a.kind != b.kind || !isContainer(a.kind) || a.masked || b.masked:
		if !sameJSON(a, b) {
			c.add(path)
		}
	case a.kind == '[':
		if len(a.items) != len(b.items) {
			c.add(path)
			return
		}
		for i := range a.items {
			c.compare(a.items[i], b.items[i], dotted(path, element(i)))
		}
	default:
		for j := range b.names {
			inner := dotted(path, b.names[j].shown)
			if i := a.find(b.names[j].text); i >= 0 {
				c.compare(a.items[i], b.items[j], inner)
			} else {
				c.add(inner)
			}
		}
		for i := range a.names {
			if b.find(a.names[i].text) < 0 {
				c.add(dotted(path, a.names[i].shown))
			}
		}
	}
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
		if i := before.find(name.text); i >= 0 && before.kind == after.kind &&
			sameJSON(before.items[i], after.items[j]) && len(list) < 2 {
			list = append(list, visible(name.shown, ""))
		}
	}
	return list
}
