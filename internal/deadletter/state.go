package deadletter

import (
	"fmt"
	"slices"
	"strings"
)

// State is the state of a letter.
type State string

const (
	StateReceived   State = "received"   // stored, not yet classified
	StateScheduled  State = "scheduled"  // waits for its retry, now or later
	StateDead       State = "dead"       // needs a person
	StateHeld       State = "held"       // a guard or a person stopped it
	StatePublishing State = "publishing" // being published: the only state that can be in doubt
	StateRequeued   State = "requeued"   // confirmed by the broker, being watched
	StateSettled    State = "settled"    // did not come back within the watch window; pages say "quiet"
	StateDiscarded  State = "discarded"  // restorable until retention
	StatePurged     State = "purged"     // body erased; tombstone and history are kept
)

// States lists all states, in the order of a letter's life.
var States = []State{StateReceived, StateScheduled, StateDead, StateHeld, StatePublishing, StateRequeued, StateSettled, StateDiscarded, StatePurged}

// Trigger is an event that moves a letter from one state to another.
type Trigger string

const (
	ClassifiedRetry   Trigger = "classified: retry"
	ClassifiedDead    Trigger = "classified: needs a person"
	ClassifiedDiscard Trigger = "classified: discarded by a rule"
	ClassifiedHold    Trigger = "classified: held by a guard"
	RequeueAsked      Trigger = "requeue requested" // by a person or an operation: due now
	Claimed           Trigger = "claimed"
	Confirmed         Trigger = "confirmed"
	Nacked            Trigger = "nacked"
	WaitBegun         Trigger = "confirmed by a waiter of the broker"
	WaitOver          Trigger = "its time in the broker is over"
	WaitLost          Trigger = "its time in the broker is over, and its queue is gone"
	Stopped           Trigger = "could not be published" // returned, unpublishable, refused, or held because of a doubt
	Quiet             Trigger = "watch window over"
	LostSight         Trigger = "dlo can no longer see what becomes of it" // for example, because its queue is gone
	FoundRestored     Trigger = "the store was restored from a copy"
	CameBack          Trigger = "came back"
	Discarding        Trigger = "discarded"
	Restoring         Trigger = "restored"
	Holding           Trigger = "held by a person"
	Timing            Trigger = "due at another time"                 // now, or at a chosen time
	DecidedDead       Trigger = "rules applied again: needs a person" // the rules changed while it waited
	ReleasedDead      Trigger = "released: it was dead"
	ReleasedAgain     Trigger = "released: its rule is applied again" // a suspect, or a letter without an origin
	ReleasedDue       Trigger = "released: due now"
	Purging           Trigger = "purged"
)

// transitions is the state table of docs/architecture.md. A trigger does not apply to the states
// that are missing from its row.
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
	Quiet:             {StateRequeued: StateSettled},
	LostSight:         {StateRequeued: StateHeld},
	// Publishing, requeued and settled are the normal cases. In the other states, the outcome of
	// the attempt was in doubt, and somebody has acted on the letter since.
	CameBack: {
		StatePublishing: StateReceived, StateRequeued: StateReceived, StateSettled: StateReceived, StateHeld: StateReceived,
		StateScheduled: StateReceived, StateDead: StateReceived, StateDiscarded: StateReceived,
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
		StateReceived: StatePurged, StateScheduled: StatePurged, StateDead: StatePurged, StateHeld: StatePurged, StateRequeued: StatePurged, StateSettled: StatePurged,
		StateDiscarded: StatePurged,
	},
}

// On returns the state that t leads to from s, and whether t applies to s.
func (s State) On(t Trigger) (State, bool) {
	to, ok := transitions[t][s]
	return to, ok
}

// Verb is an action of a principal on letters.
type Verb string

const (
	VerbRequeue Verb = "requeue"
	VerbEdit    Verb = "edit" // edits and requeues: sends a new revision of each letter
	// An operation sends each letter that a person requeues. A retry that a person moves to now or
	// to another time is still a retry of its rule. The rate and the guards of its queue still
	// apply.
	VerbRetryNow   Verb = "retry_now"
	VerbReschedule Verb = "reschedule"

	VerbDiscard Verb = "discard"
	VerbRestore Verb = "restore"
	VerbHold    Verb = "hold"
	VerbRelease Verb = "release"
	VerbPurge   Verb = "purge"
	VerbView    Verb = "view"   // see that a letter failed, where, when and why, and its history
	VerbRead    Verb = "read"   // see its body, headers and properties, with masked data hidden
	VerbReveal  Verb = "reveal" // see masked data
	VerbTypes   Verb = "types"  // change schemas and the types that letters are read as
	VerbCancel  Verb = "cancel" // stop, pause, resume or slow down an operation
)

// acts holds the past participle and the triggers of each verb that acts on letters. Release has
// one trigger for each kind of held letter.
var acts = map[Verb]struct {
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
var Actions = []Verb{VerbRequeue, VerbEdit, VerbRetryNow, VerbReschedule, VerbDiscard, VerbRestore, VerbHold, VerbRelease, VerbPurge}

// Past returns the past participle of a verb that acts on letters: "requeued".
func (v Verb) Past() string { return acts[v].past }

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

// May reports whether v can act on a letter in state s.
func (v Verb) May(s State) bool {
	for _, t := range acts[v].triggers {
		if _, ok := s.On(t); ok {
			return true
		}
	}
	return false
}

// Trigger returns the trigger that v causes for a letter. A release returns a held letter to the
// state before the hold. The argument "homeless" is true if it is unknown in which queue the letter
// died.
func (v Verb) Trigger(heldFrom State, homeless bool) Trigger {
	switch {
	case v != VerbRelease:
		return acts[v].triggers[0]
	case heldFrom == StateDead:
		return ReleasedDead
	case heldFrom == StateReceived, homeless: // a guard held it before any decision, or its destination is unknown
		return ReleasedAgain
	}
	return ReleasedDue
}

// Leaves reports whether a letter is sent after a person causes the trigger t. The letter is sent
// at once, or after its rule has decided again.
func (t Trigger) Leaves() bool {
	return t == RequeueAsked || t == ReleasedDue || t == ReleasedAgain || t == Timing
}

// Irreversible reports whether the effect of v cannot be undone. An operation with such a verb
// begins with a hold time, in which it can still be undone.
func (v Verb) Irreversible() bool { return v.Sends() || v == VerbPurge }

// Sends reports whether v sends letters in an operation. Such an operation has a pace and a canary,
// and is watched until its verdict is known.
func (v Verb) Sends() bool { return v == VerbRequeue || v == VerbEdit }
