package deadletter

import "time"

// GroupStatus is the state of the work on a group.
type GroupStatus string

const (
	GroupNew        GroupStatus = "new"        // nobody has looked at it yet
	GroupOpen       GroupStatus = "open"       // somebody has
	GroupEscalating GroupStatus = "escalating" // it grows faster than before
	GroupRegressed  GroupStatus = "regressed"  // it came back after it was resolved
	GroupSnoozed    GroupStatus = "snoozed"    // put off until a given end
	GroupResolved   GroupStatus = "resolved"
)

// GroupStatuses lists all statuses.
var GroupStatuses = []GroupStatus{GroupNew, GroupOpen, GroupEscalating, GroupRegressed, GroupSnoozed, GroupResolved}

// GroupRow is a failure group in the form that lists show.
type GroupRow struct {
	ID                   GroupID
	Title                string
	Broker, VHost, Queue string
	Type, Reason, Error  string
	Status               GroupStatus
	Severity             Severity // chosen by a person; otherwise the most urgent since the group began to need people
	Chosen               bool     // a person chose the severity
	Owner                string   // "" = nobody
	Ticket               string   // a link or a number; "" = none
	Note                 string   // newest note; "" = none
	NoteBy               string   // who wrote Note; "" = unknown
	ChangedAt            time.Time
	Snooze               Snooze // if snoozed
	Resolved             Resolution
	Count                int       // letters now dead or held
	Waiting              int       // letters that wait for a retry
	Overdue              int       // waiting letters whose retries should have ended by now
	FirstAt, LastAt      time.Time // first letter received; last letter died
	Failing              bool      // its letters are dying now; otherwise it has been quiet since LastAt
	Spark                []int     // letters received per hour over the last 24 hours, oldest first
}

// StatusFailing and StatusQuiet are further values that queries accept as a status. StatusFailing
// selects the groups in the inbox whose letters are dying now. StatusQuiet selects the other groups
// in the inbox.
const (
	StatusFailing = "failing"
	StatusQuiet   = "quiet"
)

// Needs returns the number of letters in the group that need a person: dead, held or overdue ones.
func (g *GroupRow) Needs() int { return g.Count + g.Overdue }

// Snooze ends when the first of its conditions is met. Until is always set; its default is the
// longest time allowed.
type Snooze struct {
	Until time.Time
	After int    // further deaths after which it ends; 0 = no limit
	Queue bool   // ends when the same error is seen in another queue
	By    string // who snoozed it
}

// MaxSnooze is the longest time for which a group can be snoozed. Without a limit, people could
// forget a group.
const MaxSnooze = 90 * 24 * time.Hour

// Resolution records when a group was resolved, by whom, and in which version of its consumer, if
// known.
type Resolution struct {
	At      time.Time // zero = not resolved
	By      string
	Version string
}

// Group is a failure group with all its details.
type Group struct {
	GroupRow
	Head       GroupID       // group that it is merged into; 0 = none
	Merged     []GroupRow    // groups merged into it
	Alike      []GroupRow    // same error and queue, but another type or reason; at most 10
	Letters    map[State]int // letters of the group and of the groups merged into it, by state
	Rules      []string      // rules that decided its newest letters
	Paused     bool          // its retries are paused
	History    []Event       // newest first, at most 100
	Operations []Operation   // operations that included its letters, newest first, at most 10
	Deploys    []Deploy      // deploys since one day before the group was first seen, newest first
	Suspect    *Deploy       // last deploy in the ten minutes before it was first seen or came back; nil = none
	Fix        *Deploy       // if quiet: first deploy after its last death; nil = none
}

// SuspectWithin is how long after a deploy a failure may begin and still be blamed on the deploy.
const SuspectWithin = 10 * time.Minute
