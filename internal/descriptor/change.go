package descriptor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Change describes what changes if a schema becomes the newest version of a set. Types are messages
// and enums, sorted by full name.
type Change struct {
	Set     string       `json:"set"`
	Version string       `json:"version"`
	Known   string       `json:"known"` // "" = the version is new; KnownCurrent or KnownOlder = the set already has it
	Added   []string     `json:"added"`
	Enums   int          `json:"-"` // how many of Added are enums
	Changed []TypeChange `json:"changed"`
	Removed []string     `json:"removed"` // bodies that name these types are still decoded with older versions
	// types that another set defines differently; a body is decoded with the definition that fits it
	Conflicts []TypeChange `json:"conflicts"`
	Missing   []string     `json:"missing"` // files that it imports and lacks, at most 100
	// types that are added, changed or removed, and types that contain these; their bodies may be
	// decoded differently
	Affected []string `json:"-"`
}

// These are the values of the field Known, which is set if the set already has the content of the
// schema. The content is that of the newest version, or that of an older one.
const (
	KnownCurrent = "current"
	KnownOlder   = "older"
)

// TypeChange describes how one type changes.
type TypeChange struct {
	Type        string   `json:"type"`
	Set         string   `json:"set,omitzero"` // the other set of a conflict
	Differences []string `json:"differences"`  // at most 20 differences in words, such as "field 7 added: string note"
	More        int      `json:"more"`         // number of differences that are left out
}

const (
	maxDifferences = 20     // maximum number of differences that are described for a type
	maxCompared    = 10_000 // maximum number of differences in all types; further types are only reported as changed
)

// Compare returns what changes if s becomes the newest version of the set with the given name.
// Compare itself changes nothing.
func (r *Registry) Compare(name string, s *Schema) Change {
	c := Change{Set: name, Version: s.hash, Missing: s.missing}
	var old *Schema
	others := map[string]*Schema{}
	if r != nil {
		r.mu.RLock()
		for set, versions := range r.sets {
			current := versions[len(versions)-1]
			if set != name {
				others[set] = current.Schema
				continue
			}
			old = current.Schema
			for _, v := range versions {
				if v.hash == s.hash {
					c.Known = KnownOlder
				}
			}
			if old.hash == s.hash {
				c.Known = KnownCurrent
			}
		}
		r.mu.RUnlock()
	}
	next, was := s.types.allTypes(), map[protoreflect.FullName]protoreflect.Descriptor{}
	extends, extended := s.types.extensions(), map[string]protoreflect.FullName{}
	if old != nil {
		was, extended = old.types.allTypes(), old.types.extensions()
	}
	d := &differ{left: maxCompared}
	for _, typ := range slices.Sorted(maps.Keys(next)) {
		if before := was[typ]; before == nil {
			c.Added = append(c.Added, string(typ))
			if _, enum := next[typ].(protoreflect.EnumDescriptor); enum {
				c.Enums++
			}
		} else if t := d.compare(before, next[typ]); len(t.Differences) > 0 {
			c.Changed = append(c.Changed, t)
		}
		for _, set := range slices.Sorted(maps.Keys(others)) {
			other, err := others[set].types.Files.FindDescriptorByName(typ)
			if err != nil {
				continue
			}
			if t := d.compare(other, next[typ]); len(t.Differences) > 0 {
				t.Set = set
				c.Conflicts = append(c.Conflicts, t)
			}
		}
	}
	for _, typ := range slices.Sorted(maps.Keys(was)) {
		if next[typ] == nil {
			c.Removed = append(c.Removed, string(typ))
		}
	}
	c.setAffected(next, extends, extended)
	return c
}

// extensions maps a description of each extension to the type that it extends.
func (t *Resolver) extensions() map[string]protoreflect.FullName {
	list := map[string]protoreflect.FullName{}
	t.RangeExtensions(func(of protoreflect.FullName, x protoreflect.ExtensionTypeDescriptor) {
		list[fmt.Sprint(of, x.Number(), x.FullName(), typeWords(x), Redacted(x))] = of
	})
	return list
}

const anyName = protoreflect.FullName("google.protobuf.Any")

// setAffected finds the types that change, and all types that contain one of them. It stores their
// names in the field Affected. The parameter "next" contains all types as they are after the
// change; the others contain the extensions after and before it.
func (c *Change) setAffected(
	next map[protoreflect.FullName]protoreflect.Descriptor, extends, extended map[string]protoreflect.FullName,
) {
	users := map[protoreflect.FullName][]protoreflect.FullName{}
	for typ, d := range next {
		md, ok := d.(protoreflect.MessageDescriptor)
		if !ok {
			continue
		}
		for i := range md.Fields().Len() {
			fd := md.Fields().Get(i)
			if fd.IsMap() {
				fd = fd.MapValue()
			}
			if fd.Message() != nil {
				users[fd.Message().FullName()] = append(users[fd.Message().FullName()], typ)
			} else if fd.Enum() != nil {
				users[fd.Enum().FullName()] = append(users[fd.Enum().FullName()], typ)
			}
		}
	}
	found := map[protoreflect.FullName]bool{}
	var find func(typ protoreflect.FullName)
	find = func(typ protoreflect.FullName) {
		if !found[typ] {
			found[typ] = true
			for _, user := range users[typ] {
				find(user)
			}
		}
	}
	for _, typ := range slices.Concat(c.Added, c.Removed) {
		find(protoreflect.FullName(typ))
	}
	for _, t := range c.Changed {
		find(protoreflect.FullName(t.Type))
	}
	for is, of := range extends {
		if extended[is] == "" {
			find(of)
		}
	}
	for was, of := range extended {
		if extends[was] == "" {
			find(of)
		}
	}
	if len(found) > 0 {
		find(anyName) // an Any may contain a message of a changed type
		delete(found, anyName)
	}
	for _, typ := range slices.Sorted(maps.Keys(found)) {
		c.Affected = append(c.Affected, string(typ))
	}
}

// allTypes returns all messages and enums, except those of google.protobuf and map entries.
func (t *Resolver) allTypes() map[protoreflect.FullName]protoreflect.Descriptor {
	list := make(map[protoreflect.FullName]protoreflect.Descriptor)
	enums := func(es protoreflect.EnumDescriptors) {
		for i := range es.Len() {
			list[es.Get(i).FullName()] = es.Get(i)
		}
	}
	t.Files.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		enums(f.Enums())
		return true
	})
	t.RangeMessages(func(md protoreflect.MessageDescriptor) {
		list[md.FullName()] = md
		enums(md.Enums())
	})
	maps.DeleteFunc(list, func(name protoreflect.FullName, _ protoreflect.Descriptor) bool { return IsGoogle(name) })
	return list
}

// differ compares two versions of a type, and describes the differences in words. The field "left"
// says how many more differences it may describe.
type differ struct{ left int }

func (d *differ) compare(was, is protoreflect.Descriptor) TypeChange {
	t := TypeChange{Type: string(is.FullName())}
	say := func(format string, args ...any) {
		switch {
		case d.left == 0 && len(t.Differences) == 0:
			t.Differences = append(t.Differences, "it is different")
		case d.left == 0 || len(t.Differences) == maxDifferences:
			t.More++
		default:
			text := deadletter.Cut(deadletter.Visible(fmt.Sprintf(format, args...)), 300)
			t.Differences = append(t.Differences, text)
			d.left--
		}
	}
	switch is := is.(type) {
	case protoreflect.MessageDescriptor:
		if was, ok := was.(protoreflect.MessageDescriptor); ok {
			messages(was, is, say)
		} else {
			say("it was no message")
		}
	case protoreflect.EnumDescriptor:
		if was, ok := was.(protoreflect.EnumDescriptor); ok {
			enums(was, is, say)
		} else {
			say("it was no enum")
		}
	}
	return t
}

func messages(was, is protoreflect.MessageDescriptor, say func(string, ...any)) {
	for _, n := range numbers(was.Fields(), is.Fields()) {
		a, b := was.Fields().ByNumber(n), is.Fields().ByNumber(n)
		switch {
		case a == nil:
			say("field %d added: %s %s", n, typeWords(b), b.Name())
		case b == nil:
			say("field %d removed: %s %s", n, typeWords(a), a.Name())
		default:
			if x, y := typeWords(a), typeWords(b); x != y {
				say("field %d %s type %s -> %s", n, b.Name(), x, y)
			}
			if a.Name() != b.Name() {
				say("field %d renamed %s -> %s", n, a.Name(), b.Name())
			}
			if x, y := oneofName(a), oneofName(b); x != y {
				say("field %d %s in oneof %s -> %s", n, b.Name(), x, y)
			}
			if x, y := Redacted(a), Redacted(b); x != y {
				say("field %d %s debug_redact %v -> %v", n, b.Name(), x, y)
			}
		}
	}
}

func numbers(lists ...protoreflect.FieldDescriptors) []protoreflect.FieldNumber {
	var all []protoreflect.FieldNumber
	for _, l := range lists {
		for i := range l.Len() {
			all = append(all, l.Get(i).Number())
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// typeWords returns the type of a field in .proto syntax: "repeated acme.v1.Item", "map<string,
// int32>", "optional string".
func typeWords(fd protoreflect.FieldDescriptor) string {
	if fd.IsMap() {
		return "map<" + typeWords(fd.MapKey()) + ", " + typeWords(fd.MapValue()) + ">"
	}
	name := fd.Kind().String()
	switch {
	case fd.Kind() == protoreflect.GroupKind && fd.Message() != nil:
		name = "group " + string(fd.Message().FullName())
	case fd.Message() != nil:
		name = string(fd.Message().FullName())
	case fd.Enum() != nil:
		name = string(fd.Enum().FullName())
	}
	switch {
	case fd.IsList():
		return "repeated " + name
	case fd.Cardinality() == protoreflect.Required:
		return "required " + name
	case fd.HasOptionalKeyword():
		return "optional " + name
	}
	return name
}

func oneofName(fd protoreflect.FieldDescriptor) string {
	if o := fd.ContainingOneof(); o != nil && !o.IsSynthetic() {
		return string(o.Name())
	}
	return "none"
}

func enums(was, is protoreflect.EnumDescriptor, say func(string, ...any)) {
	names := func(e protoreflect.EnumDescriptor) map[protoreflect.EnumNumber]string {
		list := map[protoreflect.EnumNumber][]string{}
		for i := range e.Values().Len() {
			v := e.Values().Get(i)
			list[v.Number()] = append(list[v.Number()], string(v.Name()))
		}
		joined := make(map[protoreflect.EnumNumber]string, len(list))
		for n, all := range list {
			slices.Sort(all)
			joined[n] = strings.Join(all, ", ")
		}
		return joined
	}
	before, after := names(was), names(is)
	all := maps.Clone(before)
	maps.Copy(all, after)
	for _, n := range slices.Sorted(maps.Keys(all)) {
		a, b := before[n], after[n]
		switch {
		case a == "":
			say("value %d added: %s", n, b)
		case b == "":
			say("value %d removed: %s", n, a)
		case a != b:
			say("value %d renamed %s -> %s", n, a, b)
		}
	}
}
