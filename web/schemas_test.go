package web_test

import (
	"bytes"
	"context"
	"mime/multipart"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/schemas"
	"github.com/deadletteroffice/dlo/web"
)

// withEmptyLibrary gives dlo an empty schema library, and lets people pick types. After a change, a
// test calls the method "reread" to read the affected letters again.
func withEmptyLibrary(o *web.Options) {
	s := o.Store
	decoder := &payload.Decoder{}
	l := schemas.New(s, schemas.Options{Decoder: func() *payload.Decoder { return decoder }, Untyped: s.Untyped})
	decoder.Types = l.Registry()
	o.Decoder = func() *payload.Decoder { return decoder }
	o.Schemas = l
}

// reread reads all letters that must be read again. A running dlo does this in the background.
func (h *house) reread() {
	h.t.Helper()
	ctx := context.Background()
	for more := true; more; {
		var err error
		if more, err = h.store.ListUnread(ctx); err != nil {
			h.t.Fatal(err)
		}
	}
	for {
		letters, err := h.store.NextUnread(ctx, 100)
		if err != nil {
			h.t.Fatal(err)
		}
		if len(letters) == 0 {
			return
		}
		var list []deadletter.Read
		for _, l := range letters {
			hints := h.Decoder().HintsOf(&l)
			if hints.Only, err = h.store.OnlyType(ctx, l.Origin()); err != nil {
				h.t.Fatal(err)
			}
			doc := h.Decoder().Decode(l.Body, hints, nil)
			list = append(list, deadletter.Read{
				AsOf: l.ChangedAt,
				Classified: deadletter.Classified{
					Letter:       l.ID,
					Type:         doc.Type,
					Reading:      doc.Reading(),
					Added:        doc.Added,
					GroupKey:     [32]byte{1},
					GroupTitle:   "g",
					GroupVersion: 1,
					Reason:       l.Reason,
					Error:        l.Error,
				},
			})
		}
		if err := h.store.Read(ctx, list); err != nil {
			h.t.Fatal(err)
		}
	}
}

// arrive stores letters, and decodes them with the current types.
func (h *house) arrive(queue string, n int, body string) []deadletter.ID {
	h.t.Helper()
	ids := h.receive(queue, n, body)
	if err := h.store.Reread(context.Background(), deadletter.Reread{Why: "a test"}); err != nil {
		h.t.Fatal(err)
	}
	h.reread()
	h.indexed()
	return ids
}

// indexed adds letters to the text index. Without it, a query such as read:ambiguous would not find
// them.
func (h *house) indexed() {
	h.t.Helper()
	letters, err := h.store.NextUnindexed(context.Background(), 500)
	if err != nil {
		h.t.Fatal(err)
	}
	var list []deadletter.Indexed
	for _, l := range letters {
		list = append(list, deadletter.Indexed{
			Letter: l.ID,
			Fields: []deadletter.IndexedField{
				{Name: "read", Value: string(l.Reading)},
				{Name: "id", Value: l.ID.Short()},
			},
		})
	}
	if err := h.store.Index(context.Background(), list); err != nil {
		h.t.Fatal(err)
	}
}

// upload submits a file with the form of the page.
func (h *house) upload(name, fileName, content string) answer {
	h.t.Helper()
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	form.WriteField("name", name)
	part, err := form.CreateFormFile("file", fileName)
	if err != nil {
		h.t.Fatal(err)
	}
	part.Write([]byte(content))
	form.Close()
	r := httptest.NewRequest("POST", "/schemas/upload", &b)
	r.Header.Set("Content-Type", form.FormDataContentType())
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return h.do(r)
}

var keyField = regexp.MustCompile(`name="key" value="([^"]+)"`)

// use confirms the upload of a set of schemas with the name "notify". The next page must say that
// the set is in use.
func (h *house) use(t *testing.T, key url.Values) {
	t.Helper()
	to := h.post("/schemas/upload/use", key).want(t, 303).Header.Get("Location")
	if !strings.HasPrefix(to, "/schemas?set=notify&used=") {
		t.Fatal(to)
	}
	h.get(to).want(t, 200, "The uploaded file is now the set notify.")
}

func keyOf(t *testing.T, a answer) url.Values {
	t.Helper()
	m := keyField.FindStringSubmatch(a.text)
	if m == nil {
		t.Fatal("the page has no key")
	}
	return url.Values{"key": {m[1]}}
}

// mailBody is a message of type acme.notify.v1.EmailRequested.
const mailBody = "\x0a\x0areq_9f2c41\x10\xd5\xf8\x02\x22\x16\x0a\x0awelcome_v3\x12\x08en-GB_XX"

func TestSchemasPage(t *testing.T) {
	t.Parallel()
	h := open(t, withEmptyLibrary)
	h.get("/schemas").want(
		t, 200, "No letters yet", "There are no sets", "No queue has letters", "No message types are registered",
	)
	h.arrive("email", 3, mailBody)
	h.arrive("hook", 1, `{"a":1}`)
	h.get("/schemas").want(t, 200,
		"25.0%", "of 4 stored letters decode", "3 with no matching schema", "1 JSON and text",
		"3 match no schema", `href="/letters?q=queue%3Aemail+read%3Aunknown%2Cambiguous"`,
		"3 letters match no schema. Is a newer set missing?",
		`aria-label="1 queue without a schema"`, "no type matches",
	)
	h.get("/letters?q=queue:email+read:unknown,ambiguous").want(t, 200, "3 match")

	// An upload must change nothing before it is confirmed.
	preview := h.upload("", "notify.proto", notifySource).want(
		t, 200, "New set notify", "3 types added", "3 of 3 letters that no schema can decode now would decode",
		"Use this version",
	)
	h.get("/schemas").want(t, 200, "There are no sets")
	h.post("/schemas/upload/use", url.Values{"key": {"another"}}).want(t, 409, "the file is no longer kept here")
	h.use(t, keyOf(t, preview))
	h.post("/schemas/upload/use", keyOf(t, preview)).want(t, 409, "no longer kept")
	h.get("/schemas").want(
		t, 200, "3 message types in 1 set", "Letters are being read again", "are being listed", "upload by you (no sign-in)",
	)
	h.reread()
	h.get("/schemas").want(
		t, 200, "100%", "3 matched one type", "matched by shape only, 3 of 3", "EmailRequested",
	).wantNot(t, "Letters are being read again", "without a schema")

	// Two letters contain a field that their type does not have. They must be decoded nevertheless,
	// and the page must name the field and count the letters.
	h.get("/schemas").wantNot(t, "Newer than the schema")
	h.arrive("email", 20, mailBody)
	id := h.arrive("email", 2, mailBody+"\x9a\x01\x06sixty6")[0]
	if err := h.store.Reread(t.Context(), deadletter.Reread{Why: "all others have their type now"}); err != nil {
		t.Fatal(err)
	}
	h.reread()
	h.get("/schemas").want(t, 200, "Newer than the schema", "field 19 of", `<td class="num">2</td>`)
	h.get("/letters/"+string(id)).want(
		t, 200, "acme.notify.v1.EmailRequested", "19 (length-delimited, looks like string",
	)

	h.get("/schemas?find=TENANT").want(t, 200, "field tenant_id")
	h.get("/schemas?find="+strings.Repeat("a", 201)).want(t, 400)
	h.get("/schemas?type=EmailRequested").want(
		t, 200, "// A mail that somebody asked for.", "Used by",
		`<a href="/letters?q=queue%3Aemail+type%3Aacme.notify.v1.EmailRequested">email</a>`, "notify.proto, 3 fields",
	)
	h.get("/schemas?type=Gone").want(t, 200, "no set defines this type")
	h.get("/schemas?set=notify").want(t, 200, "Set notify", "3 types", `action="/schemas/remove/confirm"`)
	h.get("/schemas?set=gone").want(t, 200, "There is no set of this name in use")

	// In the following case, one person looks at the preview of a new version of a set. Meanwhile,
	// another person puts a different version into use.
	second := h.upload(
		"notify", "notify.proto", strings.Replace(notifySource, "int64 tenant_id = 2;", "string tenant_id = 2;", 1),
	).want(t, 200, "New version of set notify", "field 2 tenant_id type int64 -&gt; string", "1 changed")
	third := h.upload(
		"notify", "notify.proto", notifySource+"message More { string a = 1; }",
	).want(t, 200, "1 type added")
	h.use(t, keyOf(t, third))
	again := h.post("/schemas/upload/use", keyOf(t, second)).want(
		t, 409, "the set has another version now", "1 removed",
	)
	h.use(t, keyOf(t, again))
	h.upload("other", "notify.proto", notifySource).want(t, 200, "defined differently")
	h.upload("notify", "notify.proto", notifySource).want(t, 200, "The set had this version before")
	h.get("/schemas?set=notify").want(t, 200, "Older version")

	// A file that cannot be used must be reported beside the form.
	h.upload("", "x.proto", `edition = "2024"; message A {}`).want(
		t, 400, "Upload schemas", "Nothing was changed", "2024",
	)
	h.upload(
		"", "x.proto", `syntax = "proto3"; import "gone.proto"; message A { gone.B b = 1; }`,
	).want(t, 200, "It imports gone.proto, and this file is not in it.")
	h.upload(strings.Repeat("n", 201), "x.proto", notifySource).want(t, 400, "the name of a set begins with")
	h.post("/schemas/upload", url.Values{}).want(t, 400)

	h.post("/schemas/remove/confirm", url.Values{"set": {"notify"}}).want(
		t, 200, "Remove set notify?", "25 stored letters have one of its types",
	)
	h.post("/schemas/remove/confirm", url.Values{"set": {"gone"}}).want(t, 404)
	h.post("/schemas/remove", url.Values{"set": {"notify"}}).redirectsTo(t, "/schemas")
	h.get("/schemas").want(t, 200, "There are no sets", "Out of use: 3 versions")

	kept := h.upload("late", "notify.proto", notifySource).want(t, 200)
	h.Drain()
	h.post("/schemas/upload/use", keyOf(t, kept)).want(t, 503)
	h.post("/schemas/remove", url.Values{"set": {"late"}}).want(t, 503)
}

func TestUploadsAreKeptForFew(t *testing.T) {
	t.Parallel()
	h := open(t, withEmptyLibrary)
	first := keyOf(t, h.upload("a", "a.proto", notifySource))
	for _, name := range []string{"b", "c", "d", "e"} {
		h.upload(name, "a.proto", notifySource).want(t, 200)
	}
	h.post("/schemas/upload/use", first).want(t, 409, "no longer kept")
}

func TestQueuesAreBound(t *testing.T) {
	t.Parallel()
	h := open(t, withLibrary, func(o *web.Options) {
		o.Bindings = []deadletter.Binding{{Queue: "old-*", Key: "k.*", Type: "acme.notify.v1.SmsRequested"}}
	})
	id := h.arrive("email", 1, mailBody)[0]
	h.get("/schemas?bind=email&as=acme.notify.v1.EmailRequested").want(
		t, 200, `name="queue" value="email"`, `name="type" value="acme.notify.v1.EmailRequested"`, "configuration",
		"old-*", "key <code>k.*</code>",
	)
	form := url.Values{"queue": {" email "}, "type": {"acme.notify.v1.Gone"}, "reason": {"why"}}
	h.post("/schemas/bindings", form).want(
		t, 400, "Nothing was bound", "is not registered", `name="queue" value="email"`, `value="why"`,
	)
	form.Set("type", "emailrequested")
	h.post("/schemas/bindings", form).want(t, 400, "did you mean acme.notify.v1.EmailRequested?")
	form.Set("type", "acme.notify.v1.EmailRequested")
	h.post("/schemas/bindings", form).redirectsTo(t, "/schemas?bound=1")
	h.get("/schemas?bound=1").want(t, 200, "are read as acme.notify.v1.EmailRequested from now on")
	h.post("/schemas/bindings", url.Values{"type": {"acme.notify.v1.EmailRequested"}}).want(t, 400, "name a queue")
	h.postJSON("/api/v1/letters/"+string(id)+"/type", `{"type":"acme.notify.v1.Template","for":"group"}`).want(t, 201)
	h.postJSON("/api/v1/letters/"+string(id)+"/type", `{"type":"acme.notify.v1.Template","for":"letter"}`).want(t, 201)
	h.get("/schemas").want(
		t, 200, "bound by you (no sign-in)", `action="/schemas/picks/1/remove"`, "G-2", id.Short(), ": why",
		"a pick of acme.notify.v1.EmailRequested",
	)
	h.post("/schemas/picks/1/remove", nil).redirectsTo(t, "/schemas")
	h.post("/schemas/picks/1/remove", nil).want(t, 404)
	h.get("/schemas").want(t, 200).wantNot(t, "bound by you (no sign-in)")
	h.get("/audit").want(t, 200, "type picked", "pick removed")
}

func TestForeignersDoNotChangeSchemas(t *testing.T) {
	t.Parallel()
	h := open(t, withLibrary)
	r := httptest.NewRequest("POST", "/schemas/remove", strings.NewReader("set=notify"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	h.do(r).want(t, 403)
}

// wantNot fails the test if the response contains any of the texts.
func (a answer) wantNot(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(a.text, text) {
			t.Errorf("%q is on the page", text)
		}
	}
}
