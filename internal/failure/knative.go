package failure

import (
	"cmp"
	"encoding/base64"
	"unicode/utf8"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// knative reads what Knative Eventing adds to an event when it gives it to a dead-letter sink: the
// address of the subscriber, the status of its response, and the response itself, sometimes in
// base64. They are attributes of the CloudEvent, so their headers may have its prefixes.
func (r *reading) knative() (f deadletter.Failure, found bool) {
	attribute := func(name string) part {
		for _, prefix := range []string{"", "ce", "cloudevents"} {
			if p := r.plain(prefix + name); p.value != nil {
				return p
			}
		}
		return part{}
	}
	code, data, dest := attribute("knativeerrorcode"), attribute("knativeerrordata"), attribute("knativeerrordest")
	if cmp.Or(code.text(), data.text()) == "" {
		return f, false
	}
	if out, err := base64.StdEncoding.DecodeString(data.text()); err == nil && len(out) >= 6 && utf8.Valid(out) {
		data.value = out
	}
	if code.text() != "" {
		code.value = "HTTP " + code.text()
	}
	r.setError(&f, code, data, part{})
	f.Service = r.unmasked(dest)
	return f, true
}
