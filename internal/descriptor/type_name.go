package descriptor

import (
	"strings"
)

// TypeName returns the plain name of a type: "type.googleapis.com/acme.v1.X", ".acme.v1.X" and
// "acme.v1.X, Acme.Contracts" all become acme.v1.X.
func TypeName(name string) string {
	name = strings.TrimSpace(name)
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		name = name[i+1:]
	}
	return WithoutAssembly(strings.TrimPrefix(name, "."))
}

// WithoutAssembly removes the assembly from the name of a .NET type. EasyNetQ writes
// "Acme.Orders.Placed, Acme.Contracts" into the property "type". Its LegacyTypeNameSerializer
// writes "Acme.Orders.Placed:Acme.Contracts". Names of types with parameters, which have brackets,
// stay unchanged. Other words with colons stay unchanged too.
func WithoutAssembly(name string) string {
	if strings.Contains(name, "[") {
		return name
	}
	if before, _, ok := strings.Cut(name, ","); ok {
		return strings.TrimSpace(before)
	}
	if before, after, ok := strings.Cut(name, ":"); ok && strings.Contains(before, ".") &&
		!strings.Contains(after, ":") {
		return before
	}
	return name
}
