package payload

import (
	"errors"
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

// TestADifferenceTellsNothingMasked checks that a patch, which more people see than the edit,
// contains no masked value and no masked name.
func TestADifferenceTellsNothingMasked(t *testing.T) {
	t.Parallel()
	h := Hints{ContentType: "application/json"}
	body := `{"card":"` + card + `","old":"` + other + `","n":1,"m":{"` + card + `":{"n":1},"b":2},"list":["` + card +
		`"]}`
	for _, tt := range []struct{ old, new, want string }{
		{`"n":1,"m"`, `"n":2,"m"`, `/n`},
		{other, "none", `{"op": "replace", "path": "/old", "value": "none"}`},
		{`"b":2`, `"b":9`, `/m/b`},
		{`"list":["` + card + `"]`, `"gone":1`, `{"op": "remove", "path": "/list"}`},
		{`["` + card + `"]`, `["` + card + `",2]`, ""},
		{`{"n":1}`, `{"n":5}`, ""},
		{`"n":1,"m"`, `"n":"` + card + `","m"`, ""},
		{`"n":1,"m"`, `"n":1,"new":"` + card + `","m"`, ""},
		{`"n":1,"m"`, `"n":1,"` + card + `":2,"m"`, ""},
		{`"old":"` + other + `"`, `"old":"a ` + other + `"`, ""},
		{`"` + card + `":{"n":1},`, ``, ""},
	} {
		patch, err := patternMask().Difference([]byte(body), h, strings.Replace(body, tt.old, tt.new, 1), nil)
		if tt.want == "" && (err == nil || strings.Contains(err.Error(), card)) ||
			tt.want != "" && (err != nil || !strings.Contains(string(patch), tt.want)) {
			t.Errorf("%s: %s %v", tt.new, patch, err)
		}
		if strings.Contains(string(patch), card) || strings.Contains(string(patch), other) {
			t.Errorf("%s: %s", tt.new, patch)
		}
	}
}
