package deadletter

import "fmt"

// State is where a letter stands.
type State string

const (
	StateReceived   State = "received"   // stored, not yet classified
	StateScheduled  State = "scheduled"  // waits for its retry, due later or now
	StateDead       State = "dead"       // needs a person
	StateHeld       State = "held"       // a guard or a person stopped it
	StatePublishing State = "publishing" // on its way: the only state that can be in doubt
	StateRequeued   State = "requeued"   // confirmed by the broker and being watched
	StateSettled    State = "settled"    // did not come back within the watch window; pages say "quiet"
	StateDiscarded  State = "discarded"  // restorable until retention
	StatePurged     State = "purged"     // body erased, tombstone and history stay
)

// States lists all states in the order of a letter's life.
var States = []State{StateReceived, StateScheduled, StateDead, StateHeld, StatePublishing, StateRequeued, StateSettled, StateDiscarded, StatePurged}

// Trigger is what moves a letter from one state to another.
type Trigger string

const (
	ClassifiedRetry   Trigger = "classified: retry"
	ClassifiedDead    Trigger = "classified: needs a person"
	ClassifiedDiscard Trigger = "classified: discarded by a rule"
	ClassifiedHold    Trigger = "classified: held by a guard"
	Released          Trigger = "requeue asked for" // by a person or an operation: due now
	Claimed           Trigger = "claimed"
	Confirmed         Trigger = "confirmed"
	Nacked            Trigger = "nacked"
	Stopped           Trigger = "could not be published" // returned, unpublishable, refused, or in doubt where that holds
	Quiet             Trigger = "watch window over"
	CameBack          Trigger = "came back"
	Discarding        Trigger = "discarded"
	Restoring         Trigger = "restored"
)

// transitions is the state table of docs/architecture.md. A state that is missing from a row cannot take that trigger.
var transitions = map[Trigger]map[State]State{
	ClassifiedRetry:   {StateReceived: StateScheduled},
	ClassifiedDead:    {StateReceived: StateDead},
	ClassifiedDiscard: {StateReceived: StateDiscarded},
	ClassifiedHold:    {StateReceived: StateHeld},
	Released:          {StateDead: StateScheduled, StateHeld: StateScheduled, StateScheduled: StateScheduled},
	Claimed:           {StateScheduled: StatePublishing},
	Confirmed:         {StatePublishing: StateRequeued},
	Nacked:            {StatePublishing: StateScheduled},
	Stopped:           {StatePublishing: StateHeld},
	Quiet:             {StateRequeued: StateSettled},
	// Publishing, requeued and settled are the plain cases; the others are letters whose attempt was left in doubt and acted on since.
	CameBack: {
		StatePublishing: StateReceived, StateRequeued: StateReceived, StateSettled: StateReceived, StateHeld: StateReceived,
		StateScheduled: StateReceived, StateDead: StateReceived, StateDiscarded: StateReceived,
	},
	Discarding: {StateScheduled: StateDiscarded, StateDead: StateDiscarded, StateHeld: StateDiscarded},
	Restoring:  {StateDiscarded: StateDead},
}

// On returns the state that t leads to from s, and whether s takes t at all.
func (s State) On(t Trigger) (State, bool) {
	to, ok := transitions[t][s]
	return to, ok
}

// Verb is what a principal does to letters.
type Verb string

const (
	VerbRequeue Verb = "requeue"
	VerbDiscard Verb = "discard"
	VerbRestore Verb = "restore"
	VerbView    Verb = "view"   // see a letter, its body and its history
	VerbCancel  Verb = "cancel" // stop an operation
)

// Trigger returns the trigger by which v acts on a letter; false for a verb that changes no letter.
func (v Verb) Trigger() (Trigger, bool) {
	t, ok := map[Verb]Trigger{VerbRequeue: Released, VerbDiscard: Discarding, VerbRestore: Restoring}[v]
	return t, ok
}

// ParseVerb reads a verb that acts on letters.
func ParseVerb(s string) (Verb, error) {
	if _, ok := Verb(s).Trigger(); !ok {
		return "", fmt.Errorf("%w: action %q is not one of requeue, discard, restore", ErrInvalid, Visible(Cut(s, 40)))
	}
	return Verb(s), nil
}

// May says whether v can act on a letter in state s.
func (v Verb) May(s State) bool {
	t, ok := v.Trigger()
	if !ok {
		return false
	}
	_, ok = s.On(t)
	return ok
}
