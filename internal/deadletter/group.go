package deadletter

import "time"

// GroupStatus says what people have done about a group, or whether it grew or came back.
type GroupStatus string

const (
	GroupNew        GroupStatus = "new"        // nobody has looked at the group yet
	GroupOpen       GroupStatus = "open"       // somebody has looked at the group
	GroupEscalating GroupStatus = "escalating" // the group grows faster than before
	GroupRegressed  GroupStatus = "regressed"  // the group came back after it was resolved
	GroupSnoozed    GroupStatus = "snoozed"    // people have put the group off for now
	GroupResolved   GroupStatus = "resolved"
)

// GroupStatuses lists all statuses.
var GroupStatuses = []GroupStatus{GroupNew, GroupOpen, GroupEscalating, GroupRegressed, GroupSnoozed, GroupResolved}

// GroupRow is a group with the values that lists show.
type GroupRow struct {
	ID                   GroupID
	Title                string
	Broker, VHost, Queue string
	Type, Reason, Error  string
	Status               GroupStatus
	// severity that a person chose; otherwise the highest one since the group began to need people
	Severity        Severity
	Chosen          bool   // whether a person chose the severity
	Owner           string // "" = nobody
	Ticket          string // link or number of a ticket; "" = none
	Note            string // newest note; "" = none
	NoteBy          string // author of Note; "" = unknown
	ChangedAt       time.Time
	Snooze          Snooze // snooze of the group, if it is snoozed
	Resolved        Resolution
	Count           int       // number of letters that are dead or held now
	Waiting         int       // number of letters that wait for a retry
	Overdue         int       // number of waiting letters whose retries should have ended by now
	FirstAt, LastAt time.Time // times at which the first letter was received and the last letter died
	// letters of the group are dying now; otherwise the group has been quiet since LastAt
	Failing bool
	Spark   []int // number of letters received in each of the last 24 hours, oldest first
}

// StatusFailing and StatusQuiet are two more values that a query accepts as the status of a group.
// StatusFailing selects the groups in the inbox whose letters are dying now. StatusQuiet selects
// the other groups in the inbox.
const (
	StatusFailing = "failing"
	StatusQuiet   = "quiet"
)

// Needs returns the number of letters in the group that need people. These are dead, held or
// overdue.
func (g *GroupRow) Needs() int { return g.Count + g.Overdue }

// Snooze says when a snooze ends. It ends when the first of its conditions is met. The field Until
// is always set, by default to the latest permitted time.
type Snooze struct {
	Until time.Time
	After int    // number of further deaths after which the snooze ends; 0 = no limit
	Queue bool   // the snooze ends when the same error is seen in another queue
	By    string // name of the person who snoozed the group
}

// MaxSnooze is the longest permitted snooze. It is limited so that people do not forget a group.
const MaxSnooze = 90 * 24 * time.Hour

// Resolution says when and by whom a group was resolved. It may also name the version of the
// consumer in which the failure is fixed.
type Resolution struct {
	At      time.Time // zero = not resolved
	By      string
	Version string
}

// Group is a failure group with all its details.
type Group struct {
	GroupRow
	Head       GroupID       // group into which this group is merged; 0 = none
	Merged     []GroupRow    // groups merged into it
	Alike      []GroupRow    // up to 10 groups with the same error and queue, but with another type or reason
	Letters    map[State]int // number of letters of the group and of the groups merged into it, by state
	Rules      []string      // rules that decided about the newest letters of the group
	Paused     bool          // the retries of the group are paused
	History    []Event       // up to 100 events, newest first
	Operations []Operation   // up to 10 operations on letters of the group, newest first
	Deploys    []Deploy      // deploys from one day before the group was first seen, newest first
	Suspect    *Deploy       // last deploy within ten minutes before the group was first seen or came back; nil = none
	Fix        *Deploy       // first deploy after the last death of a group that is now quiet; nil = none
}

// SuspectWithin is the maximum time between a deploy and the first death of a failure. If a failure
// began within this time, the deploy is suspected to be its cause.
const SuspectWithin = 10 * time.Minute
