package failure

import (
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// nameko reads Nameko's call stack. It is a list of texts of the form service.method.id, and the
// newest is last. Nameko acknowledges messages that fail, so it never reports an error.
func (r *reading) nameko() (f deadletter.Failure, found bool) {
	const header = "nameko.call_id_stack"
	list, _ := r.header(header).value.([]any)
	if len(list) == 0 {
		return f, false
	}
	call, _ := list[len(list)-1].(string)
	parts := strings.SplitN(validName(call), ".", 3)
	if len(parts) < 3 {
		return f, false
	}
	said := func(text string) string { return r.unmasked(part{[]string{header}, text}) }
	f.Service, f.MessageType = said(parts[0]), said(parts[0]+"."+parts[1])
	return f, f.Service != ""
}
