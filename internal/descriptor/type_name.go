package descriptor

import (
	"strings"
)

// TypeName: "type.googleapis.com/acme.v1.X", ".acme.v1.X" and "acme.v1.X, Acme.Contracts" name
// acme.v1.X.
func TypeName(name string) string {
	name = strings.TrimSpace(name)
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		name = name[i+1:]
	}
	return WithoutAssembly(strings.TrimPrefix(name, "."))
}

// WithoutAssembly takes the assembly off a name of a .NET type: "Acme.Orders.Placed,
// Acme.Contracts", as EasyNetQ has it in the type property, or "Acme.Orders.Placed:Acme.Contracts",
// as its LegacyTypeNameSerializer has it. Types with parameters, which have brackets, stay; so do
// other words with colons.
func WithoutAssembly(name string) string {
	if strings.Contains(name, "[") {
		return name
	}
	if before, _, ok := strings.Cut(name, ","); ok {
		return strings.TrimSpace(before)
	}
	if before, after, ok := strings.Cut(name, ":"); ok && strings.Contains(before, ".") && !strings.Contains(after, ":") {
		return before
	}
	return name
}
