package deadletter

import "time"

// GroupStatus is where the work on a group stands.
type GroupStatus string

const (
	GroupNew        GroupStatus = "new"        // nobody has looked after it
	GroupOpen       GroupStatus = "open"       // somebody has
	GroupEscalating GroupStatus = "escalating" // it grows faster than it did
	GroupRegressed  GroupStatus = "regressed"  // it came back after it was resolved
	GroupSnoozed    GroupStatus = "snoozed"    // put off, always with an end
	GroupResolved   GroupStatus = "resolved"
)

// GroupStatuses lists all statuses.
var GroupStatuses = []GroupStatus{GroupNew, GroupOpen, GroupEscalating, GroupRegressed, GroupSnoozed, GroupResolved}

// GroupRow is a failure group as lists show it.
type GroupRow struct {
	ID                   GroupID
	Title                string
	Broker, VHost, Queue string
	Type, Reason, Error  string
	Status               GroupStatus
	Severity             Severity // as a person chose it, else of the loudest since it began to need people
	Chosen               bool     // a person chose the severity
	Owner                string   // "" = nobody
	Ticket               string   // a link or a number; "" = none
	Note                 string   // the newest, "" = none
	Snooze               Snooze   // of a snoozed one
	Resolved             Resolution
	Count                int       // letters now dead or held
	Waiting              int       // letters that wait for a retry
	Overdue              int       // of those: letters whose retries should have been over
	FirstAt, LastAt      time.Time // when its first letter was received, and when its last one died
	Failing              bool      // letters of it die now; otherwise it is quiet since LastAt
	Spark                []int     // letters received per hour over the last 24 hours, oldest first
}

// StatusFailing and StatusQuiet are what queries ask for beside the statuses: groups of the inbox
// whose letters die now, and the others of the inbox.
const (
	StatusFailing = "failing"
	StatusQuiet   = "quiet"
)

// Needs returns how many letters of the group need a person: those that are dead, held or overdue.
func (g *GroupRow) Needs() int { return g.Count + g.Overdue }

// Snooze ends when one of its ends is reached. At least one is set, and Until always is, by default
// the longest that there is.
type Snooze struct {
	Until time.Time
	After int    // further letters that died; 0 = however many
	Queue bool   // until the same error is seen in another queue
	By    string // who put it off
}

// MaxSnooze is the longest that a group is put off: what is put off for ever is forgotten.
const MaxSnooze = 90 * 24 * time.Hour

// Resolution is when a group was resolved, by whom, and in which version of its consumer, if that
// was said.
type Resolution struct {
	At      time.Time // zero = it was not
	By      string
	Version string
}

// Group is a failure group with all that is known of it.
type Group struct {
	GroupRow
	Head       GroupID       // it is merged into this one; 0 = it is not
	Merged     []GroupRow    // that are merged into it
	Alike      []GroupRow    // of the same error and queue, with letters of another type or reason; at most 10
	Letters    map[State]int // of all
	Rules      []string      // that decided on its newest letters
	Paused     bool          // its retries are
	History    []Event       // what was done with it, newest first, at most 100
	Operations []Operation   // that had letters of it, newest first, at most 10
	Deploys    []Deploy      // in the day before it was first seen and since, newest first
	Suspect    *Deploy       // the last one in the ten minutes before it was first seen, or came back; nil = none
	Fix        *Deploy       // of a quiet one: the first after its last death; nil = none
}

// SuspectWithin is how long before a failure a deploy is its suspect.
const SuspectWithin = 10 * time.Minute
