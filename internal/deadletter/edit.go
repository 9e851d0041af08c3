package deadletter

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// PropertyEdit contains a person's changes to the properties of a letter that is to be sent again.
type PropertyEdit struct {
	Properties map[string]string // new values by the names of the API, e.g. "content_type"; "" removes a property
	Headers    map[string]any    // new values by the names of the headers; RemoveHeader removes a header
	// the edited properties are those of a revision, so their expiration was chosen by a person and
	// is kept
	Revised bool
}

// RemoveHeader is the value that a PropertyEdit contains for a header that is to be removed.
var RemoveHeader = removed{}

type removed struct{}

// FieldError says why a field of a request was rejected.
type FieldError struct {
	Field string `json:"field"` // a property, a header or a member
	Why   string `json:"why"`
}

// Mistake is a mistake in a text, such as the configuration.
type Mistake struct {
	Line   int    `json:"line,omitzero"`   // counted from 1; missing = the mistake is at no position in the text
	Column int    `json:"column,omitzero"` // in characters, counted from 1
	Text   string `json:"text"`
}

// FieldErrors is an error that contains all rejected fields of a request. It wraps ErrInvalid.
type FieldErrors []FieldError

func (e FieldErrors) Error() string {
	list := make([]string, len(e))
	for i, f := range e {
		list[i] = f.Field + ": " + f.Why
	}
	return strings.Join(list, "; ")
}

// Unwrap returns ErrInvalid.
func (e FieldErrors) Unwrap() error { return ErrInvalid }

const maxPriority = 255

// maxExpiration is the largest expiration in milliseconds that brokers accept, which is ten years
// (3.10.8, 4.0.5). If a message has a larger one, the broker closes the channel.
const maxExpiration = 315_360_000_000

// Edit returns the properties of a new revision, and the names of the fields that differ. The new
// properties are those of p that may be sent again, with the changes of e. An edit cannot set three
// kinds of properties: those that belong to the broker, those that would send copies to other
// queues, and those that make the broker close the publisher's channel. An edit can set an
// expiration, because a person chose it. Errors are FieldErrors.
func (p Properties) Edit(e PropertyEdit) (Properties, []string, error) {
	clean := Sanitise
	if e.Revised {
		clean = Resent
	}
	q, _ := clean(p)
	var refused FieldErrors
	var changed []string
	short := map[string]*string{}
	for _, s := range q.ShortStrings() {
		short[s.Name] = s.Value
	}
	for name, value := range e.Properties {
		refuse := func(why string) { refused = append(refused, FieldError{name, why}) }
		field, ok := short[name]
		switch {
		case name == "priority":
			n, err := strconv.Atoi(value)
			if value != "" && (err != nil || n < 0 || n > maxPriority) {
				refuse("a number from 0 to 255")
			} else if uint8(n) != q.Priority {
				q.Priority = uint8(n)
				changed = append(changed, name)
			}
			continue
		case name == "user_id":
			refuse("the broker accepts only the publisher's own user, so it cannot be set")
			continue
		case !ok:
			refuse("there is no such property that can be edited")
			continue
		case len(value) > maxKey:
			refuse("longer than 255 bytes")
			continue
		case name == "expiration" && strings.Trim(value, "0123456789") != "":
			refuse("milliseconds, digits only")
			continue
		case name == "expiration" && value != "" && tooLate(value):
			refuse("at most 315360000000 milliseconds, which are ten years: brokers refuse more")
			continue
		case name == "reply_to" && strings.HasPrefix(value, "amq.rabbitmq.reply-to"):
			refuse("a direct reply-to address ends with the connection that asked")
			continue
		}
		if value != *field { // the received expiration was removed, so the same value counts as a change
			changed = append(changed, name)
		}
		*field = value
	}
	for name, value := range e.Headers {
		if why := strippedHeader(name); why != "" {
			refused = append(refused, FieldError{"header " + Visible(name), why + ", so it cannot be set"})
			continue
		}
		if _, is := value.(removed); is {
			if _, had := q.Headers[name]; had {
				changed = append(changed, "header "+Visible(name))
			}
			delete(q.Headers, name)
			continue
		}
		if had, ok := q.Headers[name]; !ok || !sameValue(had, value) {
			changed = append(changed, "header "+Visible(name))
		}
		q.Headers[name] = value
	}
	if err := Publishable(q); err != nil && len(refused) == 0 {
		refused = append(refused, FieldError{"headers", err.Error()})
	}
	if len(refused) > 0 {
		slices.SortFunc(refused, func(a, b FieldError) int { return strings.Compare(a.Field, b.Field) })
		return p, nil, refused
	}
	slices.Sort(changed)
	return q, changed, nil
}

func tooLate(expiration string) bool {
	n, err := strconv.ParseInt(expiration, 10, 64)
	return err != nil || n > maxExpiration
}

// sameValue reports whether two header values have the same encoding.
func sameValue(a, b any) bool {
	x, err := AppendTable(nil, Table{"": a})
	y, other := AppendTable(nil, Table{"": b})
	return err == nil && other == nil && string(x) == string(y)
}

// EditableHeaders returns the names of the headers that an edit can change, sorted.
func (p Properties) EditableHeaders() []string {
	return slices.DeleteFunc(
		slices.Sorted(maps.Keys(p.Headers)), func(name string) bool { return strippedHeader(name) != "" },
	)
}

// Resent returns the properties with which dlo publishes a revision. It also returns the
// differences between them and the properties p. It makes the same changes as Sanitise, but keeps
// the expiration, because a person chose it.
func Resent(p Properties) (Properties, []Change) {
	q, changes := Sanitise(p)
	q.Expiration = p.Expiration
	return q, slices.DeleteFunc(changes, func(c Change) bool { return c.Field == "expiration" })
}

// Edited is a letter that an operation edits. It contains the new revision, or the reason why there
// is none.
type Edited struct {
	Revision
	Refusal string
	AsOf    time.Time // time of the last change to the letter, when the letter was read
}
