package deadletter

import "time"

// GroupTab is one of the lists in which people work with groups, such as the inbox.
type GroupTab string

const (
	TabInbox    GroupTab = "inbox"    // groups with letters that need people
	TabQuiet    GroupTab = "quiet"    // groups whose letters were sent again and all stayed quiet
	TabSnoozed  GroupTab = "snoozed"  // groups that people have put off
	TabRetrying GroupTab = "retrying" // groups with letters in retry of which no letter needs people
	TabResolved GroupTab = "resolved" // groups that are resolved, newest first
	TabAll      GroupTab = "all"      // all groups that were ever seen
)

// NextOf is the maximum number of letters of a group that are read for GroupRow.NextAt.
const NextOf = 200

// GroupOrder is the order of a list of groups.
type GroupOrder string

const (
	// highest severity first; then regressed and growing groups, then new groups; then most letters
	// first
	ByUrgency GroupOrder = "urgency"
	ByLetters GroupOrder = "letters" // most dead or held letters first
	ByLast    GroupOrder = "last"    // group with the latest death first
	ByFirst   GroupOrder = "first"   // newest group first
)

// GroupOrders lists all orders.
var GroupOrders = []GroupOrder{ByUrgency, ByLetters, ByLast, ByFirst}

// GroupPage selects one page of a list of groups.
type GroupPage struct {
	Tab GroupTab // "" = inbox
	// "" = by urgency; but latest death first for quiet groups, and by the time of resolution for
	// resolved groups
	Order GroupOrder
	After string // cursor of the last row on the previous page; "" = first page
	Limit int
}

// GroupCounts contains the number of groups in each tab. It also contains the number of those
// letters in the inbox that need people.
type GroupCounts struct {
	Inbox, Quiet, Snoozed, Resolved int
	Mine                            int // number of groups in the inbox that belong to the given owner
	Letters                         int // number of letters of the groups in the inbox that need people
	Severities                      map[Severity]int
}

// Standing summarises the groups in the inbox.
type Standing struct {
	Failing InboxShare // groups whose letters are dying now
	Quiet   InboxShare // all other groups
	LastAt  time.Time  // time at which the last letter died; zero = there are no letters
}

// InboxShare counts a part of the inbox: the number of groups in this part, and the numbers of
// letters in these groups that need people.
type InboxShare struct {
	Groups  int
	Letters int // number of letters that are dead or held
	Overdue int
}

// ToldAfter is the time from the last expected retry of a letter until people get a notice that the
// letter still waits.
const ToldAfter = time.Minute

// InRetry summarises the letters in retry (see RetryStates).
type InRetry struct {
	Letters int
	Groups  int       // number of groups in the tab "retrying"
	DiesAt  time.Time // when the retries of a waiting letter can first be used up; zero = unknown
	QuietAt time.Time // when a letter that was sent can first count as quiet; zero = none was sent
	Queues  []Origin  // the queues of the letters, most letters first
}
