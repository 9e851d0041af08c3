package payload

import (
	"bytes"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// An envelope is a JSON object with the message in one of its members. It is taken off when the
// letter, or the envelope around it, says that it is there, and when it really is one: every member
// that it must have is there once and has the right JSON type. Otherwise the body stays what it
// was.

// claim is an envelope that is said to be there.
type claim struct {
	name string // as layers have it; "" when none is claimed
	by   string // "named by the content type"
	read func(*reading, object) (content, string)
}

// content is what an envelope holds.
type content struct {
	member
	data    []byte      // what comes out
	layer   Layer       // Detail, Quoted and Base64
	hints   Hints       // what the envelope says of the data; queue and key stay those of the letter
	inside  []namedType // types that only the envelope names
	message string      // name of the type for people, masked
	note    string      // what else in the envelope people need, masked
	failure deadletter.Failure
}

// envelope says which envelope the body as it is now is said to have.
func (r *reading) envelope() claim {
	switch {
	case r.media == "application/cloudevents+json":
		return claim{"CloudEvents", "named by the content type", (*reading).cloudEvent}
	case r.media == "application/vnd.masstransit+json":
		return claim{"MassTransit", "named by the content type", (*reading).massTransit}
	case strings.Contains(r.hints.Type, easyNetQError):
		return claim{"EasyNetQ error", "named by the type property", (*reading).easyNetQ}
	}
	return claim{}
}

// unfold takes a claimed envelope off a body that is JSON.
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
		doc.Named = in.message
	}
	if in.failure.MessageType == "" {
		in.failure.MessageType = in.message
	}
	if doc.Failure.By == "" { // of the outermost envelope that says something
		doc.Failure = in.failure
	}
	if in.note != "" {
		doc.note(in.note)
	}
	r.heed(in.hints, in.inside...)
	return true
}

// maskEnvelope finds out whether something in the envelope is masked, the data left out: that is
// asked about where it is shown. The envelope is not shown, but the bytes as they were received
// hold it, so they have to stay away. What is hidden of the data by its path in the envelope stays
// hidden when it is taken out.
func (r *reading) maskEnvelope(o object, data member) bool {
	body := o.body
	root := place{spot: r.rootSpot()}
	root.json()
	if root.idle() {
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
	p := &jsonPrinter{jsonReader: jsonReader{src: src}, root: root, budget: r.budget, discard: true, hide: func(from, to int) {
		if to+base <= data.from || from+base >= data.to {
			r.masked = true
		}
	}}
	if p.print(); p.err != nil {
		r.doc.tooLarge(p.err.Error())
		return false
	}
	return true
}

// say is a text of an envelope as steps and notes may have it: masked, visible and at most 100
// bytes.
func (r *reading) say(path, text string) string {
	text, _ = r.spotOf(path).apply(text)
	text, _ = cut(visible(text, ""), 100)
	return text
}

// attribute is a text of an envelope that says what the data is; "" when it is masked, since what
// is chosen by it would show it.
func (r *reading) attribute(path, text string) string {
	if _, masked := r.spotOf(path).apply(text); masked {
		return ""
	}
	return text
}

// spotOf is the spot of a member of an envelope, by its path.
func (r *reading) spotOf(path string) spot {
	at := place{spot: r.rootSpot()}
	at.json()
	for _, name := range strings.Split(path, ".") {
		at.spot = at.spot.member(name)
	}
	return at.spot
}

const (
	maxMembers = 1000 // of an envelope; they have ten or so
	maxName    = 64   // bytes of the name of a member, quotes and escapes included; none that is asked for is longer
)

// object is the outermost object of a JSON body.
type object struct {
	body    []byte
	members map[string]member
}

// member is the range of a value in the body.
type member struct{ from, to int }

// readObject returns the members of valid JSON, or why there are none.
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

// value returns the JSON of a member, nil when there is none.
func (o object) value(name string) []byte {
	m, ok := o.members[name]
	if !ok {
		return nil
	}
	return o.body[m.from:m.to]
}

const maxAttribute = 4 << 10 // of the texts of an envelope that are looked at

// text returns a string member of at most 4 KiB; "" when there is none.
func (o object) text(name string) string {
	return shortText(o.value(name))
}

func shortText(token []byte) string {
	if len(token) < 2 || token[0] != '"' || len(token) > maxAttribute {
		return ""
	}
	return unquoteJSON(token)
}

// need says which of the named members is missing, or does not begin with kind: '"' for a string,
// '{' for an object, '[' for a list.
func (o object) need(kind byte, names ...string) string {
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

// textOf returns the text of a string member as bytes, of the body itself where it has no escapes;
// false when the budget does not allow it, and then the document says so.
func (r *reading) textOf(token []byte) ([]byte, bool) {
	inner := token[1 : len(token)-1 : len(token)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner, true
	}
	if err := r.budget.TakeMemory(4 * int64(len(token))); err != nil { // three copies in encoding/json, and one
		r.doc.tooLarge(err.Error())
		return nil, false
	}
	return []byte(unquoteJSON(token)), true
}
