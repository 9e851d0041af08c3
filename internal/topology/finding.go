package topology

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Kind is the kind of a finding, as one word. The words never change, because scripts and alerts
// rely on them.
type Kind string

// These are the kinds of findings. docs/topology.md describes each of them.
const (
	NoExchange      Kind = "no_exchange"      // the queue has no dead-letter exchange
	ExchangeMissing Kind = "exchange_missing" // the dead-letter exchange of the queue does not exist
	// the dead-letter exchange of the queue routes some or all keys to no queue
	NoBinding       Kind = "no_binding"
	RouteUnknown    Kind = "route_unknown"     // dead letters go through an exchange that dlo cannot judge
	QueueMissing    Kind = "queue_missing"     // dead letters are routed to a queue that does not exist
	QueueFull       Kind = "queue_full"        // dead letters are routed to a queue that is full
	SecondDeathLost Kind = "second_death_lost" // a requeued letter is lost when it dies again
	ArgumentWins    Kind = "argument_wins"     // a queue argument overrides the exchange of a policy
	PolicyShadowed  Kind = "policy_shadowed"   // a policy of higher priority hides the policy that sets the exchange
	PolicyTied      Kind = "policy_tied"       // two policies of equal priority differ in the exchange or the key
	PolicyTwice     Kind = "policy_twice"      // a file has two policies with the same name, and the last one wins
	PolicyIgnored   Kind = "policy_ignored"    // the broker applies another policy than dlo computes
	PatternUnknown  Kind = "pattern_unknown"   // dlo cannot evaluate the pattern of a policy
	OperatorCaps    Kind = "operator_caps"     // an operator policy lowers a limit
	Cycle           Kind = "cycle"             // expired messages go in a circle, and the broker drops them
	AtMostOnce      Kind = "at_most_once"      // a quorum queue can lose dead letters when a node fails
	// the queue is set to dead-letter at least once, but dead-letters at most once because
	// reject-publish is missing
	OverflowDrops  Kind = "overflow_drops"
	Stuck          Kind = "stuck"           // at-least-once dead-lettering holds messages back
	TakenTwice     Kind = "taken_twice"     // an exchange routes each dead letter to several inboxes
	LettersDeleted Kind = "letters_deleted" // a dead-letter queue deletes letters
	// a dead-letter queue deletes letters after lost connections, because it has a delivery limit
	DeliveryLimit Kind = "delivery_limit"
	NoConsumers   Kind = "no_consumers" // messages arrive, and no consumer reads them
	LeftBehind    Kind = "left_behind"  // messages wait, no messages arrive, and no consumer reads them
	// consumers requeue the same messages to the head of the queue again and again
	RedeliveryStorm Kind = "redelivery_storm"
	RetryRecipe     Kind = "retry_recipe"   // a chain of queues retries messages by time-to-live
	Moved           Kind = "moved"          // a shovel or a federation link moves messages of the queue
	PolicyChanged   Kind = "policy_changed" // a policy that dlo has set was changed or deleted since
	// a policy that dlo's policy hides was changed since, so the change has no effect
	HiddenChanged Kind = "hidden_changed"
)

// Sureness says how certain a finding is.
type Sureness string

// These are the degrees of sureness.
const (
	Certain Sureness = "certain"
	Likely  Sureness = "likely" // the finding depends on routing keys, headers or rates that dlo does not know
)

// Finding is one fault of a vhost that loses dead letters or that can lose them.
type Finding struct {
	Kind      Kind                `json:"kind"` // one of the words in docs/topology.md
	Severity  deadletter.Severity `json:"severity"`
	Broker    string              `json:"broker"` // the name of the broker; "" for a file
	VHost     string              `json:"vhost"`
	Queue     string              `json:"queue"`         // "" if the finding is not about one queue
	More      []string            `json:"more,omitzero"` // further queues with the same cause
	Others    []string            `json:"-"`             // further queues that the texts of the finding name
	Title     string              `json:"title"`         // one line of text, a sentence without a full stop
	Loses     string              `json:"loses"`         // which messages are lost
	Why       string              `json:"why"`           // why they are lost
	Sure      Sureness            `json:"sure"`
	Since     time.Time           `json:"since"`     // zero = unknown
	Cure      string              `json:"cure"`      // what a person can do about it
	Plannable bool                `json:"plannable"` // a policy cures the finding, so a plan may contain the queue

	cause string    // findings of one kind with the same cause are one finding; "" = each is its own
	parts []Finding // the finding for each queue alone, if there are several
}

// severities holds the usual severity of each kind. Page means that letters are lost although
// somebody has set a dead-letter exchange. Notify means that a person has to decide what to do.
// Digest means that the fact is worth knowing.
var severities = map[Kind]deadletter.Severity{
	NoExchange:      deadletter.SeverityNotify,
	ExchangeMissing: deadletter.SeverityPage,
	NoBinding:       deadletter.SeverityPage,
	RouteUnknown:    deadletter.SeverityDigest,
	QueueMissing:    deadletter.SeverityPage,
	QueueFull:       deadletter.SeverityPage,
	SecondDeathLost: deadletter.SeverityPage,
	ArgumentWins:    deadletter.SeverityNotify,
	PolicyShadowed:  deadletter.SeverityPage,
	PolicyTied:      deadletter.SeverityNotify,
	PolicyTwice:     deadletter.SeverityNotify,
	PolicyIgnored:   deadletter.SeverityPage,
	PatternUnknown:  deadletter.SeverityDigest,
	OperatorCaps:    deadletter.SeverityDigest,
	Cycle:           deadletter.SeverityNotify,
	AtMostOnce:      deadletter.SeverityDigest,
	OverflowDrops:   deadletter.SeverityNotify,
	Stuck:           deadletter.SeverityNotify,
	TakenTwice:      deadletter.SeverityNotify,
	LettersDeleted:  deadletter.SeverityPage,
	DeliveryLimit:   deadletter.SeverityPage,
	NoConsumers:     deadletter.SeverityNotify,
	LeftBehind:      deadletter.SeverityNotify,
	RedeliveryStorm: deadletter.SeverityNotify,
	RetryRecipe:     deadletter.SeverityDigest,
	Moved:           deadletter.SeverityDigest,
	PolicyChanged:   deadletter.SeverityNotify,
	HiddenChanged:   deadletter.SeverityNotify,
}

// Kinds returns all kinds of findings, in alphabetical order.
func Kinds() []Kind { return slices.Sorted(maps.Keys(severities)) }

// Alike reports whether two findings differ only in the queue. One explanation is then enough for
// both.
func (f Finding) Alike(other Finding) bool {
	f.Queue, f.More, f.Title, f.Since = other.Queue, other.More, other.Title, other.Since
	return f.Same(other)
}

// Same reports whether two findings are equal.
func (f Finding) Same(other Finding) bool { return reflect.DeepEqual(f, other) }

// Queues returns all queues that the finding is about. There are none if Queue is empty.
func (f *Finding) Queues() []string {
	if f.Queue == "" {
		return nil
	}
	return append([]string{f.Queue}, f.More...)
}

// Curable returns those queues of the finding for which a policy cures it.
func (f *Finding) Curable() []string {
	if !f.Plannable || len(f.parts) == 0 {
		return f.Queues()
	}
	var list []string
	for _, p := range f.parts {
		if p.Plannable {
			list = append(list, p.Queue)
		}
	}
	return list
}

// Only returns the finding for some of its queues, of which there must be at least one.
func (f Finding) Only(queues ...string) Finding {
	parts := slices.DeleteFunc(
		slices.Clone(f.parts), func(p Finding) bool { return !slices.Contains(queues, p.Queue) },
	)
	if len(parts) == 0 { // it has only one
		return f
	}
	only := joined(parts)
	only.Since = f.Since
	return only
}

// joined returns findings with the same cause as one. Its title is that of the first one. Its other
// texts have what each of them says.
func joined(parts []Finding) Finding {
	f := parts[0]
	if len(parts) == 1 {
		return f
	}
	var loses, why, cure []string
	for _, p := range parts {
		loses, why, cure = withText(loses, p.Loses), withText(why, p.Why), withText(cure, p.Cure)
		f.Plannable = f.Plannable || p.Plannable
	}
	for _, p := range parts[1:] {
		f.More, f.Others = append(f.More, p.Queue), append(f.Others, p.Others...)
	}
	f.parts = parts
	f.Title += textf("; the same is true of %d more: %s", len(f.More), nameList(f.More))
	f.Loses, f.Why, f.Cure = strings.Join(loses, "; or "), strings.Join(why, " "), strings.Join(cure, " ")
	return f
}

// withText adds a text to a list, unless it is there or the list has five texts.
func withText(list []string, text string) []string {
	switch {
	case slices.Contains(list, text) || len(list) > 5:
		return list
	case len(list) == 5:
		text = "…"
	}
	return append(list, text)
}

// Apart returns the finding with texts that name only its own queue. It is for people who may not
// see the other queues.
func (f Finding) Apart() Finding {
	f.Others = nil
	f.Title = textf("%s has a fault of the kind %s, which concerns other queues as well", f.Queue, f.Kind)
	f.Loses = "what depends on queues that you may not see"
	f.Why = "The path of its dead letters leads through queues that you may not see."
	f.Cure = "Ask somebody who may see all queues."
	return f
}

// Weak reports whether at-least-once dead-lettering alone cures the finding.
func (f *Finding) Weak() bool { return f.Kind == AtMostOnce || f.Kind == OverflowDrops }
