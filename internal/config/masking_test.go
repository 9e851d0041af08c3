package config_test

import "testing"

func TestMistakesOfMasking(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		want       []place
	}{
		{
			"a type that is none",
			`masking: [{type: "acme/x"}]`,
			[]place{{1, 18, `"acme/x" is not the full name of a message type`}},
		},
		{"no type", `masking: [{type: ""}]`, []place{{1, 18, "is not the full name"}}},
		{"no path", `masking: [{field: ""}]`, []place{{1, 19, "give a path"}}},
		{"an empty name", `masking: [{type: a, field: a..b}]`, []place{{1, 28, "has an empty name in it"}}},
		{"a dot at the end", `masking: [{json: card.}]`, []place{{1, 18, "has an empty name in it"}}},
		{
			"an index",
			`masking: [{json: "items.[0].card"}]`,
			[]place{{1, 18, "[0] is an index: a path goes through lists without indices"}},
		},
		{
			"paths of other languages",
			`masking: [{json: $.pa}, {json: /pb/c}, {json: "items[].pc"}, {json: "items[0].pd"}, {json: items.0.pe}]`,
			[]place{
				{1, 18, "$.pa would hide nothing: a path has only names, separated by dots, and leads through all items of lists; write pa"},
				{1, 32, "write pb.c"},
				{1, 47, "write items.pc"},
				{1, 69, "write items.pd"},
				{1, 92, "write items.pe"},
			},
		},
		{
			"more paths of other languages",
			`masking: [{json: items.*.pf}, {json: body.pg}, {json: "items[*].ph"}, {json: "$['pi'].a"}, {json: "#/pj"}]`,
			[]place{
				{1, 18, "write items.pf"},
				{1, 38, "write pg"},
				{1, 55, "write items.ph"},
				{1, 78, "write pi.a"},
				{1, 99, "write pj"},
			},
		},
		{
			"paths that lead nowhere",
			`masking: [{json: $}, {json: "card_*"}, {json: "0"}, {field: $.a}, {field: "items[?(@.a)]"}, {field: /a}]`,
			[]place{
				{1, 18, "name the field"},
				{1, 29, "name the field"},
				{1, 47, "name the field"},
				{1, 61, "write a"},
				{1, 75, "write items"},
				{1, 101, "write a"},
			},
		},
		{"a bracket", `masking: [{field: "[acme.x"}]`, []place{{1, 19, "is not closed"}}},
		{"a list", `masking: [{field: [a]}]`, []place{{1, 19, "a path such as customer.email is wanted here"}}},
		{
			"two kinds",
			`masking: [{json: a, field: b}]`,
			[]place{{1, 11, "an entry has exactly one of header, pattern and json; or it has type"}},
		},
		{"a header of a type", `masking: [{header: a, type: b}]`, []place{{1, 11, "an entry has exactly one of"}}},
		{"nothing", `masking: [{}]`, []place{{1, 11, "an entry has exactly one of"}}},
		{
			"a field of search",
			"masking: [{json: card.number}, {type: x, field: email}]\nsearch: {fields: [card.number.last, customer.tier, customer.email, card]}",
			[]place{
				{2, 19, "card.number.last is masked, so letters cannot be found by it"},
				{2, 52, "customer.email is masked"},
			},
		},
		{
			"a field of search by its other name",
			"masking: [{json: card_no}, {field: orderId}]\nsearch: {fields: [cardNo, order_id.x, orderid]}",
			[]place{{2, 19, "cardNo is masked"}, {2, 27, "order_id.x is masked"}},
		},
		{
			"a field of search in another language",
			"search: {fields: [$.customer.tier, body.tier, items.*.sku, '/a/b', 1.a]}",
			[]place{
				{1, 19, "$.customer.tier would find nothing: a path has only names, separated by dots, and leads through all items of lists; write customer.tier"},
				{1, 47, "items.*.sku would find nothing"},
				{1, 60, "/a/b would find nothing"},
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := load(t, c.text)
			mistakes(t, err, c.want)
		})
	}
}

// TestNamesThatLookLikeOtherLanguages covers paths with unusual names, which must stay valid.
func TestNamesThatLookLikeOtherLanguages(t *testing.T) {
	t.Parallel()
	c, err := load(
		t, `masking: [{json: $type.a}, {json: "user[email]"}, {json: a.body.b}, {json: body}, {json: a/b}, `+
			`{field: body.a}, {field: a.0.7}, {field: "[acme.v1.x].a"}]`,
	)
	if err != nil || len(c.Masking.JSON) != 5 || len(c.Masking.Fields) != 3 {
		t.Errorf("%+v, %v", c, err)
	}
}
