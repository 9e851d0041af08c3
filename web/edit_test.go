package web_test

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// mail is a message of type EmailRequested: request_id, tenant_id, template{name, locale} and an
// unknown field 9.
const mail = "\n\x03abc\x10\x05\x22\x10\n\nwelcome_v3\x12\x02enJ\x02hi"

// mails returns a dlo with n letters of type EmailRequested. Their bodies are encoded in base64.
func mails(t *testing.T, n int) (*house, []deadletter.ID) {
	t.Helper()
	h := open(t, withTypes)
	ids := h.receive("email", n, base64.StdEncoding.EncodeToString([]byte(mail)))
	for _, id := range ids {
		h.postJSON("/api/v1/letters/"+string(id)+"/type", `{"type":"acme.notify.v1.EmailRequested"}`).want(t, 201)
	}
	return h, ids
}

// field returns the value of a field in the form of a page.
func field(t *testing.T, page, name string) string {
	t.Helper()
	m := regexp.MustCompile(`name="` + name + `" value="([^"]*)"`).FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("no field %s in %s", name, page)
	}
	return m[1]
}

const mailJSON = `{
  "requestId": "abc",
  "tenantId": "5",
  "template": {
    "name": "welcome_v2",
    "locale": "en"
  }
}`

func TestALetterIsEditedOnItsPage(t *testing.T) {
	t.Parallel()
	h, ids := mails(t, 1)
	id := string(ids[0])
	page := h.get("/letters/"+id+"/edit").want(
		t, 200, "Payload as JSON", "&#34;welcome_v3&#34;", "base64", `value="m-1-0"`, `name="header" value="tries"`,
		"int32",
	).text
	form := url.Values{
		"from":   {"0"},
		"newest": {"0"},
		"key":    {field(t, page, "key")},
		"text":   {strings.ReplaceAll(mailJSON, "\n", "\r\n")},
		"do":     {"check"},
	}
	h.post("/letters/"+id+"/edit", form).want(
		t, 200, "<del>v3</del>", "<ins>v2</ins>", "Valid JSON, valid for the type",
		"1 field that the JSON does not show", "1 field",
	)

	form.Set("do", "send")
	h.post("/letters/"+id+"/edit", form).want(t, 400, "Say why, so that the next person", "Nothing was sent")
	form.Set("reason", "the template is gone")
	form.Set("text", "{\n  \"tenantId\": \"five\"\n}")
	h.post("/letters/"+id+"/edit", form).want(t, 400, "Line 2, column")
	form.Set("text", mailJSON)
	form["header"], form["header_kind"], form["header_value"] = []string{
		"tries", "x-error-message", "x-new", "",
	}, []string{"int32", "longstr", "", ""}, []string{
		"many", "endpoint answered 410 Gone", "v", "",
	}
	form["property"], form["property_value"] = []string{"expiration", "app_id"}, []string{"soon", "shop"}
	h.post("/letters/"+id+"/edit", form).want(t, 400, "is no int32")
	form["header_value"][0], form["header"][2] = "4", "tries"
	h.post("/letters/"+id+"/edit", form).want(t, 400, "There is already a header with that name.")
	form["header"][2] = "x-new"
	h.post("/letters/"+id+"/edit", form).want(t, 400, "Milliseconds, digits only")
	form["property_value"][0] = ""
	form.Set("header_remove", "x-error-message")
	a := h.post("/letters/"+id+"/edit", form).want(t, 303)
	if to := a.Header.Get("Location"); to != "/operations/O-1" {
		t.Fatal(to)
	}
	if a := h.post("/letters/"+id+"/edit", form).want(t, 303); a.Header.Get("Location") != "/operations/O-1" {
		t.Fatal("a second click is not the same edit", a.Header.Get("Location"))
	}
	form.Set("reason", "and again")
	form.Set("text", strings.Replace(mailJSON, "welcome_v2", "welcome_v1", 1))
	h.post("/letters/"+id+"/edit", form).want(t, 409) // the letter belongs to its operation now
	l, err := h.store.Letter(t.Context(), ids[0])
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(mail, "welcome_v3", "welcome_v2", 1)
	if got, err := base64.StdEncoding.DecodeString(string(l.Revised.Body)); err != nil || string(got) != want {
		t.Errorf("%q %v", got, err)
	}
	if hs := l.Revised.Properties.Headers; hs["tries"] != int32(4) || hs["x-new"] != "v" ||
		hs["x-error-message"] != nil || hs["x-death"] != nil {
		t.Errorf("%v", hs)
	}
	if l.Revised.Changes != "template.name; header tries; header x-error-message; header x-new" ||
		l.Revised.Reason != "the template is gone" || l.Revised.By != "local" {
		t.Errorf("%+v", l.Revised)
	}
	h.get("/letters/"+id).want(t, 200, "welcome_v2", "revision 1")
	h.get("/letters/"+id).want(t, 200, `href="/letters/`+id+`?tab=history"`, "See what was changed")
	h.get("/letters/"+id+"?tab=history").want(
		t, 200, "What the edits changed", "<del>v3</del>", "<ins>v2</ins>",
		"revision 1 changes template.name; header tries",
	)
	h.get("/letters/"+id+"/body").want(t, 200, base64.StdEncoding.EncodeToString([]byte(mail)))
}

func TestTheSameChangeForAGroup(t *testing.T) {
	t.Parallel()
	h, ids := mails(t, 3)
	id := string(ids[0])
	h.post("/letters/confirm", url.Values{
		"action": {"edit"},
		"id":     {id},
		"return": {"/letters"},
	}).want(t, 200, "Write what to change")
	form := url.Values{
		"from":   {"0"},
		"newest": {"0"},
		"key":    {"k"},
		"text":   {mailJSON},
		"do":     {"group"},
		"reason": {"gone"},
	}
	page := h.post("/letters/"+id+"/edit", form).want(
		t, 200, "Edit and requeue 3 letters", "On a sample: 3 of 3 letters can be edited this way", "<ins>v2</ins>",
		"&#34;path&#34;: &#34;/template/name&#34;",
	).text
	confirmed := url.Values{
		"action": {"edit"},
		"scope":  {"all"},
		"q":      {field(t, page, "q")},
		"until":  {field(t, page, "until")},
		"expect": {"3"},
		"key":    {field(t, page, "key")},
		"reason": {""},
		"patch": {
			`[{"op":"test","path":"/template/name","value":"welcome_v3"},{"op":"replace","path":"/template/name","value":"welcome_v2"}]`,
		},
		"canary":  {"0"},
		"wait":    {"2m"},
		"rate":    {"50"},
		"stop_at": {"5"},
	}
	h.post("/operations", confirmed).want(t, 400, "Say why")
	confirmed.Set("reason", "gone")
	was := confirmed.Get("patch")
	for patch, want := range map[string]string{
		`{"op":"test"}`: "a patch is a list of operations", `[{"op":"put","path":"/a"}]`: "there is no such operation",
		`[{"op":"test","path":"/a"}]`: "needs &#34;value&#34;", `[]`: "the patch is empty",
	} {
		confirmed.Set("patch", patch)
		h.post("/operations", confirmed).want(t, 400, want)
		h.postJSON(
			"/api/v1/operations", `{"action":"edit","q":"state:dead","reason":"r","patch":`+patch+`}`,
		).want(t, 400)
	}
	confirmed.Set("patch", was)
	h.post("/operations", confirmed).want(t, 303)
	h.advance()
	for _, id := range ids {
		l, err := h.store.Letter(t.Context(), id)
		if err != nil || l.Revision != 1 ||
			!strings.Contains(
				string(l.Revised.Body),
				base64.RawStdEncoding.EncodeToString([]byte("\n\x03abc\x10\x05\x22\x10\n\nwelcome_v2"))[:24],
			) {
			t.Errorf("%+v %v", l.Revised, err)
		}
	}
	h.get("/operations/O-1").want(t, 200, "Edit and requeue 3 letters")
}

func TestRevisionsByTheAPI(t *testing.T) {
	t.Parallel()
	h, ids := mails(t, 1)
	path := "/api/v1/letters/" + string(ids[0]) + "/revisions"
	for _, c := range []struct{ body, detail string }{
		{`{"json":{"tenantId":"x"},"reason":"r"}`, `"line":1`},
		{`{"text":"{\n\"template\": 7}","reason":"r"}`, `"line":2`},
		{`{"json":{},"text":"","reason":"r"}`, "give one of"},
		{`{"reason":"r"}`, "say what to change"},
		{`{"patch":[{"op":"test","path":"/tenantId","value":"6"}],"reason":"r"}`, `"path":"/tenantId"`},
		{
			`{"headers":{"CC":"q","x-death":null},"properties":{"user_id":"u","expiration":"abc"},"reason":"r"}`,
			`"fields":[{"field":"expiration"`,
		},
		{`{"headers":{"a":[1]},"reason":"r"}`, "an array is written"},
		{`{"patch":[{"op":"replace","path":"/tenantId","value":"6"}]}`, `[{"field":"reason","why":"say why`},
	} {
		if a := h.postJSON(path, c.body); a.StatusCode != 400 || !strings.Contains(a.text, c.detail) {
			t.Errorf("%s: %d %s", c.body, a.StatusCode, a.text)
		}
	}
	h.postJSON(path, `{"patch":[{"op":"replace","path":"/tenantId","value":"6"}],"dry_run":true}`).want(
		t, 200, `"revision":null`, `"changed":["tenantId"]`, `"+   \"tenantId\": \"6\","`, `"ok":true`,
	)
	h.postJSON(
		path, `{"patch":[{"op":"replace","path":"/tenantId","value":"6"}],"reason":"r"}`, "Idempotency-Key", "k",
	).want(t, 201, `"revision":{"number":1,"changes":"tenantId","reason":"r","by":"local"`)
	h.postJSON(
		path, `{"patch":[{"op":"replace","path":"/tenantId","value":"6"}],"reason":"r","from":0}`, "Idempotency-Key",
		"k",
	).want(t, 201, `"number":1`)
	// A client that did not get the response sends the same request again. The second request must
	// succeed, although its patch no longer applies: the patch tests for the value "6", which the
	// first request has changed.
	once := `{"patch":[{"op":"test","path":"/tenantId","value":"6"},{"op":"replace","path":"/tenantId","value":"8"}],"reason":"r"}`
	for range 2 {
		h.postJSON(path, once, "Idempotency-Key", "once").want(t, 201, `"number":2`, `"changed":["tenantId"]`)
	}
	h.postJSON(
		path, strings.Replace(once, `"8"`, `"9"`, 1), "Idempotency-Key", "once",
	).want(t, 409, "another edit of this letter")
	h.post("/letters/"+string(ids[0])+"/edit", url.Values{"from": {"0"}, "newest": {"1"}}).want(t, 409, "someone else")
	h.post("/letters/confirm", url.Values{
		"action": {"requeue"},
		"id":     {string(ids[0])},
	}).want(t, 200, "Its edited copy, revision 2, goes to the tail of its origin queue").wantNot(t, "unchanged")
	h.postJSON(
		path, `{"patch":[{"op":"replace","path":"/tenantId","value":"7"}],"reason":"r","requeue":true}`,
	).want(t, 201, `"number":3`, `"operation":"O-1"`)
	h.get("/api/v1/letters/"+string(ids[0])).want(
		t, 200, `"tenantId":"7"`, `"revisions":[{"number":1,`,
		fmt.Sprintf(
			`"body":%q`, base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString([]byte(mail)))),
		),
	)
	h.postJSON(path, `{"body":"eA==","reason":"r"}`).want(t, 409)
}
