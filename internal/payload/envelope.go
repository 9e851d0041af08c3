package payload

import (
	"bytes"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// An envelope is a JSON object that contains the message in one of its members. dlo removes an
// envelope if the letter or the enclosing envelope declares it, and if it is valid. In a valid
// envelope, every required member occurs exactly once and has the right JSON type. An envelope that
// is not declared or not valid stays in the body.

// claim says that the current body should be an envelope of a certain kind, because the letter or
// the enclosing envelope declares it.
type claim struct {
	name string // the name of the layer; "" = no envelope is declared
	by   string // where it is declared: "named by the content type"
	read func(*reading, object) (content, string)
}

// content is the content of an envelope.
type content struct {
	member
	data    []byte      // the data in the envelope
	layer   Layer       // only Detail, Quoted and Base64 are set
	hints   Hints       // what the envelope says about the data; queue and key stay those of the letter
	inside  []namedType // types that only the envelope names
	message string      // name of the type as people see it, masked
	note    string      // other parts of the envelope that people need to see, masked
	failure deadletter.Failure
}

// envelope returns the envelope that the letter or the enclosing envelope declares for the current
// body.
func (r *reading) envelope() claim {
	switch {
	case r.media == "application/cloudevents+json":
		return claim{"CloudEvents", "named by the content type", (*reading).cloudEvent}
	case r.media == "application/vnd.masstransit+json":
		return claim{"MassTransit", "named by the content type", (*reading).massTransit}
	case strings.Contains(r.hints.Type, easyNetQError):
		return claim{"EasyNetQ error", "named by the type property", (*reading).easyNetQ}
	case r.isEvent():
		return claim{"CloudEvents", "by its members", (*reading).cloudEvent}
	}
	return claim{}
}

// unfold removes a declared envelope from a body that is JSON.
func (r *reading) unfold(c claim) bool {
	doc := r.doc
	body := doc.Body
	o, why := readObject(body)
	var in content
	if why == "" {
		in, why = c.read(r, o)
	}
	if doc.TooLarge {
		return false
	}
	if why != "" {
		doc.step(false, c.name+", "+c.by+": "+why)
		return false
	}
	if !r.maskEnvelope(o, in.member) {
		return false
	}
	from, to := in.from, in.to
	if in.layer.Quoted {
		from, to = from+1, to-1
	}
	in.layer.Name, in.layer.Before, in.layer.After = c.name, body[:from], body[to:]
	if !r.layer(in.layer, in.data, "") {
		return false
	}
	in.hints.Queue, in.hints.Key = r.hints.Queue, r.hints.Key
	if in.message != "" {
		doc.named = in.message
	}
	if in.failure.MessageType == "" {
		in.failure.MessageType = in.message
	}
	if doc.Failure.By == "" { // the outermost envelope that reports a failure counts
		doc.Failure = in.failure
	}
	if in.note != "" {
		doc.note(in.note)
	}
	r.useHints(in.hints, in.inside...)
	return true
}

// maskEnvelope finds out whether anything is masked in the envelope outside the data. The data
// itself is checked where it is shown. The envelope is not shown, but the bytes as received contain
// it. If a part of the envelope is masked, these bytes must stay hidden. If a rule masks the path
// of the data in the envelope, the data stays hidden after it is taken out.
func (r *reading) maskEnvelope(o object, data member) bool {
	body := o.body
	root := place{spot: r.rootSpot()}
	root.json()
	if root.hidesNothing() {
		return true
	}
	for name, m := range o.members {
		if m == data {
			r.outer = root.spot.member(name)
		}
	}
	if err := r.budget.TakeMemory(jsonMemory(nil, true) + 2*int64(len(body))); err != nil {
		r.doc.tooLarge(err.Error())
		return false
	}
	src := withoutBOM(body)
	base := len(body) - len(src)
	p := &jsonPrinter{
		jsonReader: jsonReader{src: src},
		root:       root,
		budget:     r.budget,
		discard:    true,
		hide: func(from, to int) {
			if to+base <= data.from || from+base >= data.to {
				r.masked = true
			}
		},
	}
	if p.print(); p.err != nil {
		r.doc.tooLarge(p.err.Error())
		return false
	}
	return true
}

// safeText returns a text from an envelope for steps and notes. The text is masked, safe to print,
// and has at most 100 bytes.
func (r *reading) safeText(path, text string) string {
	text, _ = r.spotOf(path).apply(text)
	text, _ = cut(visible(text, ""), 100)
	return text
}

// attribute returns a text of an envelope, such as a content type, that describes the data in the
// envelope. If this text is masked, attribute returns "", because the way in which dlo decoded the
// data would reveal the text.
func (r *reading) attribute(path, text string) string {
	if _, masked := r.spotOf(path).apply(text); masked {
		return ""
	}
	return text
}

// spotOf returns the spot of a member of the current envelope. A spot is a position in the body,
// with the masks that apply there. The parameter "path" is the path of the member.
func (r *reading) spotOf(path string) spot {
	at := place{spot: r.rootSpot()}
	at.json()
	for _, name := range strings.Split(path, ".") {
		at.spot = at.spot.member(name)
	}
	return at.spot
}

const (
	maxMembers = 1000 // maximum number of members of an envelope; usually there are about ten
	// maximum number of bytes of a name, with quotes and escapes; all names that dlo looks up are
	// shorter
	maxName = 64
)

// object is the top-level object of a JSON body.
type object struct {
	body    []byte
	members map[string]member
}

// member is the range of bytes that the value of a member has in the body.
type member struct{ from, to int }

// readObject returns the members of a valid JSON object. If it cannot read them, it returns the
// reason.
func readObject(body []byte) (object, string) {
	o := object{body: body, members: make(map[string]member)}
	src := withoutBOM(body)
	base := len(body) - len(src)
	r := &jsonReader{src: src}
	if r.peek() != '{' {
		return o, "it is not a JSON object"
	}
	r.at++
	total := 0
	for c := r.peek(); c != '}' && c != 0; c = r.peek() {
		token := r.token()
		if r.peek() == ':' {
			r.at++
		}
		r.space()
		from := r.at
		r.skip()
		if total++; total > maxMembers {
			return o, "it has more than " + deadletter.Count(maxMembers) + " members"
		}
		if len(token) <= maxName {
			name := unquoteJSON(token)
			if _, twice := o.members[name]; twice {
				return o, "a member is in it twice"
			}
			o.members[name] = member{from + base, r.at + base}
		}
		if r.peek() == ',' {
			r.at++
		}
	}
	return o, ""
}

// value returns the JSON of a member. It returns nil if there is no such member.
func (o object) value(name string) []byte {
	m, ok := o.members[name]
	if !ok {
		return nil
	}
	return o.body[m.from:m.to]
}

const maxAttribute = 4 << 10 // maximum number of bytes of a text of an envelope that is examined

// text returns a string member that has at most 4 KiB. For any other member, it returns "".
func (o object) text(name string) string {
	return shortText(o.value(name))
}

func shortText(token []byte) string {
	if len(token) < 2 || token[0] != '"' || len(token) > maxAttribute {
		return ""
	}
	return unquoteJSON(token)
}

// firstInvalid returns the first of the named members that is not valid. A member is not valid if
// it is missing, or if it does not begin with the byte "kind": '"' for a string, '{' for an object,
// '[' for a list. If all members are valid, firstInvalid returns "".
func (o object) firstInvalid(kind byte, names ...string) string {
	for _, n := range names {
		v := o.value(n)
		switch {
		case v == nil:
			return n + " is missing"
		case v[0] == kind:
		case kind == '"':
			return n + " is not a string"
		case kind == '{':
			return n + " is not an object"
		default:
			return n + " is not a list"
		}
	}
	return ""
}

// textOf returns the text of a JSON string as bytes. If the string has no escapes, the text is a
// slice of the body. If the budget is not enough, textOf returns false and records the reason in
// the document.
func (r *reading) textOf(token []byte) ([]byte, bool) {
	inner := token[1 : len(token)-1 : len(token)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner, true
	}
	// encoding/json makes three copies, and this function makes one
	if err := r.budget.TakeMemory(4 * int64(len(token))); err != nil {
		r.doc.tooLarge(err.Error())
		return nil, false
	}
	return []byte(unquoteJSON(token)), true
}
