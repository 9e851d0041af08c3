package payload

import "google.golang.org/protobuf/reflect/protoreflect"

// HidesAny says whether anything in any body may be masked, by the configuration or by a type with debug_redact.
func (d *Decoder) HidesAny() bool { return d.Hides() || d.Types != nil && d.Types.redacts() }

// redacts says whether any registered type is of a set with debug_redact.
func (r *Registry) redacts() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, defs := range r.full {
		for _, d := range defs {
			if d.types.redacting() {
				return true
			}
		}
	}
	return false
}

// redacting reports whether any field or extension has the option debug_redact.
func (t *resolver) redacting() bool {
	t.redactOnce.Do(func() {
		t.rangeMessages(func(md protoreflect.MessageDescriptor) {
			for i := range md.Fields().Len() {
				t.redactsAny = t.redactsAny || redacted(md.Fields().Get(i))
			}
		})
		for _, x := range t.exts {
			t.redactsAny = t.redactsAny || redacted(x.TypeDescriptor())
		}
	})
	return t.redactsAny
}

// redacts reports whether a message of the type may hold a field with debug_redact, at any depth.
func (d *definition) redacts() bool {
	if !d.types.redacting() {
		return false
	}
	if known, ok := d.types.redactors.Load(d.desc.FullName()); ok {
		return known.(bool)
	}
	seen := make(map[protoreflect.FullName]bool)
	var message func(md protoreflect.MessageDescriptor) bool
	field := func(fd protoreflect.FieldDescriptor) bool {
		return redacted(fd) || fd.Message() != nil && message(fd.Message())
	}
	message = func(md protoreflect.MessageDescriptor) bool {
		name := md.FullName()
		if seen[name] {
			return false
		}
		seen[name] = true
		if name == "google.protobuf.Any" { // which may hold any of the set
			return true
		}
		for i := range md.Fields().Len() {
			if field(md.Fields().Get(i)) {
				return true
			}
		}
		if md.ExtensionRanges().Len() > 0 {
			for key, x := range d.types.exts {
				if key.message == name && field(x.TypeDescriptor()) {
					return true
				}
			}
		}
		return false
	}
	found := message(d.desc)
	d.types.redactors.Store(d.desc.FullName(), found)
	return found
}

// redactedByName reports whether a type that is named for a letter may hold fields with debug_redact.
func redactedByName(named []candidate) bool {
	for _, c := range named {
		for _, d := range c.defs {
			if d.redacts() {
				return true
			}
		}
	}
	return false
}
