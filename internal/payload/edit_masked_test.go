package payload

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

const (
	card  = "4111111111111111"
	other = "4222222222222222"
)

func TestEditOfMaskedValues(t *testing.T) {
	t.Parallel()
	people := encode(
		t, "Kinds",
		`{"people": {"1": {"address": "`+card+`"}, "2": {"address": "`+other+`"}}, "tags": ["a", "`+card+
			`"], "total": "`+card+`", "email": "pay `+card+` now"}`,
	)
	request := encode(t, email, `{"requestId": "`+card+`", "tenantId": "5"}`)
	named := encode(t, email, `{"requestId": "r", "variables": {"`+card+`": "x", "k": "`+other+`"}}`)
	tests := []struct {
		name     string
		body     string
		typ      string
		old, new string
		want     string // the JSON without masks; "!" and a text = the error contains the text
		changed  string
	}{
		{"another field", `{"a":"` + card + `","b":1}`, "", `"b": 1`, `"b": 2`, `"a": "` + card + `"`, "b"},
		{"replaced", `{"a":"` + card + `","b":1}`, "", `"••••"`, `"new"`, `"a": "new"`, "a"},
		{
			"replaced by itself looks like a change", `{"a":"` + card + `","b":1}`, "", `"••••"`, `"` + card + `"`,
			`"a": "` + card + `"`, "a",
		},
		{"taken out", `{"a":"` + card + `","b":1}`, "", `"a": "••••",`, ``, "{\n  \"b\": 1\n}", "a"},
		{"number", `{"a":` + card + `,"b":1}`, "", `"b": 1`, `"b": 2`, `"a": ` + card, "b"},
		{"number of a message", string(people), "Kinds", `"a",`, `"b",`, `"total": "` + card + `"`, "tags.[0]"},
		{"part of a text", string(people), "Kinds", `"a",`, `"b",`, `"email": "pay ` + card + ` now"`, "tags.[0]"},
		{
			"part of a text is changed", string(people), "Kinds", `pay •••• now`, `pay •••• later`,
			"!line 7, column 12: email: masked values stay as stored", "",
		},
		{
			"moved to another field", `{"a":"` + card + `","b":1}`, "", `"b": 1`, `"b": "••••"`,
			"!line 3, column 8: b: masked values stay as stored", "",
		},
		{
			"a new field", `{"a":"` + card + `","b":1}`, "", `"b": 1`, `"c": "x ••••"`,
			"!line 3, column 8: c: masked values stay as stored", "",
		},
		{
			"a name that is renamed", `{"a":"` + card + `","b":1}`, "", `"a"`, `"c"`,
			"!line 2, column 8: c: masked values stay as stored", "",
		},
		{
			"an element before", string(people), "Kinds", `"a",`, `"b", "c",`,
			"!line 5, column 5: tags.[2]: the list has another length", "",
		},
		{
			"an element before, and the value", string(people), "Kinds", "\"a\",\n    \"••••\"", `"b", "c", "d"`, `"d"`,
			"tags",
		},
		{
			"elements of a list", `[{"a":"` + card + `"},{"a":"` + other + `","b":1}]`, "", `"b": 1`, `"b": 2`,
			`"a": "` + other + `",`, "[1].b",
		},
		{
			"elements change places", `[{"a":"` + card + `","b":1},{"a":"` + other + `","b":2}]`, "",
			"\"b\": 1\n  },\n  {\n    \"a\": \"••••\",\n    \"b\": 2",
			"\"b\": 2\n  },\n  {\n    \"a\": \"••••\",\n    \"b\": 1",
			"!line 2, column 3: [0]: this element stood elsewhere", "",
		},
		{
			"entries of a map by their key", string(people), "Kinds", `"2": {`, `"3": {}, "2": {`,
			`"address": "` + other + `"`, "people.3",
		},
		{
			"beside a masked name", string(named), email, `"requestId": "r"`, `"requestId": "s"`, `"` + card + `": "x"`,
			"requestId",
		},
		{"the value of a masked name", string(named), email, `"x"`, `"y"`, `"` + card + `": "y"`, "variables.••••"},
		{
			"a masked name is changed", string(named), email, `"••••": "x"`, `"•••• 2": "x"`,
			"!line 4, column 5: variables.•••• 2: masked names stay as stored", "",
		},
		{
			"a name beside a masked one", string(named), email, `"k"`, `"` + card + `"`,
			"!line 5, column 5: variables." + card + ": names in this object are masked, so none can be added", "",
		},
		{"the dots themselves are stored", `{"a":"••••","b":1}`, "", `"b": 1`, `"b": 2`, `"a": "••••"`, "b"},
		{
			"kept under its other name", string(request), email, `"requestId"`, `"request_id"`,
			`"requestId": "` + card + `"`, "",
		},
		{
			"replaced by itself under its other name looks like a change", string(request), email,
			`"requestId": "••••"`, `"request_id": "` + card + `"`, `"requestId": "` + card + `"`, "requestId",
		},
		{
			"there under both names", string(request), email, `"requestId": "••••"`,
			`"requestId": "••••", "request_id": "x"`,
			"!line 2, column 24: request_id: this is there twice, under two spellings of its name", "",
		},
		{
			"a name of a JSON body is what it is", `{"a_b":"` + card + `","c":1}`, "", `"a_b": "••••"`, `"aB": "x"`,
			`"aB": "x"`, "aB a_b",
		},
		{
			"the type of a masked value is lost", string(people), "Kinds", `"total": "••••"`, `"total": "x"`,
			`!line 2, column 12: total: write a whole number`, "",
		},
		{
			"a mistake behind a masked value in its line", `{"a":"` + card + `","b":1}`, "", "\n  \"b\": 1", ` "b": x`,
			"!line 2, column 21: b: this is not JSON", "",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := Hints{Type: tt.typ}
			d := patternMask()
			text := editText(t, d, []byte(tt.body), h)
			if strings.Contains(text, card) || strings.Contains(text, other) || strings.Count(text, tt.old) == 0 {
				t.Fatalf("no %q in %s", tt.old, text)
			}
			e, err := d.Edit([]byte(tt.body), h, strings.Replace(text, tt.old, tt.new, 1), nil)
			if want, fails := strings.CutPrefix(tt.want, "!"); fails {
				if mistake := (*EditError)(nil); !errors.As(err, &mistake) || !strings.HasPrefix(err.Error(), want) {
					t.Errorf("got  %v\nwant %s", err, want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if doc := decode(e.Body, h); !strings.Contains(editText(t, editor(), e.Body, h), tt.want) {
				t.Errorf("got %s", doc.JSON)
			}
			if got := strings.Join(e.Changed, " "); got != tt.changed {
				t.Errorf("changed %s", got)
			}
			shown := e.JSON + checksText(e) + strings.Join(e.Changed, " ")
			for _, line := range e.Diff {
				for _, s := range line.Spans {
					shown += s.Text
				}
			}
			if strings.Contains(shown, card) || strings.Contains(shown, other) {
				t.Errorf("a masked value is shown in %s", shown)
			}
		})
	}
}

// TestEditErrorsBehindMaskedValues checks that positions in errors refer to the text that the
// person wrote. They must not refer to the text with stored values.
func TestEditErrorsBehindMaskedValues(t *testing.T) {
	t.Parallel()
	body := encode(t, "Kinds", `{"total": "`+card+`", "count": 1}`)
	_, err := patternMask().Edit(body, Hints{Type: "Kinds"}, `{"total": "••••", "count": "x"}`, nil)
	if err == nil || !strings.HasPrefix(err.Error(), "line 1, column 28: count: write a whole number") {
		t.Errorf("got %v", err)
	}
	// In the JSON of this body, the member "@type" comes before the masked value. The edit changes
	// "@type", so the stored value, which takes the place of the mask, must be read as another
	// type. The position in the error must be that in the person's text.
	body = encode(t, "Kinds", `{"detail": {"@type": "x/google.protobuf.StringValue", "value": "`+card+`x"}}`)
	_, err = patternMask().Edit(
		body, Hints{Type: "Kinds"}, `{"detail": {"@type": "x/google.protobuf.Duration", "value": "••••x"}}`, nil,
	)
	if err == nil || !strings.HasPrefix(err.Error(), "line 1, column 61: detail.value: write seconds") ||
		strings.Contains(err.Error(), card) {
		t.Errorf("got %v", err)
	}
}

// TestEditWithAnotherMask covers a mask that replaces values with something other than dots.
func TestEditWithAnotherMask(t *testing.T) {
	t.Parallel()
	d := &Decoder{Types: schemas(), Mask: &Mask{Text: func(text string) (string, bool) {
		if strings.Contains(text, "@") {
			return "d•••", true
		}
		return text, false
	}}}
	body := encode(t, email, `{"requestId": "r", "to": {"address": "dana@example.com", "displayName": "Dana"}}`)
	e := change(t, d, body, Hints{Type: email}, "Dana", "Ada")
	if got := editText(
		t, editor(), e.Body, Hints{Type: email},
	); !strings.Contains(got, "dana@example.com") || !slices.Equal(e.Changed, []string{"to.displayName"}) {
		t.Errorf("got %s, changed %v", got, e.Changed)
	}
	if _, err := d.Edit(
		body, Hints{Type: email}, `{"requestId": "d•••"}`, nil,
	); err == nil || !strings.Contains(err.Error(), "requestId: masked values stay") {
		t.Errorf("got %v", err)
	}
}
