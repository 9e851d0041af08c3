package web

import (
	"reflect"
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
var ownSchemas = map[reflect.Type]*huma.Schema{
	reflect.TypeFor[time.Time]():              {Type: huma.TypeString, Format: "date-time", Nullable: true},
	reflect.TypeFor[time.Duration]():          {Type: huma.TypeString},
	reflect.TypeFor[deadletter.ID]():          {Type: huma.TypeString, Pattern: "^([0-9a-f-]{36})?$"},
	reflect.TypeFor[deadletter.GroupID]():     {Type: huma.TypeString, Pattern: "^(G-[0-9]+)?$"},
	reflect.TypeFor[deadletter.OperationID](): {Type: huma.TypeString, Pattern: "^(O-[0-9]+)?$"},
	reflect.TypeFor[deadletter.Amount]():      {Type: huma.TypeInteger, Format: "int64", Nullable: true},
	reflect.TypeFor[deadletter.NewestFirst](): oneOf([]string{api.OldestFirst, api.NewestFirst}),
	reflect.TypeFor[deadletter.Result]():      oneOf(each(deadletter.Results, api.ResultName)),
	reflect.TypeFor[deadletter.State]():       oneOf(deadletter.States),
	reflect.TypeFor[deadletter.Verb]():        oneOf(deadletter.Actions),
	reflect.TypeFor[deadletter.RuleOutcome](): oneOf(deadletter.RuleOutcomes),
	reflect.TypeFor[deadletter.Role]():        oneOf(deadletter.RoleNames()),
	reflect.TypeFor[api.Text]():               {Type: huma.TypeString},
	reflect.TypeFor[deadletter.Typed]():       {},
}

func oneOf[T ~string](list []T) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Enum: each(list, func(v T) any { return string(v) })}
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
	s := *ownSchemas[reflect.TypeFor[T]()]
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
	described[time.Time](r)
	described[time.Duration](r)
	described[deadletter.ID](r)
	described[deadletter.GroupID](r)
	described[deadletter.OperationID](r)
	described[deadletter.Amount](r)
	described[deadletter.NewestFirst](r)
	described[deadletter.Result](r)
	described[deadletter.State](r)
	described[deadletter.Verb](r)
	described[deadletter.RuleOutcome](r)
	described[deadletter.Role](r)
	described[api.Text](r)
	described[deadletter.Typed](r)
	return r
}

func described[T any](r huma.Registry) {
	r.RegisterTypeAlias(reflect.TypeFor[T](), reflect.TypeFor[asSchema[T]]())
}
