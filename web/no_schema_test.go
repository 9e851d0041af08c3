package web_test

import (
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestAMessageWithoutASchema checks the page of a letter with a protobuf message of which dlo has
// no schema. The page must say so without a warning, and lead to the upload of a schema and to the
// choice of a type. If the body is not a message, or not one of the type that the letter names, the
// page must warn.
func TestAMessageWithoutASchema(t *testing.T) {
	t.Parallel()
	const amber, upload, as = `class="note warn"`, `href="/schemas#upload"`, `href="#read-as"`
	message := []byte("\xba\x3e\x05hello\xc0\x3e\x96\x01")
	for _, c := range []struct {
		name, contentType, typ string
		body                   []byte
		says                   string // "" = there is a warning
	}{
		{"declared", "application/x-protobuf", "", message, "Application/x-protobuf names no type, and no binding fits."},
		{"a type that is not registered", "application/x-protobuf", "acme.Gone", message, "is not registered"},
		{"only the bytes say it", "", "", message, "Shown without names."},
		{"no message", "application/x-protobuf", "", []byte("\x07\xff\xff"), ""},
		{"declared as JSON", "application/json", "", message, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := open(t, withTypes)
			id := h.take(deadletter.Arrival{
				Exchange: "dlo.dlx", RoutingKey: "sms", Body: c.body,
				Properties: deadletter.Properties{ContentType: c.contentType, Type: c.typ},
			})[0]
			page := h.get("/letters/" + string(id))
			if c.says == "" {
				page.want(t, 200, amber).wantNot(t, "Protobuf without a schema", upload)
				return
			}
			page.want(t, 200, "<b>Protobuf without a schema.</b>", c.says, upload, "Upload a .proto", as, `id="read-as"`).
				wantNot(t, amber, "Not what the letter says it is")
		})
	}
}
