package failure

import (
	"cmp"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Mapped is the name of the convention for failures in headers that the configuration maps.
const Mapped = "mapped headers"

// configured reads the headers that the configuration maps to the parts of a failure. The parts of
// the error that it does not map are taken from the plain headers.
func (r *reading) configured() (f deadletter.Failure, found bool) {
	typ, message, stack := r.firstAt(r.own.Type), r.firstAt(r.own.Message), r.firstAt(r.own.Stack)
	if cmp.Or(typ.text, message.text, stack.text) != "" {
		r.setError(
			&f, typ.or(r.firstText(plainHeaders.types)), message.or(r.firstText(plainHeaders.messages)),
			stack.or(r.firstText(plainHeaders.stacks)),
		)
		f.By = Mapped
	}
	_, attempts := r.valueAt(r.own.Attempts)
	_, origin := r.valueAt(r.own.Origin)
	f.Attempts, f.Queue = countOf(attempts), validName(textOf(origin))
	return f, f != deadletter.Failure{}
}

func (p part) or(other part) part {
	if p.text != "" {
		return p
	}
	return other
}

func (r *reading) firstAt(paths []string) part {
	names, value := r.valueAt(paths)
	if len(names) == 0 {
		return part{}
	}
	return part{names[0], textOf(value), names[1:]}
}

// valueAt returns the value of the first path that leads to a text or a number, and the names that
// lead to it, of which the first is a header. The word "headers." may stand before the name of a
// header.
func (r *reading) valueAt(paths []string) (names []string, value any) {
	for _, path := range paths {
		for _, path := range []string{path, strings.TrimPrefix(path, "headers.")} {
			if names, value = follow(r.Headers, path); textOf(value) != "" || countOf(value) > 0 {
				return names, value
			}
		}
	}
	return nil, nil
}

// follow returns the value at a path in a table, and the names of the path. A name in the table may
// itself contain dots.
func follow(table deadletter.Table, path string) (names []string, value any) {
	if name, ok := nameIn(table, path); ok {
		return []string{name}, table[name]
	}
	for at := range path {
		if path[at] != '.' {
			continue
		}
		name, ok := nameIn(table, path[:at])
		if !ok {
			continue
		}
		if names, value = follow(tableOf(table[name]), path[at+1:]); value != nil {
			return append([]string{name}, names...), value
		}
	}
	return nil, nil
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

// tableOf returns a value that is a table, or a text with a JSON object. It returns nil for any
// other value.
func tableOf(value any) deadletter.Table {
	switch v := value.(type) {
	case deadletter.Table:
		return v
	case map[string]any: // inside of JSON
		return v
	}
	var object map[string]any
	if text := textOf(value); strings.HasPrefix(strings.TrimSpace(text), "{") && headerJSON(text, &object) {
		return object
	}
	return nil
}
