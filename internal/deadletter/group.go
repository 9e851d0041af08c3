package deadletter

import "time"

// GroupStatus says what people have done about a group, or whether it grew or came back.
type GroupStatus string

const (
	GroupNew        GroupStatus = "new"        // nobody has looked at the group yet
	GroupOpen       GroupStatus = "open"       // somebody has looked at the group
	GroupEscalating GroupStatus = "escalating" // the group grows faster than before
	GroupRegressed  GroupStatus = "regressed"  // the group came back after it was resolved or quiet
	GroupSnoozed    GroupStatus = "snoozed"    // people have put the group off for now
	GroupResolved   GroupStatus = "resolved"
)

// GroupStatuses lists all statuses.
var GroupStatuses = []GroupStatus{GroupNew, GroupOpen, GroupEscalating, GroupRegressed, GroupSnoozed, GroupResolved}

// GroupRow is a group with the values that lists show.
type GroupRow struct {
	ID     GroupID     `json:"id"`
	Title  string      `json:"title"`
	Broker string      `json:"broker"`
	VHost  string      `json:"vhost"`
	Queue  string      `json:"queue"`
	Type   string      `json:"type"`
	Reason string      `json:"reason"`
	Error  string      `json:"error"`
	Status GroupStatus `json:"status"`
	// severity that a person chose; otherwise the highest one since the group began to need people
	Severity  Severity   `json:"severity"`
	Chosen    bool       `json:"severity_chosen"`  // whether a person chose the severity
	Owner     string     `json:"owner"`            // "" = nobody
	Ticket    string     `json:"ticket"`           // link or number of a ticket; "" = none
	Note      string     `json:"note"`             // newest note; "" = none
	NoteBy    string     `json:"note_by,omitzero"` // author of the note; absent = unknown, or there is no note
	ChangedAt time.Time  `json:"-"`
	Snooze    Snooze     `json:"snooze,omitzero"` // absent = not snoozed
	Resolved  Resolution `json:"resolved,omitzero"`
	// when the group last came back; absent = never
	Back     Back `json:"back,omitzero"`
	Count    int  `json:"count"`    // number of letters that are dead or held now
	Waiting  int  `json:"waiting"`  // number of letters that wait for a retry
	Overdue  int  `json:"overdue"`  // number of waiting letters whose retries should have ended by now
	Retrying int  `json:"retrying"` // number of letters that are in a state of RetryStates
	// only in the tab "retrying": when its next letter is due, or, if all of them were sent, when the
	// first of them can count as quiet. If more than NextOf letters wait, it may be earlier than that.
	NextAt  time.Time `json:"next_at,omitzero"`
	FirstAt time.Time `json:"first_seen"` // time at which the first letter was received
	LastAt  time.Time `json:"last_seen"`  // time at which the last letter died
	// letters of the group are dying now; otherwise the group is not failing since the last one died
	Failing bool  `json:"failing"`
	Spark   []int `json:"hours"` // number of letters received in each of the last 24 hours, oldest first
}

// StatusFailing and StatusNotFailing are two more values that a query accepts as the status of a
// group. StatusFailing selects the groups in the inbox whose letters are dying now.
// StatusNotFailing selects the other groups in the inbox.
const (
	StatusFailing    = "failing"
	StatusNotFailing = "not-failing"
)

// Needs returns the number of letters in the group that need people. These are dead, held or
// overdue.
func (g *GroupRow) Needs() int { return g.Count + g.Overdue }

// Snooze says when a snooze ends. It ends when the first of its conditions is met. The field Until
// is always set, by default to the latest permitted time.
type Snooze struct {
	Until time.Time `json:"until"`
	After int       `json:"after,omitzero"` // number of further deaths after which the snooze ends; absent = no limit
	Queue bool      `json:"queue,omitzero"` // the snooze ends when the same error is seen in another queue
	By    string    `json:"by"`             // name of the person who snoozed the group
}

// MaxSnooze is the longest permitted snooze. It is limited so that people do not forget a group.
const MaxSnooze = 90 * 24 * time.Hour

// Resolution says when and by whom a group was resolved. It may also name the version of the
// consumer in which the failure is fixed.
type Resolution struct {
	At      time.Time `json:"at"` // zero = not resolved
	By      string    `json:"by"`
	Version string    `json:"version,omitzero"`
}

// Back says when a group came back: a letter died after the group was resolved, or after all the
// letters that an operation had sent stayed quiet.
type Back struct {
	Since time.Time   `json:"since"`
	After OperationID `json:"after,omitzero"` // the operation that was quiet; absent = the group was resolved
}

// Cause says after what the group came back.
func (b Back) Cause() string {
	if b.After == 0 {
		return "after it was resolved"
	}
	return "after " + b.After.String() + " was quiet"
}

// Group is a failure group with all its details.
type Group struct {
	GroupRow
	Head   GroupID    `json:"merged_into,omitzero"` // group into which this group is merged; absent = none
	Merged []GroupRow `json:"merged"`               // groups merged into it
	// up to 10 groups with the same error and queue, but with another type or reason
	Alike []GroupRow `json:"-"`
	// number of letters of the group and of the groups merged into it, by state
	Letters    map[State]int `json:"letters"`
	Rules      []string      `json:"rules"`   // rules that decided about the newest letters of the group
	Paused     bool          `json:"paused"`  // the retries of the group are paused
	History    []Event       `json:"history"` // up to 100 events, newest first
	Operations []Operation   `json:"-"`       // up to 10 operations on letters of the group, newest first
	Deploys    []Deploy      `json:"deploys"` // deploys from one day before the group was first seen, newest first
	// last deploy within ten minutes before the group was first seen or came back; absent = none
	Suspect *Deploy `json:"suspect,omitzero"`
	Fix     *Deploy `json:"-"` // first deploy after the last death of a group that does not fail now; nil = none
}

// Began returns when the present failures of the group began: when it last came back, or otherwise
// when its first letter was received.
func (g *GroupRow) Began() time.Time {
	if g.Back.Since.IsZero() {
		return g.FirstAt
	}
	return g.Back.Since
}

// AllQuiet reports whether letters of the group were sent again, all of them stayed quiet, and no
// letter is dead, held, or on its way back to its queue.
func (g *Group) AllQuiet() bool {
	for _, s := range []State{
		StateReceived, StateScheduled, StatePublishing, StateRequeued, StateDead, StateHeld,
	} {
		if g.Letters[s] > 0 {
			return false
		}
	}
	return g.Letters[StateQuiet] > 0
}

// GroupValues contains the values that the letters of a group have in common. It also contains how
// these letters differ from letters of the same queue and type that did not come back after a retry
// or a requeue. Those are the quiet letters.
type GroupValues struct {
	// the value that distinguishes the group from other letters of its queue and type; absent = none
	Headline  *Headline   `json:"headline,omitzero"`
	Shared    []Shared    `json:"shared"`
	Sampled   int         `json:"sampled"`       // number of letters of the group that were read
	Different []Different `json:"different"`     // at most three, the greatest ratio of the two shares first
	Quiet     int         `json:"quiet_sampled"` // number of quiet letters that were read
}

// Shared is a field or header that many letters of a group have, with its most frequent value.
type Shared struct {
	Field   string `json:"field"`
	Value   string `json:"value"`
	Letters int    `json:"letters"` // number of letters that have this value
	Values  int    `json:"values"`  // number of different values
}

// Different is a value that is more frequent or less frequent in the letters of a group than in the
// quiet letters.
type Different struct {
	Field     string `json:"field"`
	Value     string `json:"value"`     // "" = the field itself, with any value
	Here      int    `json:"here"`      // number of letters of the group with the value, out of those that were read
	Otherwise int    `json:"otherwise"` // number of quiet letters with the value, out of those that were read
}

// Headline is a value of an indexed body field that at least half of the letters of a group have.
// It is at least twice as frequent there as in the other letters of the same queue and type.
type Headline struct {
	Path      string  `json:"path"`
	Value     string  `json:"value"`
	Share     float64 `json:"share"`     // part of the letters of the group that have the value, from 0 to 1
	Elsewhere float64 `json:"elsewhere"` // part of the other letters that have the value, from 0 to 1
	Sampled   int     `json:"sampled"`   // number of letters of the group that were counted
	Others    int     `json:"others"`    // number of other letters that were counted
}

// SuspectWithin is the maximum time between a deploy and the first death of a failure. If a failure
// began within this time, the deploy is suspected to be its cause.
const SuspectWithin = 10 * time.Minute
