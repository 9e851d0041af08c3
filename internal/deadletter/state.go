package deadletter

import (
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"
)

// State is the state of a letter.
type State string

const (
	StateReceived   State = "received"   // the letter is stored but not classified yet
	StateScheduled  State = "scheduled"  // the letter waits for its retry, or is due now
	StateDead       State = "dead"       // the letter needs a person
	StateHeld       State = "held"       // a guard or a person has stopped the letter
	StatePublishing State = "publishing" // the letter is being published; no other state can be in doubt
	StateRequeued   State = "requeued"   // the broker has confirmed the letter, and it is being watched
	StateQuiet      State = "quiet"      // the letter did not come back while it was watched
	StateDiscarded  State = "discarded"  // the letter can be restored until it is purged
	StatePurged     State = "purged"     // the contents are erased, but the row and the history are kept
)

// States lists all states, in the order in which a letter usually gets them.
var States = []State{
	StateReceived, StateScheduled, StateDead, StateHeld, StatePublishing, StateRequeued, StateQuiet, StateDiscarded,
	StatePurged,
}

// RetryStates lists the states of letters in retry. These letters wait for a retry, are being sent,
// or were sent and are still watched.
var RetryStates = []State{StateScheduled, StatePublishing, StateRequeued}

// formerQuiet is the former name of StateQuiet. Queries and exported letters may still contain it.
// The database contains only this name, because renaming it there would rewrite most letters.
const formerQuiet = "settled"

// StateNamed returns the state with the given name, which may be its former name. Use
// slices.Contains(States, ...) to find out whether the state exists.
func StateNamed(name string) State {
	if name == formerQuiet {
		return StateQuiet
	}
	return State(name)
}

// Value returns the name of the state in the database.
func (s State) Value() (driver.Value, error) {
	if s == StateQuiet {
		return formerQuiet, nil
	}
	return string(s), nil
}

// Scan sets the state to one that was read from the database.
func (s *State) Scan(stored any) error {
	name, ok := stored.(string)
	if !ok {
		return fmt.Errorf("the store has the state %v, which is not a text", stored)
	}
	*s = StateNamed(name)
	return nil
}

// UnmarshalText sets the state to one that JSON names.
func (s *State) UnmarshalText(name []byte) error {
	*s = StateNamed(string(name))
	return nil
}

// Trigger is an event that changes the state of a letter.
type Trigger string

const (
	ClassifiedRetry   Trigger = "classified: retry"
	ClassifiedDead    Trigger = "classified: needs a person"
	ClassifiedDiscard Trigger = "classified: discarded by a rule"
	ClassifiedHold    Trigger = "classified: held by a guard"
	RequeueAsked      Trigger = "requeue requested" // a person or an operation requeued the letter, which is due now
	Claimed           Trigger = "claimed"
	Confirmed         Trigger = "confirmed"
	Nacked            Trigger = "nacked"
	WaitBegun         Trigger = "confirmed by a waiter of the broker"
	WaitOver          Trigger = "its time in the broker is over"
	WaitLost          Trigger = "its time in the broker is over, and its queue is gone"
	// the message was returned or rejected, cannot be published, or is held because it is in doubt
	Stopped Trigger = "could not be published"
	Quiet   Trigger = "watch window over"
	// for example because the queue no longer exists
	LostSight     Trigger = "dlo can no longer see what becomes of it"
	FoundRestored Trigger = "the store was restored from a copy"
	CameBack      Trigger = "came back"
	Discarding    Trigger = "discarded"
	Restoring     Trigger = "restored"
	Holding       Trigger = "held by a person"
	Timing        Trigger = "due at another time"                 // now or at a time that a person chose
	DecidedDead   Trigger = "rules applied again: needs a person" // the rules changed while the letter waited
	ReleasedDead  Trigger = "released: it was dead"
	// for a suspect, or for a letter without an origin
	ReleasedAgain Trigger = "released: its rule is applied again"
	ReleasedDue   Trigger = "released: due now"
	Purging       Trigger = "purged"
)

// transitions is the state table in docs/architecture.md. It maps each trigger to the states in
// which it is possible, and to the states that result.
var transitions = map[Trigger]map[State]State{
	ClassifiedRetry:   {StateReceived: StateScheduled},
	ClassifiedDead:    {StateReceived: StateDead},
	ClassifiedDiscard: {StateReceived: StateDiscarded},
	ClassifiedHold:    {StateReceived: StateHeld},
	RequeueAsked:      {StateDead: StateScheduled, StateHeld: StateScheduled, StateScheduled: StateScheduled},
	Claimed:           {StateScheduled: StatePublishing},
	Confirmed:         {StatePublishing: StateRequeued},
	Nacked:            {StatePublishing: StateScheduled},
	WaitBegun:         {StatePublishing: StateScheduled},
	WaitOver:          {StateScheduled: StateRequeued},
	WaitLost:          {StateScheduled: StateHeld},
	Stopped:           {StatePublishing: StateHeld},
	Quiet:             {StateRequeued: StateQuiet},
	LostSight:         {StateRequeued: StateHeld},
	// A letter usually comes back while it is in the state publishing, requeued or settled. It is
	// in another state if the outcome of the attempt was in doubt, and somebody has acted on the
	// letter since then.
	CameBack: {
		StatePublishing: StateReceived,
		StateRequeued:   StateReceived,
		StateQuiet:      StateReceived,
		StateHeld:       StateReceived,
		StateScheduled:  StateReceived,
		StateDead:       StateReceived,
		StateDiscarded:  StateReceived,
	},
	FoundRestored: {StateScheduled: StateHeld, StatePublishing: StateHeld, StateRequeued: StateHeld},
	Discarding:    {StateScheduled: StateDiscarded, StateDead: StateDiscarded, StateHeld: StateDiscarded},
	Restoring:     {StateDiscarded: StateDead},
	Holding:       {StateScheduled: StateHeld, StateDead: StateHeld},
	Timing:        {StateScheduled: StateScheduled},

	DecidedDead:   {StateScheduled: StateDead},
	ReleasedDead:  {StateHeld: StateDead},
	ReleasedAgain: {StateHeld: StateReceived},
	ReleasedDue:   {StateHeld: StateScheduled},
	Purging: {
		StateReceived:  StatePurged,
		StateScheduled: StatePurged,
		StateDead:      StatePurged,
		StateHeld:      StatePurged,
		StateRequeued:  StatePurged,
		StateQuiet:     StatePurged,
		StateDiscarded: StatePurged,
	},
}

// On returns the state that results from a trigger. If the trigger is not possible in the present
// state, it returns false.
func (s State) On(t Trigger) (State, bool) {
	to, ok := transitions[t][s]
	return to, ok
}

// Verb is the name of an action that a principal can perform.
type Verb string

const (
	VerbRequeue Verb = "requeue"
	VerbEdit    Verb = "edit" // edits and requeues letters: a new revision of each letter is sent
	// The following two verbs move an automatic retry to another time. It remains a retry of its
	// rule, so the rate and the guards of its queue still apply to it. A requeued letter, in
	// contrast, is sent by an operation.
	VerbRetryNow   Verb = "retry_now"
	VerbReschedule Verb = "reschedule"

	VerbDiscard Verb = "discard"
	VerbRestore Verb = "restore"
	VerbHold    Verb = "hold"
	VerbRelease Verb = "release"
	VerbPurge   Verb = "purge"
	VerbView    Verb = "view"   // see that a letter failed, where, when and why, and see its history
	VerbRead    Verb = "read"   // see the body, headers and properties of a letter, but no masked values
	VerbReveal  Verb = "reveal" // see masked values
	VerbTypes   Verb = "types"  // change schemas, and the types as which letters are read
	VerbCancel  Verb = "cancel" // cancel, pause or resume an operation, or change its rate
)

// verbActs maps each verb that acts on letters to its past participle and its triggers. A release
// has one trigger for each kind of held letter.
var verbActs = map[Verb]struct {
	past     string
	triggers []Trigger
}{
	VerbRequeue:    {"requeued", []Trigger{RequeueAsked}},
	VerbEdit:       {"edited and requeued", []Trigger{RequeueAsked}},
	VerbRetryNow:   {"made due", []Trigger{Timing}},
	VerbReschedule: {"rescheduled", []Trigger{Timing}},

	VerbDiscard: {"discarded", []Trigger{Discarding}},
	VerbRestore: {"restored", []Trigger{Restoring}},
	VerbHold:    {"held", []Trigger{Holding}},
	VerbRelease: {"released", []Trigger{ReleasedDead, ReleasedAgain, ReleasedDue}},
	VerbPurge:   {"purged", []Trigger{Purging}},
}

// Actions lists the verbs that act on letters.
var Actions = []Verb{
	VerbRequeue, VerbEdit, VerbRetryNow, VerbReschedule, VerbDiscard, VerbRestore, VerbHold, VerbRelease, VerbPurge,
}

// Past returns the past participle of a verb that acts on letters, such as "requeued".
func (v Verb) Past() string { return verbActs[v].past }

// ParseVerb parses a verb that acts on letters.
func ParseVerb(s string) (Verb, error) {
	if slices.Contains(Actions, Verb(s)) {
		return Verb(s), nil
	}
	names := make([]string, len(Actions))
	for i, v := range Actions {
		names[i] = string(v)
	}
	return "", fmt.Errorf("%w: action %q is not one of %s", ErrInvalid, Visible(Cut(s, 40)), strings.Join(names, ", "))
}

// May reports whether the action is possible for a letter in the state s.
func (v Verb) May(s State) bool {
	for _, t := range verbActs[v].triggers {
		if _, ok := s.On(t); ok {
			return true
		}
	}
	return false
}

// Trigger returns the trigger of the action for a letter. A release has several triggers. To choose
// one, Trigger needs the state "heldFrom", which the letter had before it was held. It also needs
// to know whether the letter is "homeless", which means that nobody knows in which queue it died.
func (v Verb) Trigger(heldFrom State, homeless bool) Trigger {
	switch {
	case v != VerbRelease:
		return verbActs[v].triggers[0]
	case heldFrom == StateDead:
		return ReleasedDead
	case heldFrom == StateReceived, homeless:
		// a guard held the letter before anything was decided, or it is unknown where to send the
		// letter
		return ReleasedAgain
	}
	return ReleasedDue
}

// Leaves reports whether a letter is sent after this trigger. It is sent either immediately or
// after its rule has decided again.
func (t Trigger) Leaves() bool {
	return t == RequeueAsked || t == ReleasedDue || t == ReleasedAgain || t == Timing
}

// Irreversible reports whether the action cannot be undone. An operation with such an action begins
// with a hold, during which it can still be undone.
func (v Verb) Irreversible() bool { return v.Sends() || v == VerbPurge }

// Sends reports whether an operation with this action sends letters. Such an operation has a pace
// and a canary, and it is watched until there is a verdict on its letters.
func (v Verb) Sends() bool { return v == VerbRequeue || v == VerbEdit }
