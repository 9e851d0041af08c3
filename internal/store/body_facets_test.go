package store_test

import (
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/google/go-cmp/cmp"
)

// TestFacetsOfBodies checks the facets of body fields, with and without a query. If a letter is
// purged or the masks change, the values of the letter must disappear from the facets.
func TestFacetsOfBodies(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	ctx := t.Context()
	ids := receive(t, s, window(t, 1, "sms", 4)).New
	more := receive(t, s, window(t, 2, "email", 1)).New
	classify(t, s, deadletter.ClassifiedDead, time.Time{})
	var list []deadletter.Indexed
	for i, tier := range []string{"gold", "gold", "silver", "", "gold"} {
		x := deadletter.Indexed{
			Letter: append(ids, more...)[i],
			Fields: []deadletter.IndexedField{{Name: "read", Value: "json"}},
		}
		if tier != "" {
			x.Fields = append(x.Fields, deadletter.IndexedField{Name: "body.tier", Value: tier})
		}
		list = append(list, x)
	}
	if _, err := s.Reindex(ctx, "m:1"); err != nil {
		t.Fatal(err)
	}
	if err := s.Index(ctx, list); err != nil {
		t.Fatal(err)
	}
	tiers := func(text string) []deadletter.FacetValue {
		t.Helper()
		q, err := query.Parse(text, query.Options{Body: func(string) bool { return true }})
		if err != nil {
			t.Fatal(err)
		}
		facets, err := s.Facets(ctx, q, "tier")
		if err != nil {
			t.Fatal(err)
		}
		last := facets.Fields[len(facets.Fields)-1]
		if last.Field != "body.tier" {
			t.Fatal(last)
		}
		return last.Values
	}
	for text, want := range map[string][]deadletter.FacetValue{
		"":          {{Value: "gold", Count: 3}, {Value: "silver", Count: 1}},
		"queue:sms": {{Value: "gold", Count: 2}, {Value: "silver", Count: 1}},
		// the facet of a field ignores the terms on that field
		"queue:sms body.tier:silver":     {{Value: "gold", Count: 2}, {Value: "silver", Count: 1}},
		"queue:email read:json":          {{Value: "gold", Count: 1}},
		"queue:email read:unknown":       nil,
		"queue:nothing -body.tier:empty": nil,
	} {
		if diff := cmp.Diff(want, tiers(text)); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
	if n := count(t, s, "read:json"); n != 5 {
		t.Errorf("%d letters read as JSON", n)
	}
	operate(t, s, deadletter.VerbPurge, ids[0])
	if diff := cmp.Diff([]deadletter.FacetValue{
		{Value: "gold", Count: 2},
		{Value: "silver", Count: 1},
	}, tiers("")); diff != "" {
		t.Error(diff)
	}
	if _, err := s.Reindex(ctx, "other masks:1"); err != nil {
		t.Fatal(err)
	}
	if l := letter(t, s, ids[1]); l.Summary != "" {
		t.Errorf("lists show what may be masked now: %q", l.Summary)
	}
	if len(nextUnread(t, s, 10)) != 4 {
		t.Error("the letters are not read again")
	}
	if got := tiers(""); got != nil {
		t.Errorf("a facet shows what may be masked now: %v", got)
	}
}
