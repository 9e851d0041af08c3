package deadletter

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// FieldPath is a path to a field in a body, as names: customer.email. It contains no indices,
// because a path leads through all elements of a list. The entries of a map are named by their
// keys, and unknown fields by their numbers. Extensions are written [acme.v1.remark].
type FieldPath []string

// ParseFieldPath parses a path whose names are separated by dots.
func ParseFieldPath(text string) (FieldPath, error) {
	if text == "" {
		return nil, errors.New("give a path, for example customer.email")
	}
	var path FieldPath
	for rest := text; ; {
		var name string
		more := false
		if strings.HasPrefix(rest, "[") {
			end := strings.IndexByte(rest, ']')
			if end < 0 {
				return nil, fmt.Errorf("the bracket of %s is not closed", Visible(rest))
			}
			name, rest = rest[:end+1], rest[end+1:]
			if more = strings.HasPrefix(rest, "."); !more && rest != "" {
				return nil, fmt.Errorf("a dot is missing after %s", Visible(name))
			}
			rest = strings.TrimPrefix(rest, ".")
		} else {
			name, rest, more = strings.Cut(rest, ".")
		}
		switch {
		case strings.TrimSpace(name) != name || name == "" || name == "[]":
			return nil, fmt.Errorf("%q has an empty name in it, or one with blanks around it; it looks like customer.email", Visible(text))
		case isIndex(name):
			return nil, fmt.Errorf("%s is an index: a path goes through lists without indices, so leave it out", name)
		}
		path = append(path, name)
		if !more {
			return path, nil
		}
	}
}

// isIndex reports whether a name is the index of an element, such as "[0]".
func isIndex(name string) bool {
	inner, ok := strings.CutPrefix(name, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	return ok && closed && inner != "" && strings.Trim(inner, "0123456789") == ""
}

// Covers reports whether a path in a query leads to the field that p names, or to something inside
// this field. Indices in the path do not matter. For example, order.items covers
// order.items.[0].sku. If the parameter "fixed" is true, the path must begin with the names of p.
// Otherwise, these names may also be further inside the path, so that items also covers
// order.items.
func (p FieldPath) Covers(path string, fixed bool) bool {
	names := strings.Split(path, ".")
	if parsed, err := ParseFieldPath(path); err == nil {
		names = parsed
	}
	list := slices.DeleteFunc(names, isIndex)
	for from := 0; from+len(p) <= len(list); from++ {
		if same := slices.Equal(p, list[from:from+len(p)]); same || fixed {
			return same
		}
	}
	return false
}

// MaskedField is a field of messages that is masked. If it has no path, the whole messages are
// masked.
type MaskedField struct {
	Type string // glob for the full name of a message type; "" = any type
	Path FieldPath
}

// Masked reports whether a path in a query leads to a masked field, or to something inside one. The
// parameter "fields" contains masked fields of messages. They are found anywhere in the path:
// customer.email is found in order.customer.email. The parameter "json" contains masked paths of
// JSON bodies. They are found only at the beginning of the path.
func Masked(fields []MaskedField, json []FieldPath, path string) bool {
	return slices.ContainsFunc(fields, func(f MaskedField) bool { return len(f.Path) > 0 && f.Path.Covers(path, false) }) ||
		slices.ContainsFunc(json, func(p FieldPath) bool { return p.Covers(path, true) })
}

func (p FieldPath) String() string { return strings.Join(p, ".") }
