package failure

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// reading is a message whose headers are being read, and the place from which it came.
type reading struct {
	deadletter.Properties
	inbox string
	route deadletter.Route
	own   deadletter.FailureHeaders
	mask  func(name, text string) (string, bool)
	lower map[string]string // the names of the headers, by their form in lower case
	plain map[string]string // the names of the headers, by their plain form
}

// indexNames fills the maps of names. If several names have the same form, the first in the
// alphabet counts.
func (r *reading) indexNames() {
	r.lower, r.plain = make(map[string]string, len(r.Headers)), make(map[string]string, len(r.Headers))
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		if len(name) > 255 {
			continue
		}
		lower := strings.ToLower(name)
		for form, names := range map[string]map[string]string{lower: r.lower, plainName(lower): r.plain} {
			if _, ok := names[form]; !ok {
				names[form] = name
			}
		}
	}
}

// value returns the value of a header, whatever the case of its name is, and whether it exists.
func (r *reading) value(name string) (value any, ok bool) {
	if value, ok = r.Headers[name]; !ok {
		value, ok = r.Headers[r.lower[strings.ToLower(name)]]
	}
	return value, ok
}

// hasHeader reports whether a header exists. The value of the header may be of any type.
func (r *reading) hasHeader(name string) bool {
	_, ok := r.value(name)
	return ok
}

// text returns the value of a header, unmasked, if the value is a text. Use it only for places and
// times.
func (r *reading) text(name string) string {
	value, _ := r.value(name)
	return textOf(value)
}

// textOf returns a value if it is a text. Some clients send texts as bytes, which are accepted too.
func textOf(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case []byte:
		if utf8.Valid(v) {
			return string(v)
		}
	}
	return ""
}

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
func (r *reading) label(name string) string { return r.unmasked(name, r.text(name)) }

// unmasked returns a text from the given header as a short name to be shown. It returns "" if a
// mask hides any part of it.
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

// number returns the value of a header that contains a count. The count may be written as text. If
// the value is not a count, number returns 0.
func (r *reading) number(name string) int {
	value, _ := r.value(name)
	return countOf(value)
}

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

// part is a text to be shown, with the name of the header that contains it, and the names that lead
// to it inside the header. A mask of any of these names hides it.
type part struct {
	header, text string
	inside       []string
}

// header returns the whole text of a header, unmasked, together with the name of the header.
func (r *reading) header(name string) part { return part{header: name, text: r.text(name)} }

func (r *reading) maskPart(p part) (text string, masked bool) {
	if p.text == "" {
		return "", false
	}
	for _, name := range p.inside {
		if text, masked = r.mask(name, p.text); masked {
			return text, true
		}
	}
	return r.mask(p.header, p.text)
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
		f.Stack = framesOnly(f.Stack, typ.text, message.text)
	case f.Type == "" && f.Message == "":
		f.Type, f.Message = head(f.Stack)
	}
	f.Type, f.Message, f.Stack = deadletter.Cut(f.Type, maxName), deadletter.Cut(
		f.Message, maxMessage,
	), deadletter.Cut(f.Stack, maxStack)
}
