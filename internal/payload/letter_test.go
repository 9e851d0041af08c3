package payload

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
)

// TestABodyIsBoundedByWhatCanBePublished checks a body whose unpacked content is larger than the
// maximum size of a body that can be published. dlo must treat this body as too large.
func TestABodyIsBoundedByWhatCanBePublished(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(bytes.Repeat([]byte("all of it is text. "), 1000))
	w.Close()
	d := &Decoder{MaxBody: 10_000}
	if doc := d.Decode(b.Bytes(), Hints{}, nil); !doc.TooLarge {
		t.Errorf("%s of %d bytes", doc.Kind, len(doc.Body))
	}
	d.MaxBody = 0
	if doc := d.Decode(b.Bytes(), Hints{}, nil); doc.Kind != Text {
		t.Errorf("%s: %s", doc.Kind, doc.Problem)
	}
}

// TestALetterIsReadAsItIsSent checks that dlo decodes the newest revision of a letter, because this
// is what it would send. If a part of the received body is masked, the bytes must stay hidden in
// every revision.
func TestALetterIsReadAsItIsSent(t *testing.T) {
	t.Parallel()
	d := &Decoder{Mask: Masks{JSON: []deadletter.FieldPath{{"card"}}}.Body()}
	l := deadletter.Letter{
		Body:       []byte(`{"card":"4111","n":1}`),
		Properties: deadletter.Properties{ContentType: "application/json"},
	}
	if doc := d.Letter(&l); !doc.Masked || strings.Contains(doc.JSON, "4111") || d.EditDiff(&l) != nil {
		t.Errorf("%s", doc.JSON)
	}
	l.Revision, l.Revised = 1, &deadletter.Revision{Number: 1, Body: []byte(`{"n":2}`), Properties: l.Properties}
	if doc := d.Letter(&l); !strings.Contains(doc.JSON, `"n": 2`) || !doc.Masked {
		t.Errorf("%s, masked %v", doc.JSON, doc.Masked)
	}
	want := "  {\n-   \"[card]\": [\"••••\",]\n- [  \"n\": 1]\n+   \"[n]\": [2]\n  }\n"
	if got := diffText(d.EditDiff(&l)); got != want {
		t.Errorf("the edit shows as\n%s", got)
	}
	l.Body = []byte(`{"n":1}`)
	if doc := d.Letter(&l); doc.Masked {
		t.Error("nothing of it is masked")
	}
	l.Picked, l.Crashes = "acme.X", deadletter.MaxCrashes
	if doc := d.Letter(&l); doc.Kind != Binary || doc.JSON != "" || d.EditDiff(&l) != nil {
		t.Errorf("a letter that dlo died of was read: %s", doc.JSON)
	}
}

// TestALetterIsRevisedByAPatch checks that one patch makes a revision of each letter to which it
// applies. The other letters must get a reason.
func TestALetterIsRevisedByAPatch(t *testing.T) {
	t.Parallel()
	d := &Decoder{}
	l := deadletter.Letter{
		Row: deadletter.Row{
			ID: "x",
		},
		Body: []byte(`{"n":1}`),
		Properties: deadletter.Properties{
			ContentType: "application/json",
			Expiration:  "5000",
			Headers:     deadletter.Table{"CC": "q", "a": "b"},
		},
	}
	r, err := d.Revise(&l, []byte(`[{"op":"replace","path":"/n","value":2}]`), true)
	if err != nil || string(r.Body) != `{"n":2}` || r.Number != 1 || r.Changes != "n" ||
		r.Properties.Expiration != "" || len(
		r.Properties.Headers,
	) != 1 {
		t.Fatalf("%+v %v", r, err)
	}
	r.Properties.Expiration = "9000" // a person has set this
	l.Revision, l.Revised = 1, &r
	if again, err := d.Revise(
		&l, []byte(`[{"op":"replace","path":"/n","value":3}]`), true,
	); err != nil || again.Number != 2 || again.Properties.Expiration != "9000" {
		t.Errorf("%+v %v", again, err)
	}
	for patch, want := range map[string]string{
		`[{"op":"test","path":"/n","value":1}]`:    "another one in this letter",
		`[{"op":"replace","path":"/n","value":2}]`: "nothing would change",
		`[`: "",
	} {
		if _, err := d.Revise(&l, []byte(patch), true); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", patch, err)
		}
	}
}

// TestReadingWithoutJSON checks that a message can be decoded without making its JSON. Masked parts
// must be detected even then.
func TestReadingWithoutJSON(t *testing.T) {
	t.Parallel()
	body := encode(t, email, `{"requestId": "r", "to": {"address": "dana@example.com"}}`)
	with := (&Decoder{Types: schemas(), Mask: pattern}).Decode(body, Hints{Type: email}, nil)
	without := (&Decoder{Types: schemas(), Mask: pattern, NoJSON: true}).Decode(body, Hints{Type: email}, nil)
	if with.JSON == "" || without.JSON != "" || !without.Masked || without.Type != email ||
		Summary(with, "") != Summary(without, "") || Words(with) != Words(without) {
		t.Errorf("with %+v\nwithout %+v", with, without)
	}
}

// TestAMaskedLetterIsRevisedByWhoMayReveal checks that only people with the right to see masked
// values can revise masked letters.
func TestAMaskedLetterIsRevisedByWhoMayReveal(t *testing.T) {
	t.Parallel()
	d := &Decoder{Mask: Masks{JSON: []deadletter.FieldPath{{"card"}}}.Body()}
	l := deadletter.Letter{
		Body:       []byte(`{"card":"4111","n":1}`),
		Properties: deadletter.Properties{ContentType: "application/json"},
	}
	patch := []byte(`[{"op":"replace","path":"/n","value":2}]`)
	for _, blind := range []string{
		string(patch), `[{"op":"test","path":"/card","value":"4112"}]`, `[{"op":"remove","path":"/card/1"}]`,
	} { // no mistake in the patch may tell what the letter contains
		if _, err := d.Revise(&l, []byte(blind), false); err == nil || !strings.Contains(err.Error(), "right to reveal") {
			t.Error(err)
		}
	}
	if r, err := d.Revise(&l, patch, true); err != nil || string(r.Body) != `{"card":"4111","n":2}` {
		t.Errorf("%s %v", r.Body, err)
	}
	l.Body = []byte(`{"n":1}`)
	if _, err := d.Revise(&l, patch, false); err != nil {
		t.Error(err)
	}
}

// TestALetterThatDLODiedOfIsNotDecodedByAnEdit checks that an edit does not decode a letter that
// crashed dlo. If it did, the operation would crash dlo again at each start.
func TestALetterThatDLODiedOfIsNotDecodedByAnEdit(t *testing.T) {
	t.Parallel()
	d := &Decoder{}
	l := deadletter.Letter{
		Body:       []byte(`{"n":1}`),
		Properties: deadletter.Properties{ContentType: "application/json"},
		Crashes:    deadletter.MaxCrashes,
	}
	patch, h := []byte(`[{"op":"replace","path":"/n","value":2}]`), hintsOf(&l)
	_, revised := d.Revise(&l, patch, true)
	_, patched := d.Patch(l.Body, h, patch, nil)
	_, opened := d.Editable(l.Body, h, nil)
	_, edited := d.Edit(l.Body, h, `{"n":2}`, nil)
	_, different := d.Difference(l.Body, h, `{"n":2}`, nil)
	for i, err := range []error{revised, patched, opened, edited, different} {
		if err == nil || !strings.Contains(err.Error(), "dlo died while it was being read") {
			t.Errorf("%d: %v", i, err)
		}
	}
	if e, err := d.Replace(
		l.Body, h, []byte(`{"n":2}`), nil,
	); err != nil || e.JSON != "" || string(e.Body) != `{"n":2}` || len(e.Changed) != 1 {
		t.Errorf("%+v %v", e, err)
	}
}

// TestAnOldLetterIsReadByAnOldVersion covers a letter without a type name. A new version of a set
// can no longer decode it. The letter must stay readable with the version that it matched before,
// if that version knows all of the body.
func TestAnOldLetterIsReadByAnOldVersion(t *testing.T) {
	t.Parallel()
	types := descriptor.NewRegistry()
	for _, fields := range []string{
		"string request_id = 1; int64 tenant_id = 2; string text = 3; repeated string labels = 4;",
		"int64 request_id = 1; string tenant_id = 2; int64 text = 3; double labels = 4;",
	} {
		if _, err := types.AddSource("acme", fstest.MapFS{
			"a.proto": {Data: []byte(`syntax = "proto3"; package acme; message Order { ` + fields + ` }`)},
		}); err != nil {
			t.Fatal(err)
		}
	}
	d := &Decoder{Types: types}
	l := deadletter.Letter{
		Row: deadletter.Row{
			Type: "acme.Order",
		},
		Body:    []byte("\n\x05r-123\x10\x85\xa6\x03\x1a\x11hello good friend\x22\x03one\x22\x03two"),
		Reading: deadletter.ReadByMatch,
	}
	if doc := d.Letter(&l); doc.Type != "acme.Order" || !strings.Contains(doc.JSON, "hello good friend") ||
		doc.Reading() != deadletter.ReadByMatch {
		t.Errorf("%s %q: %s", doc.Kind, doc.Type, doc.Problem)
	}
	wrapped := l
	wrapped.Body = []byte(base64.StdEncoding.EncodeToString(l.Body))
	if doc := d.Letter(&wrapped); doc.Type != "acme.Order" || len(doc.Layers) != 1 {
		t.Errorf("in base64: %s %q", doc.Kind, doc.Type)
	}
	l.Body = append(l.Body, "\x4a\x02hi"...) // a field that no version knows
	if doc := d.Letter(&l); doc.Type != "" {
		t.Errorf("read as %s", doc.Type)
	}
	l.Reading = deadletter.ReadUnknown
	l.Body = l.Body[:len(l.Body)-4]
	if doc := d.Letter(&l); doc.Type != "" {
		t.Errorf("a letter that never matched is read as %s", doc.Type)
	}
}

// TestTypesThatFitAreListedAsCommonAsTheyAre checks the order of types that can decode a body
// equally well. The types must be sorted by their share among the letters of the queue. Even if one
// type has almost all of the letters, it must only be listed first: whether it is the type of the
// letter was already decided when the letter was classified.
func TestTypesThatFitAreListedAsCommonAsTheyAre(t *testing.T) {
	t.Parallel()
	d := &Decoder{Types: registryOf(t, "A string int64 string; B string int64 string; C string int64 string")}
	l := deadletter.Letter{Body: threeFields, Reading: deadletter.ReadAmbiguous}
	doc := d.LetterAmong(&l, map[string]float64{"a.B": 0.02, "a.C": 0.98})
	var names []string
	for _, m := range doc.Ranking.Matches {
		names = append(names, m.Type)
	}
	if got := strings.Join(
		names, " ",
	); got != "a.C a.B a.A" || doc.Ranking.Verdict != Ambiguous || doc.Ranking.Tied != 3 {
		t.Errorf("%s, %+v", got, doc.Ranking)
	}
}

// TestAMatchByShapeOnly checks that a type that was chosen only by the shape of the body is marked
// as such. Its score must be below one.
func TestAMatchByShapeOnly(t *testing.T) {
	t.Parallel()
	d := &Decoder{Types: registryOf(t, "UserCreated string int64 string")}
	for property, only := range map[string]bool{"": true, "order.placed": true, "user.created": false} {
		doc := d.Decode(threeFields, Hints{Type: property, Prior: map[string]float64{"a.UserCreated": 1}}, nil)
		if doc.Type != "a.UserCreated" || doc.ShapeOnly != only || doc.Ranking.Matches[0].Score > shapeMost == only {
			t.Errorf(
				"property %q: %q, by shape only %v, score %v", property, doc.Type, doc.ShapeOnly,
				doc.Ranking.Matches[0].Score,
			)
		}
	}
	if doc := d.Decode(threeFields, Hints{Picked: "a.UserCreated"}, nil); doc.ShapeOnly {
		t.Error("a pick is by shape only")
	}
}

// TestATaggedTextIsAmbiguous covers a text whose bytes can also be decoded as a message. The
// reading must be ambiguous. The document must show the text, and the fields that the bytes would
// have as a message.
func TestATaggedTextIsAmbiguous(t *testing.T) {
	t.Parallel()
	d := &Decoder{Types: registryOf(t, "A string; B string")}
	text := strings.Repeat("projects/p", 4)
	body := []byte("\n(" + text)
	doc := d.Decode(body, Hints{}, nil)
	if doc.Reading() != deadletter.ReadAmbiguous || len(doc.Fields) != 1 || doc.Fields[0].Number != 1 ||
		Summary(doc, "") != `binary, 42 B: "`+text+`"` {
		t.Errorf("%s, %+v, %s", doc.Reading(), doc.Fields, Summary(doc, ""))
	}
	if doc := (&Decoder{}).Decode(body, Hints{}, nil); doc.Kind != Text {
		t.Errorf("without any types it is %s", doc.Kind)
	}
	if doc := d.Decode(append(body, '.'), Hints{}, nil); doc.Kind != Text {
		t.Errorf("with one more letter it is %s", doc.Kind)
	}
}
