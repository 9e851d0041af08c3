package failure

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// part is a value in the headers, with the names that lead to it: that of the header, and of the
// members inside the header. A mask of any of these names hides it.
type part struct {
	names []string
	value any
}

// text returns the value if it is a text. Some clients send texts as bytes, which are accepted too.
func (p part) text() string { return textOf(p.value) }

func (p part) or(other part) part {
	if p.text() != "" {
		return p
	}
	return other
}

// at returns what is at the first path that leads to a text or a number. The part has to be a
// table, or a text with a JSON object.
func (p part) at(paths ...string) part {
	for _, path := range paths {
		if m := p.member(path); m.text() != "" || countOf(m.value) > 0 {
			return m
		}
	}
	return part{}
}

// member returns what is at a path. A name in it may itself contain dots, and be in another case.
func (p part) member(path string) part {
	table := tableOf(p.value)
	if name, ok := nameIn(table, path); ok {
		return part{append(slices.Clip(p.names), name), table[name]}
	}
	for at := range path {
		if path[at] != '.' {
			continue
		}
		if name, ok := nameIn(table, path[:at]); ok {
			outer := part{append(slices.Clip(p.names), name), table[name]}
			if m := outer.member(path[at+1:]); m.value != nil {
				return m
			}
		}
	}
	return part{}
}

// nameIn returns the name in a table that equals the given one apart from its case.
func nameIn(table deadletter.Table, name string) (string, bool) {
	if _, ok := table[name]; ok {
		return name, true
	}
	found, ok := "", false
	for other := range table {
		if strings.EqualFold(other, name) && (!ok || other < found) {
			found, ok = other, true
		}
	}
	return found, ok
}

// textOf returns a value if it is a text. Some clients send texts as bytes, which are accepted too.
func textOf(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case []byte:
		if utf8.Valid(v) {
			return string(v)
		}
	}
	return ""
}

// tableOf returns a value that is a table, or a text with a JSON object. It returns nil for any
// other value.
func tableOf(value any) deadletter.Table {
	switch v := value.(type) {
	case deadletter.Table:
		return v
	case map[string]any: // inside of JSON
		return v
	}
	if text := textOf(value); strings.HasPrefix(strings.TrimSpace(text), "{") {
		var object map[string]any
		if headerJSON(text, &object) {
			return object
		}
	}
	return nil
}
