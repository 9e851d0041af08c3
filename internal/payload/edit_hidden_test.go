package payload

import (
	"strings"
	"testing"
)

// hiddenJSON returns a decoder that masks the values at the given JSON paths.
func hiddenJSON(t *testing.T, paths ...string) *Decoder {
	t.Helper()
	m := Masks{}
	for _, path := range paths {
		m.JSON = append(m.JSON, strings.Split(path, "."))
	}
	return &Decoder{Types: schemas(), Mask: m.Body()}
}

// TestEditBesideMaskedContainers checks that a masked list or object keeps its bytes when something
// else is edited.
func TestEditBesideMaskedContainers(t *testing.T) {
	t.Parallel()
	const list = `[ "` + card + `",{"` + other + `" :1.50,  "x":[]} ]`
	d := hiddenJSON(t, "card.all")
	body := []byte(`{"card": {"all": ` + list + `, "kind": "a"}, "n": 1}`)
	e := change(t, d, body, Hints{}, `"n": 1`, `"n": 2`)
	if got := string(e.Body); !strings.Contains(got, `"all": `+list) || !strings.Contains(got, `"n": 2`) {
		t.Errorf("edited: %s", got)
	}
	notShown(t, e)
	if got := strings.Join(e.Changed, " "); got != "n" {
		t.Errorf("changed %s", got)
	}
	e, err := d.Edit(body, Hints{}, editText(t, d, body, Hints{}), nil)
	if err != nil || string(e.Body) != string(body) {
		t.Errorf("unchanged: %v", err)
	}
	e, err = d.Patch(body, Hints{}, []byte(`[{"op": "replace", "path": "/n", "value": 2}]`), nil)
	if err != nil || !strings.Contains(string(e.Body), list) || strings.Join(e.Changed, " ") != "n" {
		t.Fatalf("patched: %v", err)
	}
	notShown(t, e)

	for _, value := range []string{`{"` + other + `": 2}`, `[]`, `"new"`} { // the whole list or object is replaced
		e = change(t, d, body, Hints{}, `"••••"`, value)
		if got := string(e.Body); strings.Contains(got, card) || strings.Join(e.Changed, " ") != "card.all" {
			t.Errorf("replaced by %s: %s, changed %v", value, got, e.Changed)
		}
	}
	for _, patch := range []string{
		`{"op": "replace", "path": "/card/all/1/x", "value": 2}`, `{"op": "add", "path": "/card/all/-", "value": 2}`,
		`{"op": "remove", "path": "/card/all/0"}`,
		`{"op": "replace", "path": "/card/all/7", "value": 2}`,
		`{"op": "test", "path": "/card/all/1/none", "value": 2}`, `{"op": "copy", "from": "/card/all/0", "path": "/n"}`,
	} {
		if _, err := d.Patch(
			body, Hints{}, []byte("["+patch+"]"), nil,
		); err == nil || !strings.Contains(err.Error(), inMasked) {
			t.Errorf("%s: %v", patch, err)
		}
	}
	for _, patch := range []string{
		`{"op": "test", "path": "/card/all", "value": ` + list + `}`,
		`{"op": "copy", "from": "/card/all", "path": "/n"}`, `{"op": "test", "path": "/card", "value": {}}`,
	} {
		if _, err := d.Patch(
			body, Hints{}, []byte("["+patch+"]"), nil,
		); err == nil || !strings.Contains(err.Error(), testsMasked) {
			t.Errorf("%s: %v", patch, err)
		}
	}
	patch, err := d.Difference(
		body, Hints{}, strings.Replace(editText(t, d, body, Hints{}), `"••••"`, `[{"x": 1}, 2]`, 1), nil,
	)
	if err != nil || strings.Contains(string(patch), other) || !strings.Contains(string(patch), `"path": "/card/all"`) {
		t.Errorf("difference %s: %v", patch, err)
	}
	// If nothing was masked in a place, a mask is not accepted as a value there.
	_, err = d.Edit(body, Hints{}, strings.Replace(editText(t, d, body, Hints{}), `"n": 1`, `"n": "••••"`, 1), nil)
	if err == nil || !strings.Contains(err.Error(), "n: masked values stay as stored") {
		t.Errorf("moved: %v", err)
	}
}

// notShown fails if any part of an edit that people see contains a masked value.
func notShown(t *testing.T, e *Edited) {
	t.Helper()
	shown := e.JSON + checksText(e) + strings.Join(e.Changed, " ")
	for _, line := range e.Diff {
		for _, s := range line.Spans {
			shown += s.Text
		}
	}
	if strings.Contains(shown, card) || strings.Contains(shown, other) {
		t.Errorf("a masked value is shown in %s", shown)
	}
}
