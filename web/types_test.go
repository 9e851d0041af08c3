package web_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/schemas"
	"github.com/deadletteroffice/dlo/web"
)

// withLibrary gives dlo a schema library with the types of notifySource.
func withLibrary(o *web.Options) {
	l := schemas.New(o.Store, schemas.Options{})
	if _, _, err := l.Upload(
		context.Background(), deadletter.Local, "notify", []byte(notifySource), "notify.proto", false,
	); err != nil {
		panic(err)
	}
	decoder := &payload.Decoder{
		Types: l.Registry(), Mask: payload.Masks{Patterns: []*regexp.Regexp{regexp.MustCompile("^secret$")}}.Body(),
	}
	o.Decoder = func() *payload.Decoder { return decoder }
	o.Schemas = l
}

func (h *house) postFile(path string, content []byte) answer {
	h.t.Helper()
	r := httptest.NewRequest("POST", path, bytes.NewReader(content))
	r.Header.Set("Content-Type", "application/octet-stream")
	return h.do(r)
}

func TestTypesOverTheAPI(t *testing.T) {
	t.Parallel()
	h := open(t, withLibrary)
	h.get("/api/v1/types").want(
		t, 200, `"name":"notify"`, `"source":"upload"`,
		`"types":["acme.notify.v1.EmailRequested","acme.notify.v1.SmsRequested","acme.notify.v1.Template"]`,
		`"hits":[]`, `"removed":[]`, `"problems":[]`,
	)
	h.get("/api/v1/types?q=TENANT").want(
		t, 200,
		`"hits":[{"type":"acme.notify.v1.EmailRequested","set":"notify","field":"tenant_id","is":"int64"},{"type":"acme.notify.v1.SmsRequested"`,
	)
	h.get("/api/v1/types?q="+strings.Repeat("a", 201)).want(t, 400)
	h.get("/api/v1/types/proto?type=EmailRequested").want(
		t, 200, `// A mail that somebody asked for.\nmessage EmailRequested {`, `"letters":0`, `"set":"notify"`,
		`"file":"notify.proto","fields":3`,
	)
	h.get("/api/v1/types/proto?type=Gone").want(t, 400, "no set defines this type")
	h.get("/api/v1/types/proto").want(t, 400, "acme.notify.v1.EmailRequested")

	source := []byte(strings.Replace(notifySource, "int64 tenant_id = 2;", "string tenant_id = 2; bool urgent = 9;", 1))
	const changed = `"changed":[{"type":"acme.notify.v1.EmailRequested","differences":["field 2 tenant_id type int64 -> string","field 9 added: bool urgent"],"more":0}]`
	h.postFile(
		"/api/v1/types?name=notify&filename=notify.proto&dry_run=1", source,
	).want(t, 200, changed, `"dry_run":true`, `"known":""`)
	h.get("/api/v1/types").want(t, 200, `"letters":{}`)
	a := h.postFile("/api/v1/types?name=notify&filename=notify.proto", source).want(t, 201, changed, `"added_count":0`)
	if a.Header.Get("Location") != "/api/v1/types" {
		t.Error(a.Header)
	}
	h.postFile("/api/v1/types?name=notify&filename=notify.proto", source).want(t, 200, `"known":"current"`)
	h.postFile(
		"/api/v1/types?name=other&filename=notify.proto", []byte(notifySource),
	).want(t, 201, `"conflict_count":1`, `"set":"notify"`)
	h.postFile("/api/v1/types?name=x", []byte("\x08\x01")).want(t, 400, "buf build -o set.binpb")
	h.postFile("/api/v1/types?name=x&dry_run=maybe", source).want(t, 400, "dry_run: expected value to be one of")
	h.postFile("/api/v1/types?nam=x", source).want(t, 400, "no parameter")
	h.postFile("/api/v1/types?name=x", make([]byte, 64<<20+1)).want(t, 400, "above 64 MiB")
	h.postFile("/api/v1/types?name=x", make([]byte, 66<<20)).want(t, 413)
	h.postJSON("/api/v1/types?name=x", `{}`).want(t, 415)

	h.sendJSON("DELETE", "/api/v1/types/other?dry_run=1", "").want(t, 200, `"dry_run":true`, `"type_count":3`)
	h.sendJSON("DELETE", "/api/v1/types/other", "").want(t, 200, `"dry_run":false`)
	h.sendJSON("DELETE", "/api/v1/types/other", "").want(t, 404)
	h.get("/api/v1/types").want(t, 200, `"removed":[{"name":"other"`)
	h.postFile("/api/v1/types?name=a/b%20c", source).want(t, 400)
	h.postFile("/api/v1/types?name=b%20c", source).want(t, 201)
	h.sendJSON("DELETE", "/api/v1/types/b%20c", "").want(t, 200)
	h.get("/api/v1/audit").want(t, 200, `"kind":"schema uploaded"`, `"kind":"schema removed"`)

	h.Drain()
	h.postFile("/api/v1/types?name=late", source).want(t, 503)
	h.sendJSON("DELETE", "/api/v1/types/notify", "").want(t, 503)
}

func TestTypesThatAForeignerMayNotChange(t *testing.T) {
	t.Parallel()
	h := open(t, withLibrary, func(o *web.Options) {
		o.Actor = func(*http.Request) (deadletter.Principal, error) {
			return deadletter.Principal{Name: "mallory", Grants: []deadletter.Grant{{Role: deadletter.RoleReader}}}, nil
		}
	})
	h.postFile("/api/v1/types?name=x", []byte(notifySource)).want(t, 403, "may not change schemas and types")
	h.sendJSON("DELETE", "/api/v1/types/notify", "").want(t, 403, "may not change schemas and types")
}

func TestUploadByForm(t *testing.T) {
	t.Parallel()
	h := open(t, withLibrary)
	send := func(fields ...string) answer {
		t.Helper()
		var b bytes.Buffer
		form := multipart.NewWriter(&b)
		for i := 0; i < len(fields); i += 2 {
			if fields[i] == "file" {
				f, err := form.CreateFormFile("file", "hello.proto")
				if err != nil {
					t.Fatal(err)
				}
				f.Write([]byte(fields[i+1]))
			} else if err := form.WriteField(fields[i], fields[i+1]); err != nil {
				t.Fatal(err)
			}
		}
		form.Close()
		r := httptest.NewRequest("POST", "/api/v1/types", &b)
		r.Header.Set("Content-Type", form.FormDataContentType())
		return h.do(r)
	}
	const source = `syntax = "proto3"; message Hello { string name = 1; }`
	send("dry_run", "1", "file", source).want(t, 200, `"set":"hello"`, `"dry_run":true`)
	send("file", source, "name", "greetings").want(t, 201, `"set":"greetings"`)
	send("name", "x").want(t, 400, "has no file")
	send("file", source, "file", source).want(t, 400, "one file at a time")
	send("odd", "x").want(t, 400, "no field")
	r := httptest.NewRequest("POST", "/api/v1/types", strings.NewReader("--x\r\nhalf"))
	r.Header.Set("Content-Type", "multipart/form-data; boundary=x")
	h.do(r).want(t, 400, "breaks off")
}

func TestMatchOverTheAPI(t *testing.T) {
	t.Parallel()
	h := open(t, withLibrary)
	body := base64.StdEncoding.EncodeToString([]byte("\x0a\x0areq_9f2c41\x10\xd5\xf8\x02\x22\x16\x0a\x0awelcome_v3\x12\x08en-GB_XX"))
	h.postJSON("/api/v1/types/match", `{"body":"`+body+`"}`).want(
		t, 200, `"verdict":"matched"`, `"type":"acme.notify.v1.EmailRequested"`, `"json":{"requestId":"req_9f2c41"`,
		`"steps":[`,
	)
	h.postJSON("/api/v1/types/match", `{"body":"`+body+`","as":"Template"}`).want(t, 200, `"chosen":"a person's pick"`)
	h.postJSON("/api/v1/types/match", `{"body":"`+body+`","as":"Gone"}`).want(t, 200, `is not registered`)
	h.postJSON(
		"/api/v1/types/match",
		`{"body":"`+base64.StdEncoding.EncodeToString([]byte("\x0a\x06secret"))+`","as":"EmailRequested"}`,
	).want(t, 200, `"requestId":"••••"`)
	h.postJSON(
		"/api/v1/types/match", `{"body":"`+base64.StdEncoding.EncodeToString(make([]byte, 10<<20))+`"}`,
	).want(t, 200, `"verdict":"unknown"`)
	h.postJSON("/api/v1/types/match", `{"body":"no base64"}`).want(t, 400)
	h.postJSON("/api/v1/types/match", `{"bodies":""}`).want(t, 400)
}
