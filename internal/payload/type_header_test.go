package payload

import (
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestATypeInAHeader reads a body that several types fit. A header names one of them.
func TestATypeInAHeader(t *testing.T) {
	t.Parallel()
	d := &Decoder{
		Types: registry(t, "shop", parcels), TypeHeaders: []string{"x-message-type", "name"},
		Bindings: []deadletter.Binding{{Queue: "bound", Type: "shop.v1.OtherPair"}},
	}
	body := pair("a text of the first", "and one of the second")
	for name, c := range map[string]struct {
		headers deadletter.Table
		h       Hints
		typ     string
		chosen  string
	}{
		"the full name": {deadletter.Table{"name": "shop.v1.Pair"}, Hints{}, "shop.v1.Pair", "the header name"},
		"another case":  {deadletter.Table{"X-Message-TYPE": "shop.v1.Pair"}, Hints{}, "shop.v1.Pair", "the header X-Message-TYPE"},
		"a type URL":    {deadletter.Table{"name": "type.googleapis.com/shop.v1.Pair"}, Hints{}, "shop.v1.Pair", "the header name"},
		"two, and the first of the setting counts": {
			deadletter.Table{"name": "shop.v1.OtherPair", "X-Message-Type": "shop.v1.Pair"},
			Hints{},
			"shop.v1.Pair",
			"the header X-Message-Type",
		},
		"two, and one names nothing": {
			deadletter.Table{"name": "shop.v1.Pair", "x-message-type": "PairMade"},
			Hints{},
			"shop.v1.Pair",
			"the header name",
		},
		"a word of the publisher":  {deadletter.Table{"name": "Pair"}, Hints{}, "", ""},
		"an unknown type":          {deadletter.Table{"name": "shop.v2.Pair"}, Hints{}, "", ""},
		"a number":                 {deadletter.Table{"name": int64(7)}, Hints{}, "", ""},
		"a header that is not set": {deadletter.Table{"kind": "shop.v1.Pair"}, Hints{}, "", ""},
		"before a binding": {
			deadletter.Table{"name": "shop.v1.Pair"}, Hints{Queue: "bound"}, "shop.v1.Pair", "the header name",
		},
		"after the type property": {
			deadletter.Table{"name": "shop.v1.Pair"},
			Hints{Type: "shop.v1.OtherPair"},
			"shop.v1.OtherPair",
			"the type property",
		},
		"the type property is a word": {
			deadletter.Table{"name": "shop.v1.Pair"}, Hints{Type: "pair.made"}, "shop.v1.Pair", "the header name",
		},
	} {
		c.h.Headers = c.headers
		doc := d.Decode(body, c.h, nil)
		if doc.Type != c.typ || doc.Chosen != c.chosen || doc.Problem != "" && c.typ != "" {
			t.Errorf("%s: %q by %q, problem %q", name, doc.Type, doc.Chosen, doc.Problem)
		}
	}
	doc := d.Decode([]byte(`{"a": "x"}`), Hints{Headers: deadletter.Table{"name": "shop.v1.Pair"}}, nil)
	if doc.Kind != JSON || doc.Problem != "" {
		t.Errorf("JSON: %s, problem %q", doc.Kind, doc.Problem)
	}
	masked := *d
	masked.Mask = &Mask{Fields: []deadletter.MaskedField{{Type: "shop.v1.Pair", Path: deadletter.FieldPath{"b"}}}}
	if doc := masked.Decode(body, Hints{Headers: deadletter.Table{"name": "shop.v1.Pair"}}, nil); !doc.Masked {
		t.Error("the mask of the type is not applied")
	}
}
