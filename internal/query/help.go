package query

import (
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// FieldHelp is the help about a field in the query box and in the shell completion.
type FieldHelp struct {
	Field   Field
	Example string // complete term
	Help    string // one sentence, without the full stop at its end
	// suggested values: all values of an enumeration, or common values of another field; nil =
	// there are none
	Values []string
}

// Help returns one entry for each field in Fields, in the same order. It does not suggest values
// that occur in letters, such as queues, because only the store knows these.
func Help() []FieldHelp {
	durations := []string{"15m", "1h", "24h", "7d", "today", "yesterday"}
	ages := []string{">1h", ">24h", ">7d", "<1h"}
	about := map[Field]FieldHelp{
		State: {Example: "state:dead,held", Help: "the state of the letter"},
		Queue: {Example: "queue:billing.*", Help: "the queue it died in"},
		Type: {
			Example: "type:acme.notify.*",
			Help:    "full name of the protobuf message, or the type that its framework names; none for letters without a type",
			Values:  []string{NoType},
		},
		Reason: {
			Example: "reason:rejected",
			Help:    "why RabbitMQ dead-lettered it",
			Values:  []string{"rejected", "expired", "maxlen", "delivery_limit"},
		},
		ErrorText: {
			Example: `error:"*unknown field*"`,
			Help:    "the whole error text of the consumer; to find words of it, search for them as free text",
		},
		Group:    {Example: "group:G-418", Help: "the group of letters that fail for one cause"},
		Severity: {Example: "severity:page", Help: "how urgently it needs people"},
		Status: {
			Example: "status:new,regressed",
			Help:    "the status of its group; failing: its letters die now, not-failing: no letter of it dies now",
		},
		Owner: {Example: "owner:alice", Help: `who its group is assigned to; "" for nobody`},
		Rule:  {Example: "rule:billing", Help: "the rule that decided on it"},
		Attempts: {
			Example: "attempts:>=3",
			Help:    "how often it was sent back",
			Values:  []string{"0", ">=1", ">=3", ">=10"},
		},
		Age: {Example: "age:>2h", Help: "how long ago it was received", Values: ages},
		Since: {
			Example: "since:2026-11-20T14:00Z",
			Help:    "received then or later; a duration is that long ago",
			Values:  durations,
		},
		Before: {Example: "before:3d", Help: "received earlier than then", Values: durations},
		Exchange: {
			Example: "exchange:shop.events",
			Help:    `the exchange it was published to; "" is the default exchange`,
		},
		Key:    {Example: "key:customer.*", Help: "the routing key it was published with"},
		App:    {Example: "app:checkout", Help: "the property app-id"},
		Header: {Example: "header.x-tenant:48213", Help: "a header by its name; * means that the letter has it"},
		Body: {
			Example: "body.customer.id:48213",
			Help:    "a field of the decoded body that search.fields lists; * means that the body has it",
		},
		MessageID:     {Example: "message_id:ord-7*", Help: "the property message-id"},
		CorrelationID: {Example: "correlation_id:c-42", Help: "the property correlation-id"},
		ID:            {Example: "id:a6b18c20", Help: "the letter: its whole id or the 8 digits that pages show"},
		Size:          {Example: "size:>=64KiB", Help: "size of the body", Values: []string{">=64KiB", ">=1MiB", "0"}},
		VHost:         {Example: "vhost:/", Help: "the vhost of the queue it died in"},
		Broker:        {Example: "broker:main", Help: "the broker of the queue it died in"},
		Read:          {Example: "read:unknown,ambiguous", Help: "how its body was read"},
		Doubt: {
			Example: "doubt:restart",
			Help:    "held because it may be a copy of another letter, and nobody has decided yet",
		},
		Sort: {
			Example: "sort:oldest",
			Help:    "the order of a list, which selects nothing: received and died begin with the newest, attempts and size with the most",
		},
		Op: {
			Example: "op:O-77/came-back",
			Help: "letters of an operation, of one result behind a slash: " +
				strings.Join(texts(deadletter.Results), ", "),
		},
	}
	return help(Fields, about)
}

// ActHelp returns one entry for each field in ActFields, in the same order. These are the fields by
// which the audit can be searched.
func ActHelp() []FieldHelp {
	durations := []string{"1h", "24h", "7d", "30d", "today", "yesterday"}
	return help(ActFields, map[Field]FieldHelp{
		Who:    {Example: "who:lena", Help: "who did it; dlo for what it did automatically"},
		Action: {Example: "action:resolved", Help: "what was done"},
		Target: {
			Example: "target:G-418",
			Help:    "what it was done to: a group, an operation, a letter, the name of a queue, a set, a view or a deploy; or a kind of these, e.g. group",
		},
		Via:   {Example: "via:cli", Help: "the way it was asked for; dlo where nobody asked"},
		Since: {Example: "since:24h", Help: "done then or later; a duration is that long ago", Values: durations},
		Until: {Example: "until:2026-11-20", Help: "done before then; a date includes that day", Values: durations},
	})
}

func help(fields []Field, about map[Field]FieldHelp) []FieldHelp {
	out := make([]FieldHelp, len(fields))
	for i, f := range fields {
		h := about[f]
		h.Field = f
		if e, ok := enumerations[f]; ok {
			h.Values = slices.Clone(e.values)
		}
		out[i] = h
	}
	return out
}
