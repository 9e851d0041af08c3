package web

import (
	"reflect"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/internal/topology"
)

// ownSchemas describes the types that api.Marshal writes in a form of its own, and those with a
// fixed set of values.
var ownSchemas = []ownSchema{
	described[time.Time](huma.Schema{Type: huma.TypeString, Format: "date-time", Nullable: true}),
	described[time.Duration](huma.Schema{Type: huma.TypeString}),
	described[deadletter.ID](huma.Schema{Type: huma.TypeString, Pattern: "^([0-9a-f-]{36})?$"}),
	described[deadletter.GroupID](huma.Schema{Type: huma.TypeString, Pattern: "^(G-[0-9]+)?$"}),
	described[deadletter.OperationID](huma.Schema{Type: huma.TypeString, Pattern: "^(O-[0-9]+)?$"}),
	described[deadletter.Amount](huma.Schema{Type: huma.TypeInteger, Format: "int64", Nullable: true}),
	described[deadletter.NewestFirst](oneOf([]string{"oldest", "newest"})),
	described[deadletter.Result](oneOf(each(deadletter.Results, api.ResultName))),
	described[deadletter.State](oneOf(deadletter.States)),
	described[deadletter.Verb](oneOf(deadletter.Actions)),
	described[deadletter.RuleOutcome](oneOf(deadletter.RuleOutcomes)),
	described[deadletter.Role](oneOf(deadletter.RoleNames())),
	described[api.Text](huma.Schema{Type: huma.TypeString}),
	described[deadletter.Typed](huma.Schema{}),
}

// ownSchema is a type, and the type that stands for it in the document.
type ownSchema struct {
	of, as reflect.Type
	schema huma.Schema
}

func described[T any](s huma.Schema) ownSchema {
	return ownSchema{reflect.TypeFor[T](), reflect.TypeFor[asSchema[T]](), s}
}

func oneOf[T ~string](list []T) huma.Schema {
	return huma.Schema{Type: huma.TypeString, Enum: each(list, func(v T) any { return string(v) })}
}

// names are the names of types that share theirs with another one.
var names = map[reflect.Type]string{
	reflect.TypeFor[rules.Decided]():         "RuleDecided",
	reflect.TypeFor[topology.Applied]():      "AppliedPlan",
	reflect.TypeFor[rules.Step]():            "RuleStep",
	reflect.TypeFor[payload.Check]():         "EditCheck",
	reflect.TypeFor[payload.Step]():          "ReadStep",
	reflect.TypeFor[descriptor.Set]():        "SchemaSet",
	reflect.TypeFor[descriptor.Hit]():        "TypeHit",
	reflect.TypeFor[descriptor.Definition](): "TypeDefinition",
	reflect.TypeFor[topology.Plan]():         "TopologyPlan",
	reflect.TypeFor[problemOf]():             "Problem",
}

// asSchema stands for the type T in the document.
type asSchema[T any] struct{}

func (asSchema[T]) Schema(huma.Registry) *huma.Schema {
	i := slices.IndexFunc(ownSchemas, func(s ownSchema) bool { return s.of == reflect.TypeFor[T]() })
	s := ownSchemas[i].schema
	return &s
}

// newSchemas returns the registry of the types of the API.
func newSchemas() huma.Registry {
	r := huma.NewMapRegistry("#/components/schemas/", func(t reflect.Type, hint string) string {
		if name := names[t]; name != "" {
			return name
		}
		return huma.DefaultSchemaNamer(t, hint)
	})
	for _, s := range ownSchemas {
		r.RegisterTypeAlias(s.of, s.as)
	}
	return r
}
