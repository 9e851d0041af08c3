package web

import (
	"context"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/web/view"
)

// facets contains the facets in the order in which pages show them. A closed facet is shown only
// when a person opens it.
var facets = []facetField{
	{query.State, "State", false},
	{query.Queue, "Queue", false},
	{query.Type, "Type", false},
	{query.Reason, "Reason", false},
	{query.Severity, "Severity", true},
	{query.Group, "Group", true},
	{query.VHost, "Vhost", true},
	{query.Broker, "Broker", true},
}

type facetField struct {
	field  query.Field
	title  string
	closed bool
}

// facetsOf returns the facets beside a list of letters. For each value of a field, a facet shows
// the number of letters and has buttons that change the query. The vhost and the broker become
// facets only if they have more than one value.
func facetsOf(q query.Query, counted deadletter.Facets) []view.Facet {
	counts, sampled := map[query.Field][]deadletter.FacetValue{}, map[query.Field]int{}
	for _, f := range counted.Fields {
		counts[query.Field(f.Field)], sampled[query.Field(f.Field)] = f.Values, f.Sampled
	}
	fields := facets
	for _, f := range counted.Fields {
		if path, ok := strings.CutPrefix(f.Field, "body."); ok {
			fields = append(fields[:len(fields):len(fields)], facetField{query.Field(f.Field), path, true})
		}
	}
	var out []view.Facet
	for _, f := range fields {
		chosen, excluded := q.Values(f.field), excludedValues(q, f.field)
		values, known := counts[f.field]
		asked := len(chosen)+len(excluded) > 0
		if !asked && (!known || (f.field == query.VHost || f.field == query.Broker) && len(values) < 2) {
			continue
		}
		if f.field == query.State {
			values = inOrder(values)
		}
		facet := view.Facet{Title: f.title, Closed: f.closed && !asked, Sampled: sampled[f.field]}
		add := func(v deadletter.FacetValue) {
			facet.Values = append(facet.Values, view.FacetValue{
				Label: facetLabel(f.field, v.Value),
				Term:  (query.Query{}).With(f.field, v.Value).String(),
				Count: v.Count,
				On:    slices.Contains(chosen, v.Value),
				Not:   slices.Contains(excluded, v.Value),
			})
		}
		for _, v := range values {
			if len(facet.Values) >= facetTaken && !slices.Contains(chosen, v.Value) &&
				!slices.Contains(excluded, v.Value) {
				facet.More++
				continue
			}
			add(v)
		}
		// values that the query contains or excludes, but that no counted letter has
		for _, c := range append(slices.Clone(chosen), excluded...) {
			if !slices.ContainsFunc(values, func(v deadletter.FacetValue) bool { return v.Value == c }) {
				add(deadletter.FacetValue{Value: c})
			}
		}
		out = append(out, facet)
	}
	return out
}

// excludedValues returns the values of a field that the query q excludes.
func excludedValues(q query.Query, f query.Field) []string {
	var out []string
	for _, t := range q.Terms {
		if name := string(t.Field) + "." + t.Name; t.Not && (t.Field == f || name == string(f)) {
			for _, v := range t.Values {
				if len(v.Pattern) == 1 {
					out = append(out, v.Pattern[0])
				}
			}
		}
	}
	return out
}

func facetLabel(f query.Field, value string) string {
	switch {
	case f == query.State:
		return view.StateWord(deadletter.State(value))
	case f == query.Type && value == query.NoType:
		return "no type"
	case f == query.Type:
		return value[strings.LastIndexByte(value, '.')+1:]
	case f == query.Severity && value != "":
		return strings.ToUpper(value[:1]) + value[1:]
	case value == "":
		return "unknown"
	}
	return value
}

// inOrder sorts states in the order in which a letter goes through them.
func inOrder(values []deadletter.FacetValue) []deadletter.FacetValue {
	values = slices.Clone(values)
	place := func(v deadletter.FacetValue) int { return slices.Index(deadletter.States, deadletter.State(v.Value)) }
	slices.SortStableFunc(values, func(a, b deadletter.FacetValue) int {
		return place(a) - place(b)
	})
	return values
}

// listFacets returns the values of each field among the letters of a query. The terms of a field do
// not narrow its own values.
func (w *Web) listFacets(ctx context.Context, in *Queried) (*reply[api.Facets], error) {
	q, err := query.Parse(in.Q, w.queryOptions())
	if err != nil {
		return nil, err
	}
	facets, err := w.Store.Facets(ctx, q, w.facetedPaths(q)...)
	out := api.Facets{Facets: map[string][]deadletter.FacetValue{}, Sampled: facets.Sampled}
	for _, f := range facets.Fields {
		out.Facets[f.Field] = f.Values
	}
	return answer(out, err)
}
