package payload

import (
	"slices"

	"github.com/deadletteroffice/dlo/internal/descriptor"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// HidesAny reports whether anything in any body may be masked, by the configuration or because a
// type has debug_redact.
func (d *Decoder) HidesAny() bool { return d.Hides() || d.Types.AnyVersion(redactingKey{}, redacting) }

// HidesMore reports whether bodies may have to hide more once the given types of a schema have
// changed.
func (d *Decoder) HidesMore(s *descriptor.Schema, types []string) bool {
	if d.Mask != nil && len(d.Mask.Fields) > 0 && len(types) > 0 {
		return true
	}
	return slices.ContainsFunc(types, func(name string) bool {
		md := s.Resolver().Message(protoreflect.FullName(name))
		return md != nil && redacts(&descriptor.Type{Desc: md, Types: s.Resolver()})
	})
}

type redactingKey struct{}

// redacting reports whether any field or extension of a set's version has the option debug_redact.
func redacting(t *descriptor.Resolver) bool {
	return t.Memo(redactingKey{}, func() any {
		any := false
		t.RangeMessages(func(md protoreflect.MessageDescriptor) {
			for i := range md.Fields().Len() {
				any = any || descriptor.Redacted(md.Fields().Get(i))
			}
		})
		t.RangeExtensions(func(_ protoreflect.FullName, x protoreflect.ExtensionTypeDescriptor) {
			any = any || descriptor.Redacted(x)
		})
		return any
	}).(bool)
}

// redactorKey is the cache key of a type for the function "redacts". It is the full name of the
// type.
type redactorKey protoreflect.FullName

// redacts reports whether a message of the type may contain a field with debug_redact, at any
// depth.
func redacts(d *descriptor.Type) bool {
	return redacting(d.Types) && d.Types.Memo(
		redactorKey(d.Desc.FullName()), func() any { return holdsAnyOr(d, descriptor.Redacted) },
	).(bool) || anyRedacts(d)
}

// anyHolderKey is the cache key of a type for the function holdsAny.
type anyHolderKey protoreflect.FullName

// anyRedacts reports whether a message of the type may contain an Any, while a type of any set has
// a field with debug_redact.
func anyRedacts(d *descriptor.Type) bool {
	return d.Types.Sets().AnyVersion(redactingKey{}, redacting) && holdsAny(d)
}

// holdsAny reports whether a message of the type may contain an Any, at any depth.
func holdsAny(d *descriptor.Type) bool {
	return d.Types.Memo(anyHolderKey(d.Desc.FullName()), func() any {
		return holdsAnyOr(d, func(protoreflect.FieldDescriptor) bool { return false })
	}).(bool)
}

// WithAnyHolders returns changed types, and the types whose messages may contain an Any of them.
// The result is never nil.
func WithAnyHolders(r *descriptor.Registry, changed []string) []string {
	list := append([]string{}, changed...)
	if len(changed) == 0 {
		return list
	}
	for _, name := range append(r.Types(), "google.protobuf.Any") {
		defs, _ := r.Lookup(name)
		if slices.ContainsFunc(defs, holdsAny) && !slices.Contains(changed, name) {
			list = append(list, name)
		}
	}
	return list
}

// holdsAnyOr reports whether a message of the type may contain an Any or a certain field, at any
// depth.
func holdsAnyOr(d *descriptor.Type, certain func(protoreflect.FieldDescriptor) bool) bool {
	seen := make(map[protoreflect.FullName]bool)
	var message func(md protoreflect.MessageDescriptor) bool
	field := func(fd protoreflect.FieldDescriptor) bool {
		return certain(fd) || fd.Message() != nil && message(fd.Message())
	}
	message = func(md protoreflect.MessageDescriptor) bool {
		name := md.FullName()
		if seen[name] {
			return false
		}
		seen[name] = true
		if name == "google.protobuf.Any" { // an Any may contain any type
			return true
		}
		for i := range md.Fields().Len() {
			if field(md.Fields().Get(i)) {
				return true
			}
		}
		if md.ExtensionRanges().Len() > 0 {
			found := false
			d.Types.RangeExtensions(func(of protoreflect.FullName, x protoreflect.ExtensionTypeDescriptor) {
				found = found || of == name && field(x)
			})
			return found
		}
		return false
	}
	return message(d.Desc)
}

// redactedByName reports whether one of the given types may contain fields with debug_redact.
func redactedByName(named []candidate) bool {
	return slices.ContainsFunc(named, func(c candidate) bool { return slices.ContainsFunc(c.defs, redacts) })
}
