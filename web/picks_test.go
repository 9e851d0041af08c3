package web_test

import (
	"context"
	"encoding/base64"
	"net/url"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/deadletteroffice/dlo/web"
)

// notifySource is the .proto schema that the tests of message types use.
const notifySource = `syntax = "proto3";
package acme.notify.v1;
// A mail that somebody asked for.
message EmailRequested {
  string request_id = 1; // unique
  int64 tenant_id = 2;
  Template template = 4;
}
message Template { string name = 1; string locale = 2; }
message SmsRequested { string request_id = 1; int64 tenant_id = 2; string text = 3; }
`

// withTypes gives dlo the types of notifySource, and lets people pick types.
func withTypes(o *web.Options) {
	types := descriptor.NewRegistry()
	if _, err := types.AddSource("notify", fstest.MapFS{"notify.proto": {Data: []byte(notifySource)}}); err != nil {
		panic(err)
	}
	decoder := &payload.Decoder{Types: types}
	o.Decoder = func() *payload.Decoder { return decoder }
}

// picker is a Picker that only saves the picked message types in the store. Unlike a running dlo,
// it neither uses the bindings of the configuration nor applies a pick to a group.
type picker struct{ *store.Store }

func (p picker) AddPick(ctx context.Context, k deadletter.Pick) (deadletter.Pick, error) {
	return p.Store.AddPick(
		ctx, k, func(glob, queue string) bool { return deadletter.Binding{Queue: glob}.Fits(queue, "") },
	)
}

func (p picker) RemovePick(ctx context.Context, id int64, by string) error {
	return p.Store.RemovePick(
		ctx, id, by, func(glob, queue string) bool { return deadletter.Binding{Queue: glob}.Fits(queue, "") },
	)
}

func TestTypesArePicked(t *testing.T) {
	t.Parallel()
	h := open(t, withTypes, func(o *web.Options) {
		o.Bindings = []deadletter.Binding{{Queue: "old-*", Type: "acme.notify.v1.EmailRequested"}}
	})
	id := string(h.receive("sms", 1, "\n\x03abc\x10\x05\x1a\x05hello")[0])
	before := h.get("/api/v1/letters/"+id).want(t, 200).text
	if !strings.Contains(before, `"type":"acme.notify.v1.SmsRequested"`) {
		t.Fatal(before)
	}
	for _, c := range []struct{ body, detail string }{
		{`{"type":"acme.notify.v1.Nothing"}`, "is not registered"},
		{`{"type":""}`, "is not registered"},
		{`{"type":"acme.notify.v1.SmsRequested","for":"everything"}`, "letter, group or binding"},
		{`{"type":"acme.notify.v1.SmsRequested","reason":"` + strings.Repeat("x", 501) + `"}`, "at most 500 bytes"},
	} {
		h.postJSON("/api/v1/letters/"+id+"/type", c.body).want(t, 400, c.detail)
	}
	h.postJSON("/api/v1/bindings", `{"queue":"","type":"acme.notify.v1.SmsRequested"}`).want(t, 400, "name a queue")
	h.postJSON(
		"/api/v1/letters/"+id+"/type", `{"type":"acme.notify.v1.EmailRequested","reason":"I know"}`,
	).want(t, 201, `"for":"letter","id":1,"letter":"`+id+`"`, `"by":"local"`)
	h.get("/api/v1/letters/"+id).want(t, 200, `"type":"acme.notify.v1.EmailRequested"`)
	h.get("/letters/"+id).want(t, 200, "a person&#39;s pick")
	h.postJSON(
		"/api/v1/letters/"+id+"/type", `{"type":"acme.notify.v1.SmsRequested","for":"group"}`,
	).want(t, 201, `"for":"group","id":2,"group":"G-1"`)
	h.postJSON(
		"/api/v1/letters/"+id+"/type", `{"type":"acme.notify.v1.SmsRequested","for":"binding"}`,
	).want(t, 201, `"for":"binding","id":3,"queue":"sms"`)
	h.postJSON("/api/v1/bindings", `{"queue":"sms","type":"acme.notify.v1.EmailRequested"}`).want(t, 201, `"id":4`)
	h.get("/api/v1/bindings").want(
		t, 200, `{"bindings":[{"for":"binding","id":4,"queue":"sms","type":"acme.notify.v1.EmailRequested"`,
		`{"for":"group","id":2`, `{"for":"letter","id":1`,
		`"configuration":[{"queue":"old-*","type":"acme.notify.v1.EmailRequested"}]`,
	)
	stale := request("DELETE", "/api/v1/bindings/1", "")
	stale.Header.Set("If-Match", `"0123456789abcdef01234567"`)
	h.do(stale).want(t, 412, "somebody has changed it since")
	fresh := request("DELETE", "/api/v1/bindings/1", "")
	fresh.Header.Set("If-Match", h.get("/api/v1/bindings").Header.Get("ETag"))
	h.do(fresh).want(t, 204)
	h.do(request("DELETE", "/api/v1/bindings/1", "")).want(t, 404)
	h.get("/api/v1/audit").want(t, 200, "type picked")
	h.get("/letters/"+id+"?tab=history").want(
		t, 200, "this letter is read as acme.notify.v1.EmailRequested: I know", "no longer read as",
	)
}

// TestTypesArePickedOnALettersPage covers a person who picks a type for a letter, its group or its
// queue on the page of the letter, and then undoes the pick.
func TestTypesArePickedOnALettersPage(t *testing.T) {
	t.Parallel()
	h := open(t, withTypes)
	id := string(h.receive("sms", 1, "\n\x03abc\x10\x05\x1a\x05hello")[0])
	page := "/letters/" + id
	h.get(page).want(
		t, 200, `action="`+page+`/type"`, "Its group, G-1", "Its queue, sms",
		`<option value="acme.notify.v1.SmsRequested">`, "Matches 1 type",
	)
	pick := func(typ, whom string) answer {
		return h.post(page+"/type", url.Values{
			"type":   {typ},
			"for":    {whom},
			"reason": {"I know"},
			"return": {page + "?q=state%3Adead&tab=raw"},
		})
	}
	pick("acme.notify.v1.Gone", "group").want(
		t, 400, "Nothing was applied", "is not registered", `value="acme.notify.v1.Gone"`, `value="I know"`,
		`<option value="group" selected>`,
	)
	pick("acme.notify.v1.EmailRequested", "everyone").want(t, 400, "letter, group or binding")
	pick("acme.notify.v1.EmailRequested", "letter").redirectsTo(t, page+"?q=state%3Adead&tab=raw")
	h.get(page).want(
		t, 200, "picked by you (no sign-in) for this letter", ": I know", "a person&#39;s pick",
		`action="/schemas/picks/1/remove"`,
	)
	pick("acme.notify.v1.EmailRequested", "group").redirectsTo(t, page+"?q=state%3Adead&tab=raw")
	pick("acme.notify.v1.EmailRequested", "binding").redirectsTo(t, page+"?q=state%3Adead&tab=raw")
	h.get(page).want(t, 200, "for its group, G-1", "for <code>sms</code>")
	h.post("/schemas/picks/1/remove", url.Values{"return": {page}}).redirectsTo(t, page)
	if text := h.get(page).want(t, 200).text; strings.Contains(text, "for this letter,") {
		t.Error("the pick is still there")
	}
	h.post("/letters/"+strings.Repeat("0", 36)+"/type", url.Values{}).want(t, 404)
	json := string(h.receive("hook", 1, `{"a":1}`)[0])
	h.post("/schemas/picks/2/remove", nil).want(t, 303)
	h.get("/letters/"+json).want(t, 200)
	h.Drain()
	pick("acme.notify.v1.EmailRequested", "letter").want(t, 503)
}

// TestAMemberOfJSONIsBound covers a JSON body with a message in base64 that several types fit. The
// page offers to bind the member to a type, for all letters of the queue.
func TestAMemberOfJSONIsBound(t *testing.T) {
	t.Parallel()
	const source = `syntax = "proto3"; package shop.v1;
message Pair { string a = 1; string b = 2; }
message OtherPair { string c = 1; string d = 2; }`
	types := descriptor.NewRegistry()
	if _, err := types.AddSource("shop", fstest.MapFS{"shop.proto": {Data: []byte(source)}}); err != nil {
		t.Fatal(err)
	}
	var h *house
	h = open(t, func(o *web.Options) {
		o.Decoder = func() *payload.Decoder {
			d := &payload.Decoder{Types: types}
			if h != nil {
				picks, err := h.store.Picks(t.Context())
				if err != nil {
					t.Error(err)
				}
				for _, p := range picks {
					d.Bindings = append(d.Bindings, p.Binding)
				}
			}
			return d
		}
	})
	body := `{"row": {"payload": "` + base64.StdEncoding.EncodeToString([]byte("\n\x0afirst text\x12\x0bsecond text")) + `"}}`
	id := string(h.receive("outbox", 1, body)[0])
	page, api := "/letters/"+id, "/api/v1/letters/"+id
	h.get(page).want(t, 200, "The base64 in row.payload", "It is used for all letters of outbox.")
	if text := h.get(page).text; strings.Contains(text, "second text") {
		t.Error("it has no type yet")
	}
	form := url.Values{"type": {"shop.v1.Pair"}, "for": {"letter"}, "path": {"row.payload"}, "reason": {"the outbox"}}
	h.post(page+"/type", form).want(t, 400, "Nothing was applied", "choose binding", `value="shop.v1.Pair"`)
	form.Set("for", "binding")
	h.post(page+"/type", form).redirectsTo(t, page)
	h.get(page).want(t, 200, "second text", "for <code>outbox</code>, member <code>row.payload</code>", "counts")
	h.get(api).want(t, 200, `"inside":[{"path":"row.payload","type":"shop.v1.Pair"`)
	h.get("/schemas").want(t, 200, "base64 in <code>row.payload</code>")
	h.get("/api/v1/bindings").want(t, 200, `"queue":"outbox","type":"shop.v1.Pair","path":"row.payload"`)
	h.get("/api/v1/audit").want(t, 200, "messages in the member row.payload of letters of outbox are read as shop.v1.Pair: the outbox")

	h.postJSON("/api/v1/bindings", `{"queue":"outbox","type":"shop.v1.OtherPair"}`).want(t, 201)
	h.postJSON("/api/v1/bindings", `{"queue":"outbox","path":"row.payload","type":"shop.v1.OtherPair"}`).want(t, 201)
	h.get(api).want(t, 200, `"inside":[{"path":"row.payload","type":"shop.v1.OtherPair"`)
	if text := h.get("/api/v1/bindings").text; strings.Count(text, `"for":"binding"`) != 2 {
		t.Errorf("a pick replaces only one for the same member: %s", text)
	}
	h.do(request("DELETE", "/api/v1/bindings/3", "")).want(t, 204)
	h.get(page).want(t, 200, "The base64 in row.payload")
	h.get("/api/v1/audit").want(t, 200, "no longer: messages in the member row.payload of letters of outbox are read as")
	h.post("/schemas/bindings", url.Values{
		"queue": {"outbox"}, "path": {strings.Repeat("x", 256)}, "type": {"shop.v1.Pair"},
	}).want(t, 400, "at most 255 bytes", `name="path"`)
	h.post("/schemas/bindings", url.Values{"queue": {"outbox"}, "path": {"row.payload"}, "type": {"shop.v1.Pair"}}).
		redirectsTo(t, "/schemas?bound=4")
	h.get("/schemas?bound=4").want(t, 200, "Messages in the member row.payload of letters of outbox are read as shop.v1.Pair")
}
