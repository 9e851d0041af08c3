package descriptor

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Hit is a type, or a field of a type, whose name contains a word.
type Hit struct {
	Type  string
	Set   string
	Field string // "" = the type itself
	Is    string // the type of the field in .proto syntax
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
				if fd := md.Fields().Get(i); holds(string(fd.Name())) {
					fields = append(fields, Hit{Type: string(md.FullName()), Set: set, Field: string(fd.Name()), Is: typeWords(fd)})
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
