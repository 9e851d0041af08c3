package view

import (
	"strconv"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// ConfirmPage says what an action will do, before it does it.
type ConfirmPage struct {
	Shell
	Action   deadletter.Verb
	IDs      []deadletter.ID // everything that was chosen, eligible or not
	Eligible int
	Queues   []ConfirmQueue
	Skipped  []ConfirmSkip
	Reason   string
	Typed    string // the count as typed, when it was wrong
	Problem  string // why the last try was refused
	Key      string // idempotency key: pressing the button twice starts one operation
	Return   string // where Cancel leads
	Until    string // how long a discarded letter can be restored: "for 7 days"; "" when not known
}

// ConfirmQueue is what the action means for one origin queue.
type ConfirmQueue struct {
	Broker, VHost, Queue string
	Letters              int
	Known                bool // the broker was asked about the queue, and answered
	Exists               bool // when Known
	Consumers, Depth     int  // -1: unknown
	Warning              string
}

// ConfirmSkip is a number of letters that the action will leave alone, and why.
type ConfirmSkip struct {
	Reason   string
	Letters  int
	Examples []deadletter.ID
}

// TypedFrom is the size from which a discard asks for its count to be typed.
const TypedFrom = 100

// MustType says whether an action on n letters asks for the count to be typed.
func MustType(v deadletter.Verb, n int) bool { return v == deadletter.VerbDiscard && n > TypedFrom }

// TypedCount says whether text is the number n as people type it.
func TypedCount(text string, n int) bool {
	return strings.NewReplacer(",", "", " ", "", ".", "", "'", "").Replace(text) == strconv.Itoa(n)
}

func (p ConfirmPage) ids() string {
	var b strings.Builder
	for i, id := range p.IDs {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(string(id))
	}
	return b.String()
}

func (p ConfirmPage) title() string {
	switch p.Action {
	case deadletter.VerbRequeue:
		return "Requeue " + LetterCount(p.Eligible) + " to the tail"
	case deadletter.VerbDiscard:
		return "Discard " + LetterCount(p.Eligible) + "?"
	}
	return VerbWord(p.Action) + " " + LetterCount(p.Eligible)
}

// promise says what will happen and what can be taken back.
func (p ConfirmPage) promise() string {
	one := p.Eligible == 1
	switch p.Action {
	case deadletter.VerbRequeue:
		if one {
			return "It goes unchanged to the tail of its origin queue, through the default exchange. Other queues bound to the same exchange do not get it again. What was sent cannot be called back."
		}
		return "Each letter goes unchanged to the tail of its own origin queue, through the default exchange. Other queues bound to the same exchange do not get it again. What was sent cannot be called back."
	case deadletter.VerbDiscard:
		text := "They are never retried. They can be restored "
		if one {
			text = "It is never retried. It can be restored "
		}
		if p.Until != "" {
			return text + p.Until + "."
		}
		return text + "until they are purged."
	case deadletter.VerbRestore:
		if one {
			return "It becomes dead again: nothing is sent."
		}
		return "They become dead again: nothing is sent."
	}
	return ""
}

// keep is the word of the safe button.
func (p ConfirmPage) keep() string {
	switch {
	case p.Action != deadletter.VerbDiscard:
		return "Cancel"
	case p.Eligible == 1:
		return "Keep it"
	}
	return "Keep them"
}

// placed says whether every queue belongs to one broker and vhost, so that the table need not say which.
func (p ConfirmPage) placed() bool {
	for _, q := range p.Queues {
		if q.Broker != p.Queues[0].Broker || q.VHost != p.Queues[0].VHost {
			return true
		}
	}
	return false
}

func (q ConfirmQueue) now() string {
	switch {
	case q.Known && !q.Exists:
		return "does not exist"
	case q.Depth < 0:
		return "unknown"
	}
	return Count(q.Depth) + " ready"
}

func (q ConfirmQueue) consumers() string {
	switch {
	case q.Known && !q.Exists:
		return "none"
	case q.Consumers < 0:
		return "unknown"
	}
	return Count(q.Consumers)
}

func confirmClass(v deadletter.Verb) string {
	if v == deadletter.VerbDiscard {
		return "btn-danger-solid"
	}
	return "btn-primary"
}

func placeholder(v deadletter.Verb) string {
	switch v {
	case deadletter.VerbRequeue:
		return "such as: fixed in notifications 2026.11.20-2"
	case deadletter.VerbDiscard:
		return "such as: test data"
	}
	return ""
}
