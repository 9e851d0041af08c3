package failure

import "github.com/deadletteroffice/dlo/internal/deadletter"

// Plain is the name of the convention for failures in headers that belong to no particular
// framework.
const Plain = "headers"

// plainHeaders lists the headers in which consumers describe errors, the most specific first.
var plainHeaders = struct{ messages, types []string }{
	messages: []string{
		"x-error-message", "x-exception-message", "x-error", "error-message", "exception-message", "error",
	},
	types: []string{
		"x-error-class", "x-error-type", "x-exception-type", "x-exception-class", "exception-type", "error-type",
	},
}

func (r *reading) plainFailure() (f deadletter.Failure, found bool) {
	message, typ := r.firstText(plainHeaders.messages), r.firstText(plainHeaders.types)
	if message.text == "" && typ.text == "" {
		return f, false
	}
	r.setError(&f, typ, message, part{})
	return f, true
}

// firstText looks at the given headers in order, and returns the text of the first one that has a
// text.
func (r *reading) firstText(names []string) part {
	for _, name := range names {
		if p := r.header(name); p.text != "" {
			return p
		}
	}
	return part{}
}
