package payload

import (
	"encoding/json"
	"testing"
)

func TestJSONBodies(t *testing.T) {
	t.Parallel()
	body := `{"z":1.10, "a":12345678901234567890,"z":"dup","n":[1,[],{}],"s":"\u003c` + "\u202e" + `"}`
	doc := decode([]byte(body), Hints{})
	want := `{
  "z": 1.10,
  "a": 12345678901234567890,
  "z": "dup",
  "n": [
    1,
    [],
    {}
  ],
  "s": "\u003c\u202e"
}`
	if doc.Kind != JSON || doc.JSON != want {
		t.Errorf("got %s\n%s", doc.Kind, doc.JSON)
	}
	if n := doc.Fields[0]; n.Name != "z" || n.Value != "1.10" || n.Kind != Number || n.Ranges[0] != (Range{1, 9}) {
		t.Errorf("first %+v", n)
	}
	if n := nodeAt(t, doc, "s"); n.Value != `"<\u202e"` {
		t.Errorf("string %+v", n)
	}
	if n := nodeAt(t, doc, "n", "[1]"); n.Kind != List || n.Note != "0 items" {
		t.Errorf("list %+v", n)
	}
	if got := Summary(doc, ""); got != `z: 1.10, a: 12345678901234567890, z: "dup", s: "<\u202e", n.[0]: 1` {
		t.Errorf("summary %s", got)
	}
	for body, want := range map[string]Kind{
		"\xef\xbb\xbf{}": JSON, "[1]": JSON, " [ ] ": JSON, "12": Text, `"x"`: Text, "{": Text, "{}x": Text,
		"null": Text,
	} {
		if got := decode([]byte(body), Hints{}).Kind; got != want {
			t.Errorf("%q is %s, want %s", body, got, want)
		}
	}
	if got := decode(
		[]byte("12"), Hints{ContentType: "application/json"},
	); got.Kind != JSON || got.JSON != "12" || got.Fields[0].Value != "12" {
		t.Errorf("lone value: %+v", got)
	}
}

func TestCharactersThatDeceiveInJSON(t *testing.T) {
	t.Parallel()
	doc := decode([]byte("{\"a\":\"x\U000e0041\xff\u200b\"}"), Hints{})
	if doc.JSON != "{\n  \"a\": \"x\\udb40\\udc41\\ufffd\\u200b\"\n}" || !json.Valid([]byte(doc.JSON)) {
		t.Errorf("got %q", doc.JSON)
	}
}
