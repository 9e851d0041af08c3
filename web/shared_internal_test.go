package web

import (
	"slices"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

func TestDifferencesAreNoAccidents(t *testing.T) {
	t.Parallel()
	in := func(of int, counts map[string]map[string]int) values { return values{counts, of} }
	for _, c := range []struct {
		name        string
		here, quiet values
		want        []deadletter.Different
	}{
		{
			"a value that is here alone",
			in(60, map[string]map[string]int{"tenant": {"acme": 58, "b": 2}}),
			in(40, map[string]map[string]int{"tenant": {"acme": 1, "b": 20, "c": 19}}),
			[]deadletter.Different{{Field: "tenant", Value: "acme", Here: 58, Otherwise: 1}},
		},
		{
			"a field that is missing here",
			in(60, map[string]map[string]int{}),
			in(40, map[string]map[string]int{"coupon": {"x": 20, "y": 18}}),
			[]deadletter.Different{{Field: "coupon", Value: "", Here: 0, Otherwise: 38}},
		},
		{
			"a field that is set here, with many values",
			in(20, map[string]map[string]int{"note": {"a": 7, "b": 7, "c": 6}}),
			in(20, map[string]map[string]int{}),
			[]deadletter.Different{{Field: "note", Value: "", Here: 20, Otherwise: 0}},
		},
		{
			"the greatest first",
			in(20, map[string]map[string]int{"a": {"x": 12}, "b": {"x": 20}}),
			in(20, map[string]map[string]int{}),
			[]deadletter.Different{
				{Field: "b", Value: "x", Here: 20, Otherwise: 0},
				{Field: "a", Value: "x", Here: 12, Otherwise: 0},
			},
		},
		{"too few to say", in(4, map[string]map[string]int{"a": {"x": 4}}), in(60, map[string]map[string]int{}), nil},
		{
			"an accident of few", in(5, map[string]map[string]int{"a": {"x": 3}}),
			in(6, map[string]map[string]int{"a": {"x": 1}}), nil,
		},
		{
			"hardly more", in(60, map[string]map[string]int{"a": {"x": 60}}),
			in(60, map[string]map[string]int{"a": {"x": 50}}), nil,
		},
		{
			"what tells of the death",
			in(60, map[string]map[string]int{"header.x-error-message": {"e": 60}, "header.Retries": {"3": 60}}),
			in(60, map[string]map[string]int{}), nil,
		},
		{
			"the same", in(60, map[string]map[string]int{"a": {"x": 60}}),
			in(60, map[string]map[string]int{"a": {"x": 60}}), nil,
		},
	} {
		if got := differences(c.here, c.quiet); !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
