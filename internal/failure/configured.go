package failure

import (
	"cmp"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Mapped is the name of the convention for failures in headers that the configuration maps.
const Mapped = "mapped headers"

// configured reads the headers that the configuration maps to the parts of a failure. The parts of
// the error that it does not map are taken from the plain headers.
func (r *reading) configured() (f deadletter.Failure) {
	typ, message, stack := r.mapped(r.own.Type), r.mapped(r.own.Message), r.mapped(r.own.Stack)
	if cmp.Or(typ.text(), message.text(), stack.text()) != "" {
		f.By = Mapped
		r.setError(
			&f, typ.or(r.plainText(plainHeaders.types)), message.or(r.plainText(plainHeaders.messages)),
			stack.or(r.plainText(plainHeaders.stacks)),
		)
	}
	f.Attempts, f.Queue = countOf(r.mapped(r.own.Attempts).value), validName(r.mapped(r.own.Origin).text())
	return f
}

// mapped returns what is at the first path into the headers that leads to anything. The word
// "headers." may stand before the name of a header.
func (r *reading) mapped(paths []string) part {
	for _, path := range paths {
		if p := (part{value: r.Headers}).at(path, strings.TrimPrefix(path, "headers.")); p.value != nil {
			return p
		}
	}
	return part{}
}
