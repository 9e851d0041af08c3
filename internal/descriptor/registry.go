// Package descriptor manages the protobuf types with which bodies are decoded. It reads descriptor
// sets, .proto files and archives of both, and makes schemas of them. It keeps schemas and their
// versions in a registry, finds types in them, and compares versions. It also estimates how much
// memory is needed to decode a body as a type. Its input is bytes or an fs.FS. It decodes no bodies
// and contacts no server.
package descriptor

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Registry holds descriptor sets by name, each with its versions. Two sets may define the same type
// differently, because the sets are not merged. A Registry is safe for concurrent use. The nil
// *Registry knows no types.
type Registry struct {
	mu    sync.RWMutex
	sets  map[string][]*version // the versions of each set, the oldest first
	full  map[protoreflect.FullName][]*Type
	short map[string]map[protoreflect.FullName]bool

	made      map[any]any         // results of Memo; empty after a change
	conflicts map[string][]string // conflicts between sets; nil until they are requested, and after a change
	changes   int64               // number of changes so far
}

// version is one version of a schema set: the schema itself, and a description of this version.
type version struct {
	*Schema
	about deadletter.SchemaVersion // without the content
	types *Resolver                // knows the registry
}

// MaxVersions is the maximum number of versions of a set that are kept in memory. The newest ones
// are kept. Each version needs the memory of its descriptors.
const MaxVersions = 20

// NewRegistry returns a registry that knows no types.
func NewRegistry() *Registry {
	return &Registry{
		sets:  make(map[string][]*version),
		full:  make(map[protoreflect.FullName][]*Type),
		short: make(map[string]map[protoreflect.FullName]bool),
		made:  make(map[any]any),
	}
}

// Memo calls "make" with the newest version of every set, sorted by set name, and returns the
// result. It caches this result under the given key until the sets change. The nil Registry caches
// nothing.
func (r *Registry) Memo(key any, make func(newest []*Resolver) any) any {
	if r == nil {
		return make(nil)
	}
	r.mu.RLock()
	made, ok := r.made[key]
	r.mu.RUnlock()
	if ok {
		return made
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if made, ok := r.made[key]; ok {
		return made
	}
	var newest []*Resolver
	for _, name := range r.setNames() {
		versions := r.sets[name]
		newest = append(newest, versions[len(versions)-1].types)
	}
	r.made[key] = make(newest)
	return r.made[key]
}

// Set describes one version of a descriptor set.
type Set struct {
	deadletter.SchemaVersion          // without the content
	TypeCount                int      `json:"type_count"`
	Types                    []string `json:"types"`
	Files                    int      `json:"files"`
	Missing                  []string `json:"missing"` // files that it imports and lacks, at most 100
	Current                  bool     `json:"current"` // the newest version
}

// Sets returns all versions of all sets. It sorts the sets by name, and the versions of a set from
// the newest to the oldest.
func (r *Registry) Sets() []Set {
	if r == nil {
		return nil
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	var list []Set
	for _, name := range r.setNames() {
		versions := r.sets[name]
		for i, v := range slices.Backward(versions) {
			list = append(list, Set{
				SchemaVersion: v.about,
				TypeCount:     len(v.Types()),
				Types:         v.Types(),
				Files:         v.files,
				Missing:       v.missing,
				Current:       i == len(versions)-1,
			})
		}
	}
	return list
}

// setNames returns the names of the sets, sorted. The caller must hold the lock.
func (r *Registry) setNames() []string { return slices.Sorted(maps.Keys(r.sets)) }

// Current returns the newest version of a set, and its description. It returns nil if there is no
// set with that name.
func (r *Registry) Current(name string) (*Schema, deadletter.SchemaVersion) {
	if r == nil {
		return nil, deadletter.SchemaVersion{}
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	versions := r.sets[name]
	if len(versions) == 0 {
		return nil, deadletter.SchemaVersion{}
	}
	v := versions[len(versions)-1]
	return v.Schema, v.about
}

// Types returns the full names of all message types in all versions, sorted, without map entries
// and without the package google.protobuf.
func (r *Registry) Types() []string {
	if r == nil {
		return nil
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	list := make([]string, 0, len(r.full))
	for name := range r.full {
		if !IsGoogle(name) {
			list = append(list, string(name))
		}
	}
	slices.Sort(list)
	return list
}

// Add makes a schema the newest version of the set that the parameter "about" names. Add computes
// the version itself, and ignores the version and the content in "about". If the set already has a
// version with this content, that version becomes the newest one and keeps the time at which it was
// first added. If the set then has more than 20 versions, Add drops the oldest.
func (r *Registry) Add(about deadletter.SchemaVersion, s *Schema) {
	about.Version, about.Content = s.hash, nil
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(&version{s, about, s.types.in(r)})
}

// add does the same as Add. The caller must hold the lock.
func (r *Registry) add(v *version) {
	r.dropComputed()
	name := v.about.Name
	versions := r.sets[name]
	for i, old := range versions {
		if old.hash == v.hash {
			v.about.At, v.Schema, v.types = old.about.At, old.Schema, old.types
			r.sets[name] = append(append(versions[:i:i], versions[i+1:]...), v)
			return
		}
	}
	if r.sets[name] = append(versions, v); len(r.sets[name]) > MaxVersions {
		r.sets[name] = slices.Clone(r.sets[name][1:])
		r.registerAll()
		return
	}
	r.registerNames(v)
}

// dropComputed drops everything that was computed from the sets. The caller must hold the lock.
func (r *Registry) dropComputed() {
	clear(r.made)
	r.conflicts = nil
	r.changes++
}

// Changes returns how often the sets have changed. With it, callers check whether an earlier result
// is still valid.
func (r *Registry) Changes() int64 {
	if r == nil {
		return 0
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.changes
}

// registerNames registers the types of a version for look-ups.
func (r *Registry) registerNames(v *version) {
	v.types.RangeMessages(func(md protoreflect.MessageDescriptor) {
		name := md.FullName()
		r.full[name] = append(r.full[name], &Type{Desc: md, Types: v.types, Set: v.about.Name + " " + v.hash[:8]})
		if !IsGoogle(name) {
			s := string(name.Name())
			if r.short[s] == nil {
				r.short[s] = make(map[protoreflect.FullName]bool)
			}
			r.short[s][name] = true
		}
	})
}

// registerAll registers the types of all versions again.
func (r *Registry) registerAll() {
	clear(r.full)
	clear(r.short)
	for _, versions := range r.sets {
		for _, v := range versions {
			r.registerNames(v)
		}
	}
}

// Remove removes a set with all its versions and reports whether it existed.
func (r *Registry) Remove(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.sets[name]; !ok {
		return false
	}
	delete(r.sets, name)
	r.dropComputed()
	r.registerAll()
	return true
}

// With returns a copy of the registry in which s is the newest version of the set with the given
// name. It is used to try out a schema.
func (r *Registry) With(name string, s *Schema) *Registry {
	trial := NewRegistry()
	if r != nil {
		r.mu.RLock()
		for set, versions := range r.sets {
			for _, v := range versions {
				trial.sets[set] = append(trial.sets[set], &version{v.Schema, v.about, v.Schema.types.in(trial)})
			}
		}
		r.mu.RUnlock()
	}
	trial.registerAll()
	trial.Add(deadletter.SchemaVersion{Name: name}, s)
	return trial
}

// AnyVersion reports whether the function "holds" returns true for the types of any version of any
// set. It caches the answer under the key until a set changes.
func (r *Registry) AnyVersion(key any, holds func(types *Resolver) bool) bool {
	return r != nil && r.Memo(key, func([]*Resolver) any {
		for _, versions := range r.sets {
			if slices.ContainsFunc(versions, func(v *version) bool { return holds(v.types) }) {
				return true
			}
		}
		return false
	}).(bool)
}

// Lookup returns the definitions of the type with the given name. This is the full name of the type
// in any spelling, or a short name that only one type has. Definitions from the newest versions
// come first. Those from other versions follow, sorted by set name and from the newest to the
// oldest. If several types have the given short name, Lookup returns their sorted full names and no
// definition.
func (r *Registry) Lookup(name string) (defs []*Type, ambiguous []string) {
	name = TypeName(name)
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
				slices.Sort(ambiguous)
				return nil, ambiguous
			}
		}
		defs = r.inOrder(r.full[full])
	}
	if len(defs) == 0 && IsGoogle(full) {
		if md := WellKnown().Message(full); md != nil {
			defs = []*Type{{Desc: md, Types: WellKnown().in(r), Set: "well-known types"}}
		}
	}
	if len(defs) == 0 && full == deadletter.TrialType {
		defs = []*Type{{Desc: Own().types.Message(full), Types: Own().types, Set: ownSet}}
	}
	return defs, nil
}

type orderedKey protoreflect.FullName

// ordered returns the definitions of the type with the given full name, in the order of Lookup.
func (r *Registry) ordered(name protoreflect.FullName) []*Type {
	r.mu.RLock()
	known := len(r.full[name])
	r.mu.RUnlock()
	if known == 0 {
		return nil
	}
	return r.Memo(orderedKey(name), func([]*Resolver) any { return r.inOrder(r.full[name]) }).([]*Type)
}

// inOrder returns a copy of the definitions, in the order that Lookup documents. The caller must
// hold the lock.
func (r *Registry) inOrder(defs []*Type) []*Type {
	type place struct {
		set string
		age int // 0 = the newest version
	}
	places := make(map[*Resolver]place)
	for name, versions := range r.sets {
		for i, v := range versions {
			places[v.types] = place{name, len(versions) - 1 - i}
		}
	}
	list := slices.Clone(defs)
	slices.SortStableFunc(list, func(one, other *Type) int {
		a, b := places[one.Types], places[other.Types]
		return cmp.Or(min(a.age, 1)-min(b.age, 1), strings.Compare(a.set, b.set), a.age-b.age)
	})
	return list
}

func IsGoogle(name protoreflect.FullName) bool {
	return strings.HasPrefix(string(name), "google.protobuf.")
}
