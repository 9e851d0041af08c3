package payload

import (
	"errors"
	"regexp"
	"strings"
	"testing"
)

// TestADifferenceIsAPatch turns an edit of a body into a patch, and applies the patch to similar
// bodies. The patch must make the same change as the edit. If one of the old values is different in
// a body, the patch must fail.
func TestADifferenceIsAPatch(t *testing.T) {
	t.Parallel()
	d := &Decoder{}
	h := Hints{ContentType: "application/json"}
	before := `{"a":{"b/c":1,"gone":true,"~":"x"},"list":[1,2,3],"short":[1],"same":"s"}`
	after := `{"a":{"b/c":2,"~":"y","new":{"k":null}},"list":[1,5,3],"short":[1,2],"same":"s"}`
	patch, err := d.Difference([]byte(before), h, after, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := `[
  {"op": "test", "path": "/a/b~1c", "value": 1},
  {"op": "replace", "path": "/a/b~1c", "value": 2},
  {"op": "test", "path": "/a/gone", "value": true},
  {"op": "remove", "path": "/a/gone"},
  {"op": "test", "path": "/a/~0", "value": "x"},
  {"op": "replace", "path": "/a/~0", "value": "y"},
  {"op": "add", "path": "/a/new", "value": {"k":null}},
  {"op": "test", "path": "/list/1", "value": 2},
  {"op": "replace", "path": "/list/1", "value": 5},
  {"op": "test", "path": "/short", "value": [1]},
  {"op": "replace", "path": "/short", "value": [1,2]}
]`
	if string(patch) != want {
		t.Fatalf("%s", patch)
	}
	other := strings.Replace(before, `"same":"s"`, `"same":"another"`, 1)
	e, err := d.Patch([]byte(other), h, patch, nil)
	if err != nil || string(e.Body) != strings.Replace(after, `"same":"s"`, `"same":"another"`, 1) {
		t.Errorf("%s %v", e.Body, err)
	}
	var mistake *EditError
	if e, err := d.Patch(
		[]byte(strings.Replace(before, "[1,2,3]", "[1,9,3]", 1)), h, patch, nil,
	); !errors.As(err, &mistake) {
		t.Errorf("%+v %v", e, err)
	}
	if same, err := d.Difference([]byte(before), h, before, nil); err != nil || string(same) != "[]" {
		t.Errorf("%s %v", same, err)
	}
	// A form in a browser sends other line ends, and the text may begin with a byte order mark.
	// Edit ignores both, so Difference must ignore them too.
	if same, err := d.Difference(
		[]byte(`{"a": 1}`), h, "\ufeff{\r\n\"a\": 1}", nil,
	); err != nil || string(same) != "[]" {
		t.Errorf("%s %v", same, err)
	}
	if _, err := d.Difference([]byte("a text"), Hints{}, "another", nil); !errors.As(err, &mistake) {
		t.Error(err)
	}
}

// TestADifferenceTellsNothingMasked checks that a patch does not disclose masked values.
func TestADifferenceTellsNothingMasked(t *testing.T) {
	t.Parallel()
	d := &Decoder{Mask: Masks{Patterns: []*regexp.Regexp{regexp.MustCompile(`[0-9]{16}`)}}.Body()}
	h := Hints{ContentType: "application/json"}
	patch, err := d.Difference(
		[]byte(`{"card":"4111111111111111","old":"4222222222222222","n":1}`), h, `{"card":"••••","old":"none","n":2}`,
		nil,
	)
	if err != nil || strings.Contains(string(patch), "4111") || strings.Contains(string(patch), "4222") ||
		!strings.Contains(string(patch), `{"op": "replace", "path": "/old", "value": "none"}`) {
		t.Errorf("%s %v", patch, err)
	}
}

// TestADifferenceTellsNoMaskedName checks that a patch does not disclose a masked name. A patch
// could not address such a name anyway.
func TestADifferenceTellsNoMaskedName(t *testing.T) {
	t.Parallel()
	d := &Decoder{Mask: Masks{Patterns: []*regexp.Regexp{regexp.MustCompile(`[0-9]{16}`)}}.Body()}
	h, body := Hints{ContentType: "application/json"}, []byte(`{"m":{"4111111111111111":{"n":1},"b":2},"c":3}`)
	for _, text := range []string{
		`{"m":{"b":2},"c":3}`, `{"m":{"••••":{"n":5},"b":2},"c":3}`, `{"m":{"••••":7,"b":2},"c":3}`,
	} {
		patch, err := d.Difference(body, h, text, nil)
		if err == nil || strings.Contains(err.Error(), "4111") || len(patch) > 0 {
			t.Errorf("%s: %s %v", text, patch, err)
		}
	}
	if patch, err := d.Difference(
		body, h, `{"m":{"••••":{"n":1},"b":9},"c":3}`, nil,
	); err != nil || strings.Contains(string(patch), "4111") || !strings.Contains(string(patch), `"/m/b"`) {
		t.Errorf("%s %v", patch, err)
	}
}
