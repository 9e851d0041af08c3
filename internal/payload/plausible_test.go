package payload

import (
	"strings"
	"testing"
	"testing/fstest"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/deadletteroffice/dlo/internal/budget"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
	"github.com/deadletteroffice/dlo/internal/payload/payloadtest"
)

func sourceOf(t *testing.T, source string) *descriptor.Registry {
	t.Helper()
	r := descriptor.NewRegistry()
	if _, err := r.AddSource("acme", fstest.MapFS{"acme.proto": {Data: []byte(source)}}); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestGuessHidesWhatOtherTypesHide checks that a matched body is hidden if another plausible type
// would hide anything that its type shows, wherever the body is shown.
func TestGuessHidesWhatOtherTypesHide(t *testing.T) {
	t.Parallel()
	const secret = "ann@acme.example"
	before := Hints{Prior: map[string]float64{"acme.Thing": 1}} // earlier letters of the queue had this type
	text := func(n protowire.Number, s string) []byte { return payloadtest.LengthPrefixed(n, []byte(s)) }
	number := func(n protowire.Number, v uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(nil, n, protowire.VarintType), v)
	}
	join := func(parts ...[]byte) (b []byte) {
		for _, p := range parts {
			b = append(b, p...)
		}
		return b
	}
	flat := join(text(1, secret), text(2, "Your order is on its way"), text(3, "by noon"))
	nested := join(text(1, "o-1000"), payloadtest.LengthPrefixed(2, flat), number(3, 700), text(4, "plain words"))
	rule := func(typ string, path ...string) *Mask {
		return Masks{Fields: []deadletter.MaskedField{{Type: typ, Path: path}}}.Body()
	}
	const header = `syntax = "proto3"; package acme; `
	for _, tt := range []struct {
		name, types string
		mask        *Mask
		body        []byte
	}{
		{
			"the type is covered less",
			`message Mail { string email = 1; string subject = 2; string note = 3; string more = 4; } message Thing { string a = 1; string b = 2; string c = 3; }`,
			rule("acme.Mail", "email"), flat,
		},
		{
			"a rule of any type",
			`message Mail { string email = 1; string subject = 2; string note = 3; string more = 4; } message Thing { string a = 1; string b = 2; string c = 3; }`,
			rule("", "email"), flat,
		},
		{
			"debug_redact",
			`message Mail { string email = 1 [debug_redact = true]; string subject = 2; string note = 3; string more = 4; } message Thing { string a = 1; string b = 2; string c = 3; }`,
			nil, flat,
		},
		{
			"far behind, but it reads all",
			`message Mail { bytes email = 1; bytes subject = 2; bytes note = 3; } message Thing { string a = 1; string b = 2; string c = 3; }`,
			rule("acme.Mail", "email"), flat,
		},
		{
			"deeper",
			`message Mail { string email = 1; string subject = 2; string note = 3; string more = 4; } message Order { string id = 1; Mail mail = 2; int64 sum = 3; string words = 4; string m = 5; }
			message Inner { string a = 1; string b = 2; string c = 3; } message Thing { string a = 1; Inner b = 2; int64 c = 3; string d = 4; }`, rule("acme.Mail", "email"), nested,
		},
		{
			"one value where the other has a message",
			`message Mail { string email = 1; string subject = 2; string note = 3; string x = 4; string y = 5; } message Order { string id = 1; Mail mail = 2; int64 sum = 3; string words = 4; string m = 5; }
			message Thing { string a = 1; bytes b = 2; int64 c = 3; string d = 4; }`, rule("acme.Mail", "email"), nested,
		},
		{
			"a whole type",
			`message Mail { string email = 1; string subject = 2; string note = 3; string more = 4; } message Thing { string a = 1; string b = 2; string c = 3; }`,
			rule("acme.Mail"), flat,
		},
	} {
		d := &Decoder{Types: sourceOf(t, header+tt.types), Mask: tt.mask}
		doc := d.Decode(tt.body, before, nil)
		if doc.Type != "acme.Thing" {
			t.Fatalf("%s: read as %q, so this proves nothing: %+v", tt.name, doc.Type, doc.Ranking)
		}
		if found := leakedCanary(everyText(doc), []string{secret}); found != "" || !doc.Masked {
			t.Errorf("%s: masked is %v, and %q is in\n%s", tt.name, doc.Masked, found, everyText(doc))
		}
		if !strings.Contains(everyText(d.Revealed().Decode(tt.body, before, nil)), secret) {
			t.Errorf("%s: it is hidden from who may see it", tt.name)
		}
		named := d.Decode(tt.body, Hints{Type: "acme.Thing"}, nil)
		if named.Masked || !strings.Contains(everyText(named), secret) {
			t.Errorf("%s: a letter that says what it is is masked as another type", tt.name)
		}
		e, err := d.Editable(tt.body, before, nil)
		if err != nil || e.Text != d.Revealed().Decode(tt.body, before, nil).JSON || !e.Masked {
			t.Errorf("%s: the editor shows %+v, %v", tt.name, e, err)
		}
	}
}

// TestATypeThatIsNotComparedMayHide covers a body that is too large to be compared with some type.
// That type counts as plausible, so the parts that it hides must be hidden.
func TestATypeThatIsNotComparedMayHide(t *testing.T) {
	t.Parallel()
	const secret = "ann@acme.example"
	body := append(
		payloadtest.LengthPrefixed(1, []byte(secret)),
		payloadtest.LengthPrefixed(2, []byte("Your order is on its way"))...,
	)
	var tree wireTree
	tree.read(body, 1000)
	d := &Decoder{
		Mask: Masks{Fields: []deadletter.MaskedField{{Type: "acme.Mail", Path: []string{"email"}}}}.Body(),
		Types: sourceOf(t, `syntax = "proto3"; package acme;
		message Mail { string email = 1; string subject = 2; } message Thing { string a = 1; string b = 2; }`),
	}
	for _, before := range []map[string]float64{nil, {"acme.Thing": 1}} {
		b := budget.NewBudget()
		b.Fields = 2 * tree.fields // only enough for the types that the queue had before
		doc := d.Decode(body, Hints{Prior: before}, b)
		if before != nil && doc.Type != "acme.Thing" || doc.Ranking.Left == 0 {
			t.Fatalf("%v: read as %q, so this proves nothing: %+v", before, doc.Type, doc.Ranking)
		}
		if text := everyText(doc); !doc.Masked || strings.Contains(text, secret) {
			t.Errorf("%v: masked is %v, in\n%s", before, doc.Masked, text)
		}
	}
}

// TestEditOfAGuessKeepsWhatIsHidden covers a body that fits two types. dlo shows it as one of them,
// but a mask hides a value of the other one. The value must stay hidden after an edit, even if only
// the shown type can decode the new body.
func TestEditOfAGuessKeepsWhatIsHidden(t *testing.T) {
	t.Parallel()
	const secret = "ann@acme.example"
	before := Hints{Prior: map[string]float64{"acme.Thing": 1}} // earlier letters of the queue had this type
	body := append(
		payloadtest.LengthPrefixed(1, []byte(secret)),
		payloadtest.LengthPrefixed(2, []byte("Your order is on its way"))...,
	)
	d := &Decoder{
		Mask: Masks{Fields: []deadletter.MaskedField{{Type: "acme.Mail", Path: []string{"email"}}}}.Body(),
		Types: sourceOf(t, `syntax = "proto3"; package acme;
		message Mail { string email = 1; string subject = 2; string a = 3; string b = 4; int64 c = 5; } message Thing { string a = 1; string b = 2; string c = 5; }`),
	}
	doc := d.Decode(body, before, nil)
	if doc.Type != "acme.Thing" || !doc.Masked {
		t.Fatalf("read as %q, masked %v", doc.Type, doc.Masked)
	}
	e, err := d.Patch(
		body, before, []byte(`[{"op": "add", "path": "/c", "value": "a text, where Mail has a number"}]`), nil,
	)
	if err != nil {
		t.Fatal(err)
	}
	var all string
	for _, line := range e.MaskedDiff {
		for _, span := range line.Spans {
			all += span.Text
		}
	}
	if strings.Contains(all, secret) {
		t.Errorf("the edit shows everybody\n%s", all)
	}
	now := &deadletter.Letter{
		Row: deadletter.Row{
			Type: "acme.Thing",
		},
		Reading:  deadletter.ReadByMatch,
		Body:     body,
		Revision: 1,
		Revised:  &deadletter.Revision{Number: 1, Body: e.Body},
	}
	if text := everyText(d.Letter(now)); strings.Contains(text, secret) {
		t.Errorf("the edited letter shows\n%s", text)
	}
	if text := everyText(d.Decode(e.Body, d.HintsOf(now), nil)); strings.Contains(text, secret) {
		t.Errorf("who reads the edited letter for lists, search and the editor sees\n%s", text)
	}
}
