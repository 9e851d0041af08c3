package payload

import (
	"sort"
	"strings"
	"sync"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Registry holds descriptor sets by name, each with the versions it had. Two sets may define one type differently; nothing is merged. It is safe
// for concurrent use, and the nil *Registry knows no types. A reload builds a new Registry and puts it in the place of the old one.
type Registry struct {
	mu    sync.RWMutex
	sets  map[string][]*version // oldest version first
	full  map[protoreflect.FullName][]*definition
	short map[string]map[protoreflect.FullName]bool

	merged *typeIndex // what bodies are matched against; nil until it is asked for, and after a change
}

// version is one content of a set. It does not change.
type version struct {
	set   string
	hash  string // SHA-256 of the serialised files, hex
	types *resolver
	names []string // of the message types, sorted, without google.protobuf
	files int
}

// NewRegistry returns a registry that knows no types.
func NewRegistry() *Registry {
	return &Registry{
		sets:  make(map[string][]*version),
		full:  make(map[protoreflect.FullName][]*definition),
		short: make(map[string]map[protoreflect.FullName]bool),
	}
}

// Set describes one version of a descriptor set.
type Set struct {
	Name    string
	Version string // SHA-256 of the content, 64 hex digits
	Types   []string
	Files   int
	Current bool // the newest version
}

// Sets returns all versions of all sets, by name, newest version first.
func (r *Registry) Sets() []Set {
	if r == nil {
		return nil
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	var list []Set
	for name, versions := range r.sets {
		for i, v := range versions {
			list = append(list, Set{Name: name, Version: v.hash, Types: append([]string(nil), v.names...), Files: v.files, Current: i == len(versions)-1})
		}
	}
	// Reversed first, so that the stable sort leaves the newest version in front.
	for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
		list[i], list[j] = list[j], list[i]
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].Name < list[j].Name })
	return list
}

// Types returns the full names of all message types in all versions, sorted, without map entries and without the package google.protobuf.
func (r *Registry) Types() []string {
	if r == nil {
		return nil
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	list := make([]string, 0, len(r.full))
	for name := range r.full {
		if !isGoogle(name) {
			list = append(list, string(name))
		}
	}
	sort.Strings(list)
	return list
}

// add makes v the newest version of its set. A content that the set has already is moved, not doubled.
func (r *Registry) add(v *version) {
	v.types.matchables() // now rather than for the first body
	r.mu.Lock()
	defer r.mu.Unlock()
	r.merged = nil
	versions := r.sets[v.set]
	for i, old := range versions {
		if old.hash == v.hash {
			r.sets[v.set] = append(append(versions[:i:i], versions[i+1:]...), old)
			return
		}
	}
	r.sets[v.set] = append(versions, v)
	v.types.rangeMessages(func(md protoreflect.MessageDescriptor) {
		name := md.FullName()
		r.full[name] = append(r.full[name], &definition{desc: md, types: v.types, set: v.set + " " + v.hash[:8]})
		if !isGoogle(name) {
			s := string(name.Name())
			if r.short[s] == nil {
				r.short[s] = make(map[protoreflect.FullName]bool)
			}
			r.short[s][name] = true
		}
	})
}

// find returns the definitions of a type by its full or unique short name, in any of its spellings: current versions first, then by name of the set,
// newest first. When a short name belongs to several types it returns their full names, sorted, and no definition.
func (r *Registry) find(name string) (defs []*definition, ambiguous []string) {
	name = trimTypeName(name)
	full := protoreflect.FullName(name)
	if !full.IsValid() {
		return nil, nil
	}
	if r != nil {
		r.mu.RLock()
		defer r.mu.RUnlock()
		if len(r.full[full]) == 0 && !strings.Contains(name, ".") {
			switch found := r.short[name]; len(found) {
			case 0:
			case 1:
				for n := range found {
					full = n
				}
			default:
				for n := range found {
					ambiguous = append(ambiguous, string(n))
				}
				sort.Strings(ambiguous)
				return nil, ambiguous
			}
		}
		defs = r.ordered(r.full[full])
	}
	if len(defs) == 0 && isGoogle(full) {
		if md := wellKnown().message(full); md != nil {
			defs = []*definition{{desc: md, types: wellKnown(), set: "well-known types"}}
		}
	}
	return defs, nil
}

// ordered copies defs into the order that find promises. The caller holds the lock.
func (r *Registry) ordered(defs []*definition) []*definition {
	type place struct {
		set string
		age int // 0 is current
	}
	places := make(map[*resolver]place)
	for name, versions := range r.sets {
		for i, v := range versions {
			places[v.types] = place{name, len(versions) - 1 - i}
		}
	}
	list := append([]*definition(nil), defs...)
	sort.SliceStable(list, func(i, j int) bool {
		a, b := places[list[i].types], places[list[j].types]
		if (a.age == 0) != (b.age == 0) {
			return a.age == 0
		}
		if a.set != b.set {
			return a.set < b.set
		}
		return a.age < b.age
	})
	return list
}

func isGoogle(name protoreflect.FullName) bool {
	return strings.HasPrefix(string(name), "google.protobuf.")
}
