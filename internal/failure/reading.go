package failure

import (
	"slices"
	"strconv"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// reading is a message whose headers are being read, and the place from which it came.
type reading struct {
	deadletter.Properties
	inbox string
	route deadletter.Route
	own   deadletter.FailureHeaders
	mask  func(name, text string) (string, bool)
	named []named // the headers with a value, by name
}

// named is a header with the forms of its name.
type named struct {
	part
	lower, plain string
}

// byName returns the headers with a value, sorted by name. If several names have the same form, the
// first one counts.
func byName(headers deadletter.Table) []named {
	list := make([]named, 0, len(headers))
	for name, value := range headers {
		if value != nil {
			lower := strings.ToLower(name)
			list = append(list, named{part{[]string{name}, value}, lower, plainName(lower)})
		}
	}
	slices.SortFunc(list, func(a, b named) int { return strings.Compare(a.names[0], b.names[0]) })
	return list
}

// header returns a header, whatever the case of its name is. A header without a value counts as
// missing.
func (r *reading) header(name string) part {
	if value := r.Headers[name]; value != nil {
		return part{[]string{name}, value}
	}
	for i := range r.named {
		if n := &r.named[i]; len(n.lower) == len(name) && strings.EqualFold(n.lower, name) {
			return n.part
		}
	}
	return part{}
}

// plain returns the header whose name has the given plain form.
func (r *reading) plain(name string) part {
	for i := range r.named {
		if r.named[i].plain == name {
			return r.named[i].part
		}
	}
	return part{}
}

// hasHeader reports whether a header exists. The value of the header may be of any type.
func (r *reading) hasHeader(name string) bool { return r.header(name).value != nil }

// text returns the value of a header, unmasked, if the value is a text. Use it only for places and
// times.
func (r *reading) text(name string) string { return r.header(name).text() }

// place returns the value of a header that names a queue, an exchange or a routing key. It returns
// "" if the value cannot be such a name. In AMQP 0-9-1, these names have at most 255 bytes.
func (r *reading) place(name string) string { return validName(r.text(name)) }

func validName(name string) string {
	if len(name) > 255 {
		return ""
	}
	return name
}

// label returns the value of a header as a short name to be shown, such as a type. It returns "" if
// a mask hides any part of it.
func (r *reading) label(name string) string { return r.unmasked(r.header(name)) }

// typeProperty does the same as label for the property "type".
func (r *reading) typeProperty() string { return r.unmasked(part{[]string{"type"}, r.Type}) }

// unmasked does the same as label for any part of the headers.
func (r *reading) unmasked(p part) string {
	shown, masked := r.maskPart(p)
	if masked {
		return ""
	}
	return deadletter.Cut(shown, maxName)
}

// number returns the value of a header that contains a count. The count may be written as text. If
// the value is not a count, number returns 0.
func (r *reading) number(name string) int { return countOf(r.header(name).value) }

func countOf(v any) int {
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
	case float64: // inside of JSON
		n = int64(v)
	case string:
		n, _ = strconv.ParseInt(strings.TrimSpace(v[:min(len(v), 32)]), 10, 64)
	}
	if n < 0 || n > 1_000_000 { // no consumer has tried that often
		return 0
	}
	return int(n)
}

func (r *reading) maskPart(p part) (text string, masked bool) {
	if text = p.text(); text == "" {
		return "", false
	}
	for _, name := range p.names {
		if shown, masked := r.mask(name, text); masked {
			return shown, true
		}
	}
	return text, false
}

// setError sets the type, the message and the stack of f. A stack often repeats the type and the
// message. Therefore, if a mask hides the type or the message, only the frames of the stack are
// kept. If the delivery has neither a type nor a message, setError reads them from the head of the
// stack.
func (r *reading) setError(f *deadletter.Failure, typ, message, stack part) {
	var hidden, hiddenType bool
	f.Type, hiddenType = r.maskPart(typ)
	f.Message, hidden = r.maskPart(message)
	f.Stack, _ = r.maskPart(stack)
	switch {
	case hidden || hiddenType:
		f.Stack = framesOnly(f.Stack, typ.text(), message.text())
	case f.Type == "" && f.Message == "":
		f.Type, f.Message = head(f.Stack)
	}
	cutError(f)
}

// cutError cuts the type, the message and the stack of f to the size that is stored.
func cutError(f *deadletter.Failure) {
	f.Type, f.Message = deadletter.Cut(f.Type, maxName), deadletter.Cut(f.Message, maxMessage)
	f.Stack = deadletter.Cut(f.Stack, maxStack)
}
