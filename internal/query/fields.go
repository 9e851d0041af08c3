package query

import (
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Field is the name of a property that terms can query.
type Field string

const (
	State         Field = "state"
	Queue         Field = "queue"
	VHost         Field = "vhost"
	Broker        Field = "broker"
	Reason        Field = "reason"
	Type          Field = "type"
	ErrorText     Field = "error" // not Error, which is the name of a type
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
	Header        Field = "header" // with a Name
	Body          Field = "body"   // with a Name
	Attempts      Field = "attempts"
	Size          Field = "size"
	Age           Field = "age"
	Since         Field = "since"
	Before        Field = "before"
	Op            Field = "op"
	Read          Field = "read"
	Doubt         Field = "doubt"
	Sort          Field = "sort"  // sets the order of a list; selects nothing
	Words         Field = "words" // free text; written without a field name

	// These fields are for queries of the audit, not of letters.
	Who    Field = "who"
	Action Field = "action"
	Target Field = "target"
	Via    Field = "via"
	Until  Field = "until"
)

// Fields lists the fields that have a name, in an order suitable for help.
var Fields = []Field{
	State, Queue, Type, Reason, ErrorText, Group, Severity, Status, Owner, Rule, Attempts, Age, Since, Before, Exchange, Key, App, Header, Body, MessageID, CorrelationID, ID, Size, VHost,
	Broker, Op, Read, Doubt, Sort,
}

// ActFields lists the fields for queries of the audit, in an order suitable for help.
var ActFields = []Field{Who, Action, Target, Via, Since, Until}

// NotRecorded is the value of `via:` for entries written before the way was recorded.
const NotRecorded = "not-recorded"

// NoType is the value of `type:` for letters without a type.
const NoType = "none"

// prefixes lists the fields whose index finds only whole values and prefixes.
var prefixes = []Field{Exchange, Key, App, MessageID, CorrelationID, Rule, Header, Body, Read}

// enumerations lists the fields that have a fixed set of values.
var enumerations = map[Field]struct {
	values []string
	none   string // "there is no state"
}{
	State:    {texts(deadletter.States), "there is no state"},
	Severity: {texts([]deadletter.Severity{deadletter.SeverityPage, deadletter.SeverityNotify, deadletter.SeverityDigest}), "there is no severity"},
	Status:   {append(texts(deadletter.GroupStatuses), deadletter.StatusFailing, deadletter.StatusQuiet), "a group has no status"},
	Read:     {texts(deadletter.Readings), "read has no value"},
	Doubt:    {texts(deadletter.Doubts), "doubt has no value"},
	Sort:     {texts(deadletter.Orders), "letters are not sorted by"},
	Action:   {texts(deadletter.Acts), "there is no action"},
	Via:      {append(texts(deadletter.Ways), NotRecorded), "via has no value"},
}

// texts returns names in the form in which queries write them, without spaces.
func texts[T ~string](names []T) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = strings.ReplaceAll(string(n), " ", "-")
	}
	return out
}

// named returns the field with a name, ignoring case.
func named(name string, fields []Field) (Field, bool) {
	f := Field(strings.ToLower(name))
	return f, slices.Contains(fields, f)
}

// Indexed reports whether a field is searched through the index of words, which is filled in the
// background.
func (f Field) Indexed() bool { return f == Words || slices.Contains(prefixes, f) }
