package payload

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/deadletteroffice/dlo/internal/budget"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload/payloadtest"
)

// checkEdited checks what must be true after every edit.
func checkEdited(t *testing.T, d *Decoder, e *Edited, err error, h Hints) {
	t.Helper()
	if err != nil {
		if m, ok := err.(*EditError); !ok || m.Message == "" || strings.Contains(m.Message, "internal error") ||
			(m.Line > 0) != (m.Column > 0) || m.Path != visible(m.Path, "") {
			t.Errorf("error %#v", err)
		}
		return
	}
	if e.JSON != "" && !json.Valid([]byte(e.JSON)) || e.JSON != "" && e.Text != "" {
		t.Errorf("JSON %q, text %q", e.JSON, e.Text)
	}
	for _, c := range e.Checks {
		if c.Text != visible(c.Text, "") {
			t.Errorf("check %+v", c)
		}
	}
	for _, p := range e.Changed {
		if p != visible(p, "") || p == "" {
			t.Errorf("path %q", p)
		}
	}
	for _, l := range e.Diff {
		for _, s := range l.Spans {
			if !utf8.ValidString(s.Text) {
				t.Errorf("span %q", s.Text)
			}
		}
	}
	if doc := d.Revealed().Decode(e.Body, h, nil); doc.JSON != e.JSON &&
		!strings.Contains(checksText(e), "On its own") && !strings.Contains(
		checksText(e), nothingChanged,
	) {
		t.Errorf("the body is %q, which decodes to %s, not %s", e.Body, doc.JSON, e.JSON)
	}
}

func FuzzEdit(f *testing.F) {
	seed := func(body []byte, texts ...string) {
		for _, text := range append(
			texts, "", "{}", `{"count": 1, "tags": ["••••"], "detail": {"@type": "x/acme.notify.v1.Kinds"}}`,
		) {
			for _, typ := range []string{"", email, "Kinds", "acme.odd.Order", "google.protobuf.Any"} {
				f.Add(body, typ, text)
			}
		}
	}
	seed(sample(f), `{"requestId": "x", "to": {"address": "••••"}}`)
	seed(encodeStd(payloadtest.Gzipped(f, sample(f))), `{"variables": {"a": "b"}}`)
	seed(encode(
		f, "Kinds",
		`{"detail": {"@type": "x/acme.notify.v1.Kinds", "tags": ["4111111111111111"]}, "extra": {"k": [1]}, "people": {"1": {}}, "at": "2026-01-01T00:00:00Z", "timeout": "1s"}`,
	),
		`{"detail": {"@type": "x/acme.notify.v1.Kinds", "tags": ["••••", "x"]}, "extra": {"k": [1, null]}, "people": {"1": {}}, "at": "2026-01-01T00:00:01Z"}`)
	seed(
		encode(
			f, "acme.odd.Order",
			`{"id": "i", "line": {"sku": "s"}, "extra": [{"n": 1}, {"n": 2}], "[acme.odd.remark]": "x"}`,
		),
		`{"id": "i", "extra": [{"n": 2}], "[acme.odd.codes]": [1]}`,
	)
	seed(
		wire(
			varint(3, 1), payloadtest.LengthPrefixed(14, payloadtest.LengthPrefixed(1, []byte("x/y.Z"))),
			payloadtest.LengthPrefixed(900, []byte("x")),
		),
		`{"count": 2, "detail": {"@type": "x/y.Z"}}`,
	)
	seed(
		[]byte(`{"a":["4111111111111111",{"b":"\ud800"}],"4111111111111111":1}`),
		`{"a": ["••••", {"b": "\ud800"}], "••••": 2}`, "[1, NaN]", `{"a": 1, "a": 2}`,
	)
	seed([]byte("text \u202e\x1b[31m\r\n4111111111111111\r\n"), "text \\u202e\\x1b[31m\n••••\nmore", "\x00")
	seed(cloudEvent("application/protobuf", `"data_base64":"`+string(encodeStd(sample(f)))+`"`))
	seed(
		[]byte(`{"a": [1, {"b":"\u0041" }],"n":1,"card":{"all":{"x":[]}}}`),
		`{"a": "••••", "n": 2, "card": {"all": "••••"}}`, `{"a": {"b": 1}, "n": 1}`, `{"a": ["••••"]}`, "{\"\x7f\":",
	)
	f.Fuzz(func(t *testing.T, body []byte, typ, text string) {
		h := Hints{Type: typ}
		kept := bytes.Clone(body)
		for _, d := range []*Decoder{editor(), patternMask(), pathMask(), {Types: schemas(), Mask: pattern}} {
			shown, err := d.Editable(body, h, nil)
			checkEdited(t, d, &Edited{Body: body, Checks: []Check{{false, nothingChanged}}}, err, h)
			e, again := d.Edit(body, h, text, nil)
			checkEdited(t, d, e, again, h)
			if err != nil {
				if again == nil {
					t.Errorf("not editable (%v), but edited", err)
				}
				continue
			}
			e, err = d.Edit(body, h, shown.Text, nil)
			if checkEdited(t, d, e, err, h); err != nil || !bytes.Equal(e.Body, body) {
				t.Errorf("unchanged: %v", err)
			}
		}
		if e, err := editor().Replace(body, h, []byte(text), nil); err != nil || string(e.Body) != text {
			t.Errorf("replace: %v", err)
		}
		tiny := &budget.Budget{Bytes: 256, Fields: 20, Depth: 4, Memory: 1 << 16}
		_, err := patternMask().Edit(body, h, text, tiny)
		checkEdited(t, editor(), &Edited{Body: body, Checks: []Check{{false, nothingChanged}}}, err, h)
		if !bytes.Equal(body, kept) {
			t.Error("the body was changed")
		}
	})
}

// pathMask returns a decoder that hides whole lists and objects.
func pathMask() *Decoder {
	return &Decoder{
		Types: schemas(),
		Mask: Masks{
			JSON: []deadletter.FieldPath{{"a"}, {"card", "all"}},
			Fields: []deadletter.MaskedField{
				{Path: deadletter.FieldPath{"extra"}},
				{Path: deadletter.FieldPath{"at"}},
				{Path: deadletter.FieldPath{"line"}},
			},
		}.Body(),
	}
}

// bodiesWithoutJSON returns messages with values that protojson cannot write, for example a text
// that is not UTF-8.
func bodiesWithoutJSON(t testing.TB) [][]byte {
	t.Helper()
	id := payloadtest.LengthPrefixed(1, []byte("a\xff"))
	nan := payloadtest.LengthPrefixed(
		2, protowire.AppendFixed64(protowire.AppendTag(nil, 2, protowire.Fixed64Type), math.Float64bits(math.NaN())),
	)
	return [][]byte{
		wire(
			varint(3, 1), payloadtest.LengthPrefixed(21, varint(1, 1<<60)),
			payloadtest.LengthPrefixed(15, varint(2, math.MaxUint64)),
			payloadtest.LengthPrefixed(16, payloadtest.LengthPrefixed(1, []byte("fooBar"))),
		),
		wire(
			payloadtest.LengthPrefixed(
				17, payloadtest.LengthPrefixed(1, wire(payloadtest.LengthPrefixed(1, []byte("k")), nan)),
			),
			encode(t, "Kinds", `{"extra": {"@x": 1}}`),
		),
		payloadtest.LengthPrefixed(
			14,
			wire(
				payloadtest.LengthPrefixed(1, []byte("x/acme.notify.v1.Kinds")),
				payloadtest.LengthPrefixed(2, []byte("\x0a\x09"+card)),
			),
		),
		wire(id, group(3, payloadtest.LengthPrefixed(4, []byte("\xc3\x28")))),
		wire(
			payloadtest.LengthPrefixed(25, nil),
			protowire.AppendFixed64(protowire.AppendTag(nil, 1, protowire.Fixed64Type), 1<<63),
			payloadtest.LengthPrefixed(19, varint(1, 8)),
		),
	}
}

func FuzzPatch(f *testing.F) {
	for _, patch := range []string{
		"", "[]", `[{"op":"replace","path":"/tags/0","value":"4111111111111111"}]`,
		`[{"op":"test","path":"","value":{}},{"op":"add","path":"/tags/-","value":1}]`,
		`[{"op":"move","from":"/detail","path":"/child"},{"op":"copy","from":"","path":"/child"},{"op":"remove","path":"/a~1b~0"}]`,
		`[{"op":"add","path":"/people/1","value":{"address":"••••"}}]`,
	} {
		f.Add([]byte(`{"tags":["4111111111111111"],"a/b~":{"4111111111111111":[]},"detail":{}}`), "", patch)
		f.Add(
			encode(
				f, "Kinds",
				`{"detail": {"@type": "x/acme.notify.v1.Kinds", "tags": ["a"]}, "tags": ["4111111111111111"], "people": {"1": {}}}`,
			),
			"Kinds", patch,
		)
		f.Add([]byte("text"), "", patch)
	}
	for _, body := range bodiesWithoutJSON(f) {
		f.Add(body, "Kinds", `[{"op":"replace","path":"/at","value":null},{"op":"add","path":"/extra/a","value":null}]`)
		f.Add(body, "acme.odd.Order", `[{"op":"replace","path":"/id","value":"a"}]`)
		f.Add(
			body, "Kinds",
			`[{"op":"replace","path":"/detail","value":{"@type":"x/acme.notify.v1.Kinds"}},{"op":"replace","path":"/at","value":"2026-01-01T00:00:00Z"}]`,
		)
	}
	f.Fuzz(func(t *testing.T, body []byte, typ, patch string) {
		h := Hints{Type: typ}
		for _, d := range []*Decoder{editor(), patternMask(), pathMask()} {
			e, err := d.Patch(body, h, []byte(patch), nil)
			checkEdited(t, d, e, err, h)
		}
	})
}

// FuzzDifference turns an edit of a body into a patch, and checks that the patch changes this body
// in the same way as the edit.
func FuzzDifference(f *testing.F) {
	seed := func(body []byte, typ string, texts ...string) {
		for _, text := range append(texts, "", "{}", "[1]", `{"count": 1, "tags": ["x"], "a/b~": {"": []}}`) {
			f.Add(body, typ, text)
		}
	}
	seed(sample(f), email, `{"requestId": "x", "to": {"address": "a"}}`)
	seed(encodeStd(payloadtest.Gzipped(f, sample(f))), email, `{"variables": {"a": "b"}}`)
	seed(
		encode(
			f, "Kinds",
			`{"detail": {"@type": "x/acme.notify.v1.Kinds", "tags": ["4111111111111111"]}, "extra": {"k": [1]}, "people": {"1": {}}, "at": "2026-01-01T00:00:00Z"}`,
		),
		"Kinds",
		`{"detail": {"@type": "x/acme.notify.v1.Kinds", "tags": ["••••", "x"]}, "extra": {"k": [1, null]}, "people": {"1": {}, "2": {}}, "at": "2026-01-01T00:00:01Z"}`,
	)
	seed(
		encode(
			f, "acme.odd.Order",
			`{"id": "i", "line": {"sku": "s"}, "extra": [{"n": 1}, {"n": 2}], "[acme.odd.remark]": "x"}`,
		),
		"acme.odd.Order", `{"id": "i", "extra": [{"n": 2}], "[acme.odd.codes]": [1]}`,
	)
	for _, body := range bodiesWithoutJSON(f) {
		for _, typ := range []string{"Kinds", "acme.odd.Order"} {
			seed(body, typ, `{"at": null, "id": null}`, `{"extra": {"k": null}, "id": "x"}`)
		}
	}
	seed(
		[]byte(`{"a":["4111111111111111",{"b":"\ud800"}],"~1/":1.50,"":{"k":null}}`), "",
		`{"a": ["••••", {"b": "\ud800"}], "~1/": 1.5, "": {}}`, `{"a": 1, "a": 2}`,
	)
	f.Fuzz(func(t *testing.T, body []byte, typ, text string) {
		h := Hints{Type: typ}
		for _, d := range []*Decoder{editor(), patternMask(), pathMask()} {
			patch, err := d.Difference(body, h, text, nil)
			if err != nil {
				checkEdited(t, d, nil, err, h)
				continue
			}
			if !json.Valid(patch) {
				t.Fatalf("patch %q", patch)
			}
			edited, err := d.Edit(body, h, text, nil)
			if err != nil {
				continue
			}
			patched, err := d.Patch(body, h, patch, nil)
			if err != nil {
				t.Fatalf("%s of %q: %v", patch, body, err)
			}
			if !sameContent(d.Decode(edited.Body, h, nil), d.Decode(patched.Body, h, nil)) {
				t.Fatalf("%s of %q: the edit gives %q, the patch %q", patch, body, edited.Body, patched.Body)
			}
		}
	})
}

// sameContent reports whether two bodies have the same content: the same bytes, or the same JSON in
// any order of members.
func sameContent(a, b *Document) bool {
	if bytes.Equal(a.Body, b.Body) {
		return true
	}
	var x, y any
	return json.Unmarshal([]byte(a.JSON), &x) == nil && json.Unmarshal([]byte(b.JSON), &y) == nil &&
		reflect.DeepEqual(x, y)
}
