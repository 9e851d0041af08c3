package query

import (
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Field is the name of a property that a term of a query compares.
type Field string

const (
	State         Field = "state"
	Queue         Field = "queue"
	VHost         Field = "vhost"
	Broker        Field = "broker"
	Reason        Field = "reason"
	Type          Field = "type"
	ErrorText     Field = "error" // not named Error, because that is the name of a type
	Group         Field = "group"
	Rule          Field = "rule"
	Severity      Field = "severity"
	Owner         Field = "owner"
	Status        Field = "status"
	Exchange      Field = "exchange"
	Key           Field = "key"
	App           Field = "app"
	ID            Field = "id"
	MessageID     Field = "message_id"
	CorrelationID Field = "correlation_id"
	Header        Field = "header" // the term also has a Name
	Body          Field = "body"   // the term also has a Name
	Attempts      Field = "attempts"
	Size          Field = "size"
	Age           Field = "age"
	Since         Field = "since"
	Before        Field = "before"
	Op            Field = "op"
	Read          Field = "read"
	Doubt         Field = "doubt"
	Sort          Field = "sort"  // sets the order of a list, but selects no letters
	Words         Field = "words" // free text, which is written without the name of a field

	// These fields are only for queries of the audit.
	Who    Field = "who"
	Action Field = "action"
	Target Field = "target"
	Via    Field = "via"
	Until  Field = "until"
)

// Fields lists the fields for queries of letters, except free text. The order is suitable for a
// help text.
var Fields = []Field{
	State, Queue, Type, Reason, ErrorText, Group, Severity, Status, Owner, Rule, Attempts, Age, Since, Before, Exchange,
	Key, App, Header, Body, MessageID, CorrelationID, ID, Size, VHost,
	Broker, Op, Read, Doubt, Sort,
}

// ActFields lists the fields for queries of the audit, except free text. The order is suitable for
// a help text.
var ActFields = []Field{Who, Action, Target, Via, Since, Until}

// NotRecorded is the value of `via:` for an act if it is unknown whether somebody used a page, the
// API or the command line. Older versions did not record this.
const NotRecorded = "not-recorded"

// NoType is the value of `type:` for letters without a type.
const NoType = "none"

// prefixes is the list of the fields for which the search index finds only whole values and the
// beginnings of values.
var prefixes = []Field{Exchange, Key, App, MessageID, CorrelationID, Rule, Header, Body, Read}

// enumerations contains the fields that have a fixed set of values.
var enumerations = map[Field]struct {
	values []string
	none   string // beginning of the error for another value, e.g. "there is no state"
}{
	State: {texts(deadletter.States), "there is no state"},
	Severity: {
		texts([]deadletter.Severity{deadletter.SeverityPage, deadletter.SeverityNotify, deadletter.SeverityDigest}),
		"there is no severity",
	},
	Status: {
		append(texts(deadletter.GroupStatuses), deadletter.StatusFailing, deadletter.StatusNotFailing),
		"a group has no status",
	},
	Read:   {texts(deadletter.Readings), "read has no value"},
	Doubt:  {texts(deadletter.Doubts), "doubt has no value"},
	Sort:   {texts(deadletter.Orders), "letters are not sorted by"},
	Action: {texts(deadletter.Acts), "there is no action"},
	Via:    {append(texts(deadletter.Ways), NotRecorded), "via has no value"},
}

// texts returns names in the form in which queries write them. A minus replaces each space.
func texts[T ~string](names []T) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = strings.ReplaceAll(string(n), " ", "-")
	}
	return out
}

// fieldNamed returns the field with the given name. Upper and lower case make no difference.
func fieldNamed(name string, fields []Field) (Field, bool) {
	f := Field(strings.ToLower(name))
	return f, slices.Contains(fields, f)
}

// Indexed reports whether a field is looked up in the search index, which is filled in the
// background.
func (f Field) Indexed() bool { return f == Words || slices.Contains(prefixes, f) }
