package failure

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// reading is one arrival that is read.
type reading struct {
	deadletter.Properties
	inbox string
	route deadletter.Route
	mask  func(name, text string) (string, bool)
}

// has says whether a header is there, whatever it holds.
func (r *reading) has(name string) bool {
	_, ok := r.Headers[name]
	return ok
}

// text returns a header that is text, as it stands: for places and times only. Some clients write
// text as bytes.
func (r *reading) text(name string) string {
	switch v := r.Headers[name].(type) {
	case string:
		return v
	case []byte:
		if utf8.Valid(v) {
			return string(v)
		}
	}
	return ""
}

// place is a header that names a queue, an exchange or a routing key; "" when it could not be one.
// None in AMQP 0-9-1 has more than 255 bytes.
func (r *reading) place(name string) string { return short(r.text(name)) }

func short(name string) string {
	if len(name) > 255 {
		return ""
	}
	return name
}

// label is a header with a short name that people see, such as a type; "" when something in it is
// masked.
func (r *reading) label(name string) string { return r.unmasked(name, r.text(name)) }

// unmasked is a text that is in a header, as a short name that people see; "" when something in
// it is masked.
func (r *reading) unmasked(header, text string) string {
	if text == "" {
		return ""
	}
	shown, masked := r.mask(header, text)
	if masked {
		return ""
	}
	return deadletter.Cut(shown, maxName)
}

// number returns a header that is a count, also one that is written as text; 0 when it is none.
func (r *reading) number(name string) int { return count(r.Headers[name]) }

func count(v any) int {
	n := int64(0)
	switch v := v.(type) {
	case int8:
		n = int64(v)
	case uint8:
		n = int64(v)
	case int16:
		n = int64(v)
	case uint16:
		n = int64(v)
	case int32:
		n = int64(v)
	case uint32:
		n = int64(v)
	case int64:
		n = v
	case string:
		n, _ = strconv.ParseInt(strings.TrimSpace(v[:min(len(v), 32)]), 10, 64)
	}
	if n < 0 || n > 1_000_000 { // no consumer has tried so often
		return 0
	}
	return int(n)
}

// part is a text in a header, to be shown.
type part struct{ header, text string }

// header is all of a header.
func (r *reading) header(name string) part { return part{name, r.text(name)} }

func (r *reading) shown(p part) (text string, masked bool) {
	if p.text == "" {
		return "", false
	}
	return r.mask(p.header, p.text)
}

// fails fills in the error. The stack often repeats type and message, so where one of these is
// masked, of the stack only its frames are left. Where neither is said, the head of the stack says
// both.
func (r *reading) fails(f *deadletter.Failure, typ, message, stack part) {
	var hidden, hiddenType bool
	f.Type, hiddenType = r.shown(typ)
	f.Message, hidden = r.shown(message)
	f.Stack, _ = r.shown(stack)
	switch {
	case hidden || hiddenType:
		f.Stack = bare(f.Stack, typ.text, message.text)
	case f.Type == "" && f.Message == "":
		f.Type, f.Message = head(f.Stack)
	}
	f.Type, f.Message, f.Stack = deadletter.Cut(f.Type, maxName), deadletter.Cut(f.Message, maxMessage), deadletter.Cut(f.Stack, maxStack)
}
