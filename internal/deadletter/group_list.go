package deadletter

import "time"

// GroupTab is one of the lists in which people work through groups.
type GroupTab string

const (
	TabInbox    GroupTab = "inbox"    // letters that need people
	TabSnoozed  GroupTab = "snoozed"  // put off
	TabResolved GroupTab = "resolved" // resolved, newest first
	TabAll      GroupTab = "all"      // all groups ever seen
)

// GroupOrder is the order of a list of groups.
type GroupOrder string

const (
	ByUrgency GroupOrder = "urgency" // by severity, then new, regressed or growing groups first, then by number of letters
	ByLetters GroupOrder = "letters" // most dead or held letters first
	ByLast    GroupOrder = "last"    // last seen first
	ByFirst   GroupOrder = "first"   // newest group first
)

// GroupOrders lists all orders.
var GroupOrders = []GroupOrder{ByUrgency, ByLetters, ByLast, ByFirst}

// GroupPage selects a page of groups.
type GroupPage struct {
	Tab   GroupTab   // "" = inbox
	Order GroupOrder // "" = by urgency; resolved groups by the time of resolution
	After string     // cursor of the last row of the previous page; "" = first
	Limit int
}

// GroupCounts contains the number of groups to work on, and the number of their letters that need
// people.
type GroupCounts struct {
	Inbox, Snoozed, Resolved int
	Mine                     int // groups in the inbox that belong to the given owner
	Letters                  int // dead or held, in the inbox
	Severities               map[Severity]int
}

// Standing summarises the groups of the inbox.
type Standing struct {
	Failing InboxShare // groups whose letters die now
	Quiet   InboxShare // the others
	LastAt  time.Time  // when the newest letter died; zero = there are no letters
}

// InboxShare is a number of groups and the number of their letters that need people.
type InboxShare struct {
	Groups  int
	Letters int // dead or held
	Overdue int
}
