package descriptor

import (
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Conflicts returns, for each set, the other sets that define one of its types differently. It
// compares only the newest versions of the sets. If a type has several definitions, dlo decodes a
// body with the definition that fits the body.
func (r *Registry) Conflicts() map[string][]string {
	if r == nil {
		return nil
	}
	r.mu.RLock()
	known, age := r.conflicts, r.changes
	var names []string
	var newest []*Schema
	for _, name := range r.setNames() {
		names, newest = append(names, name), append(newest, r.sets[name][len(r.sets[name])-1].Schema)
	}
	r.mu.RUnlock()
	if known != nil {
		return known
	}
	known = map[string][]string{}
	for i := range names {
		types := newest[i].types.allTypes()
		for j := range i {
			if definesDifferently(types, newest[j]) {
				known[names[i]], known[names[j]] = append(known[names[i]], names[j]), append(known[names[j]], names[i])
			}
		}
	}
	for _, list := range known {
		slices.Sort(list)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.changes == age {
		r.conflicts = known
	}
	return known
}

// definesDifferently reports whether the schema "other" defines at least one of the types
// differently.
func definesDifferently(types map[protoreflect.FullName]protoreflect.Descriptor, other *Schema) bool {
	d := &differ{} // one difference is enough
	for name, is := range types {
		was, err := other.types.Files.FindDescriptorByName(name)
		if err == nil && len(d.compare(was, is).Differences) > 0 {
			return true
		}
	}
	return false
}
