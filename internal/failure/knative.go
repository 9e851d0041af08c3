package failure

import (
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
			if header, ok := r.plain[prefix+name]; ok {
				return r.header(header)
			}
		}
		return part{}
	}
	code, data, dest := attribute("knativeerrorcode"), attribute("knativeerrordata"), attribute("knativeerrordest")
	if code.text == "" && data.text == "" {
		return f, false
	}
	if out, err := base64.StdEncoding.DecodeString(data.text); err == nil && len(out) >= 6 && utf8.Valid(out) {
		data.text = string(out)
	}
	if code.text != "" {
		code.text = "HTTP " + code.text
	}
	r.setError(&f, code, data, part{})
	f.Service = r.unmasked(dest.header, dest.text)
	return f, true
}
