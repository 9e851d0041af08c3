package deadletter

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// FieldPath is a path to a field in a body, as names: customer.email. It contains no indices,
// because a path leads through all elements of a list. The entries of a map are named by their
// keys, and unknown fields by their numbers. Extensions are written [acme.v1.remark].
//
// A protobuf field has two names: the name in its schema, such as order_id, and its JSON name, such
// as orderId. A path may contain either of them.
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
			return nil, fmt.Errorf(
				"%q has an empty name in it, or one with blanks around it; it looks like customer.email", Visible(text),
			)
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

// NamesIn returns the names in a path of a query, without indices.
func NamesIn(path string) []string {
	names := strings.Split(path, ".")
	if parsed, err := ParseFieldPath(path); err == nil {
		names = parsed
	}
	return slices.DeleteFunc(names, isIndex)
}

// Covers reports whether a path in a query leads to the field that p names, or to something inside
// this field. Indices in the path do not matter. For example, order.items covers
// order.items.[0].sku. If the parameter "fixed" is true, the path must begin with the names of p.
// Otherwise, these names may also be further inside the path, so that items also covers
// order.items.
func (p FieldPath) Covers(path string, fixed bool) bool {
	list := NamesIn(path)
	for from := 0; from+len(p) <= len(list); from++ {
		if same := slices.EqualFunc(p, list[from:from+len(p)], SameName); same || fixed {
			return same
		}
	}
	return false
}

// JSONName returns the JSON name that protobuf derives from the name of a field: orderId for
// order_id. The parameter may also be a path, or a JSON name, which stays unchanged. With the
// option json_name, a schema gives a field another JSON name.
func JSONName(name string) string {
	out := make([]byte, 0, len(name))
	for rest := strings.TrimRight(name, "_"); rest != ""; {
		var c byte
		c, rest = cutJSONName(rest)
		out = append(out, c)
	}
	return string(out)
}

// cutJSONName returns the first byte of the JSON name, and what follows it in the given name. The
// given name must not end with an underscore.
func cutJSONName(name string) (c byte, rest string) {
	rest = strings.TrimLeft(name, "_")
	if c = rest[0]; len(rest) < len(name) && 'a' <= c && c <= 'z' {
		c -= 'a' - 'A'
	}
	return c, rest[1:]
}

// SameName reports whether two names may be the two names of one field. In a JSON body without a
// type they are the names of two fields, so SameName is for masks and for completions. It allocates
// no memory, because a mask compares each name in a body with each rule.
func SameName(a, b string) bool {
	a, b = strings.TrimRight(a, "_"), strings.TrimRight(b, "_")
	var x, y byte
	for x == y && a != "" && b != "" {
		x, a = cutJSONName(a)
		y, b = cutJSONName(b)
	}
	return x == y && a == b
}

var capital = regexp.MustCompile("[A-Z]")

// Spellings returns paths in all spellings in which the search index has them, sorted: as they are
// given, with the names in schemas, and with JSON names.
func Spellings(paths ...string) (list []string) {
	for _, path := range paths {
		inSchema := capital.ReplaceAllStringFunc(path, func(c string) string { return "_" + strings.ToLower(c) })
		list = append(list, path, inSchema, JSONName(path))
	}
	slices.Sort(list)
	return slices.Compact(list)
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
	return slices.ContainsFunc(
		fields, func(f MaskedField) bool { return len(f.Path) > 0 && f.Path.Covers(path, false) },
	) ||
		slices.ContainsFunc(json, func(p FieldPath) bool { return p.Covers(path, true) })
}

func (p FieldPath) String() string { return strings.Join(p, ".") }
