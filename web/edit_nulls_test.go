package web_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/deadletteroffice/dlo/internal/descriptor"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/web"
)

const stampedSource = `syntax = "proto3";
package acme.v1;
import "google/protobuf/timestamp.proto";
message Stamped {
  string name = 1;
  google.protobuf.Timestamp at = 2;
}
`

// TestATimeInMillisecondsIsMended fixes a letter with a time in milliseconds, on its page and with
// the API. Both must say what is wrong with the letter.
func TestATimeInMillisecondsIsMended(t *testing.T) {
	t.Parallel()
	h := open(t, func(o *web.Options) {
		types := descriptor.NewRegistry()
		if _, err := types.AddSource("stamped", fstest.MapFS{
			"stamped.proto": {Data: []byte(stampedSource)},
		}); err != nil {
			panic(err)
		}
		decoder := &payload.Decoder{Types: types}
		o.Decoder = func() *payload.Decoder { return decoder }
	})
	id := string(h.receive("stamps", 1, "\n\x01a\x12\x07\x08\x80\xd0\x95\xff\xbc1")[0])
	const marked = `"at":null`
	h.postJSON("/api/v1/letters/"+id+"/type", `{"type":"acme.v1.Stamped"}`).want(t, 201)
	a := h.get("/api/v1/letters/"+id).want(t, 200)
	var letter struct {
		Decoded struct {
			JSON    json.RawMessage
			Problem string
		}
	}
	if err := json.Unmarshal([]byte(a.text), &letter); err != nil {
		t.Fatal(err)
	}
	const problem = `the JSON has null in place of values that have no JSON form; an edit keeps them, and cannot write such values: at`
	if text := strings.Join(
		strings.Fields(string(letter.Decoded.JSON)), "",
	); !strings.Contains(text, marked) || letter.Decoded.Problem != problem {
		t.Fatalf("json %s, problem %q", text, letter.Decoded.Problem)
	}
	if page := h.get("/letters/"+id+"?tab=json").want(
		t, 200, "null", "The JSON has null in place of values",
	).text; strings.Contains(page, "no type can decode it") {
		t.Error("a type decodes it")
	}
	path := "/api/v1/letters/" + id + "/revisions"
	h.postJSON(
		path, `{"patch":[{"op":"replace","path":"/name","value":"b"}],"dry_run":true}`,
	).want(t, 200, `"changed":["name"]`)
	h.postJSON(
		path, `{"patch":[{"op":"replace","path":"/at","value":"2023-11-14T22:13:20Z"}],"dry_run":true}`,
	).want(t, 200, `"changed":["at"]`, `"ok":true`)
	h.postJSON(path, `{"json":{"name":"b",`+marked+`},"dry_run":true}`).want(t, 200, `"changed":["name"]`)

	page := h.get("/letters/"+id+"/edit").want(t, 200, "&#34;at&#34;: null").text
	form := url.Values{
		"from":   {"0"},
		"newest": {"0"},
		"key":    {field(t, page, "key")},
		"text":   {`{"name": "a", "at": "2023-11-14T22:13:20Z"}`},
		"do":     {"check"},
	}
	h.post("/letters/"+id+"/edit", form).want(t, 200, "Valid JSON, valid for the type", "1 field")
}

// TestWhyThereIsNoJSON covers a body that can be decoded with a message type, but cannot be written
// as JSON. The page and the API must say why.
func TestWhyThereIsNoJSON(t *testing.T) {
	t.Parallel()
	h := open(t, func(o *web.Options) {
		types := descriptor.NewRegistry()
		source := "syntax = \"proto2\"; package acme.v1; message Old { map<string, string> names = 1; }"
		if _, err := types.AddSource("old", fstest.MapFS{"old.proto": {Data: []byte(source)}}); err != nil {
			panic(err)
		}
		decoder := &payload.Decoder{Types: types}
		o.Decoder = func() *payload.Decoder { return decoder }
	})
	id := string(h.receive("old", 1, "\n\x06\n\x01\xff\x12\x01a")[0])
	h.postJSON("/api/v1/letters/"+id+"/type", `{"type":"acme.v1.Old"}`).want(t, 201)
	h.get("/api/v1/letters/"+id).want(t, 200, `"json":null`, `"problem":"no JSON: `)
	page := h.get("/letters/"+id+"?tab=json").want(t, 200, "No JSON: ").text
	if strings.Contains(page, "no type can decode it") {
		t.Error("a type decodes it")
	}
	h.get("/letters/"+id+"/edit").want(t, 200, "no JSON: ")
}
