package descriptor

import (
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Hit is a type, or a field of a type, whose name contains a word.
type Hit struct {
	Type  string `json:"type"`
	Set   string `json:"set"`
	Field string `json:"field,omitzero"` // "" = the type itself
	Is    string `json:"is,omitzero"`    // the type of the field in .proto syntax
}

const maxHits = 200

// Find searches for a word, ignoring case, in the names of message types and of their fields. It
// searches the newest version of each set. It returns at most 200 hits: types first, then fields,
// both sorted by name. The result "more" is true if there are further hits.
func (r *Registry) Find(word string) (hits []Hit, more bool) {
	if r == nil || word == "" {
		return nil, false
	}
	r.mu.RLock()
	current := map[string]*Schema{}
	for name, versions := range r.sets {
		current[name] = versions[len(versions)-1].Schema
	}
	r.mu.RUnlock()
	word = strings.ToLower(word)
	holds := func(name string) bool { return strings.Contains(strings.ToLower(name), word) }
	var types, fields []Hit
	for set, s := range current {
		s.types.RangeMessages(func(md protoreflect.MessageDescriptor) {
			if IsGoogle(md.FullName()) {
				return
			}
			if holds(string(md.FullName())) {
				types = append(types, Hit{Type: string(md.FullName()), Set: set})
			}
			for i := range md.Fields().Len() {
				if fd := md.Fields().Get(i); holds(string(fd.Name())) || holds(fd.JSONName()) {
					fields = append(fields, Hit{
						Type:  string(md.FullName()),
						Set:   set,
						Field: string(fd.Name()),
						Is:    typeWords(fd),
					})
				}
			}
		})
	}
	for _, list := range [][]Hit{types, fields} {
		slices.SortFunc(list, func(a, b Hit) int {
			return strings.Compare(a.Type+"\x00"+a.Field+"\x00"+a.Set, b.Type+"\x00"+b.Field+"\x00"+b.Set)
		})
	}
	hits = append(types, fields...)
	if len(hits) > maxHits {
		return hits[:maxHits], true
	}
	return hits, false
}

// Paths returns the paths of bodies of registered types that a path may mean, with the names in the
// schemas, sorted. The given path may contain JSON names and indices. Paths returns nothing if no
// version of any type has such a path.
func (r *Registry) Paths(path string) []string {
	if r == nil {
		return nil
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	names, found := deadletter.NamesIn(path), map[string]bool{}
	for name, defs := range r.full {
		for _, def := range defs {
			if path := def.path(names); path != "" && !IsGoogle(name) {
				found[path] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// path returns a path with the names in the schema, or "" if bodies of the type t cannot have this
// path. In maps and in the types of google.protobuf, any name is possible.
func (t *Type) path(names []string) string {
	md, path := t.Desc, slices.Clone(names)
	for i, name := range names {
		fd := t.Types.FieldNamed(md, name)
		if fd == nil || fd.Message() == nil && i < len(names)-1 {
			return ""
		}
		if !fd.IsExtension() {
			path[i] = string(fd.Name())
		}
		if md = fd.Message(); md != nil && (fd.IsMap() || IsGoogle(md.FullName())) {
			break
		}
	}
	return strings.Join(path, ".")
}
