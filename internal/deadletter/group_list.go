package deadletter

import "time"

// GroupTab is one of the lists that groups are worked through in.
type GroupTab string

const (
	TabInbox    GroupTab = "inbox"    // letters that need people
	TabSnoozed  GroupTab = "snoozed"  // put off
	TabResolved GroupTab = "resolved" // resolved, newest first
	TabAll      GroupTab = "all"      // all that ever were
)

// GroupOrder is how a list of groups is ordered.
type GroupOrder string

const (
	ByUrgency GroupOrder = "urgency" // by severity, then what is new, back or growing, then most letters
	ByLetters GroupOrder = "letters" // most that are dead or held first
	ByLast    GroupOrder = "last"    // seen last first
	ByFirst   GroupOrder = "first"   // newest group first
)

// GroupOrders lists all orders.
var GroupOrders = []GroupOrder{ByUrgency, ByLetters, ByLast, ByFirst}

// GroupPage selects a page of groups.
type GroupPage struct {
	Tab   GroupTab   // "" = inbox
	Order GroupOrder // "" = urgency; of the resolved, when that was
	After string     // cursor of the last row of the page before; "" = first
	Limit int
}

// GroupCounts is how many groups there are to work on, and how many of their letters need people.
type GroupCounts struct {
	Inbox, Snoozed, Resolved int
	Mine                     int // of the inbox, those of an owner
	Letters                  int // dead or held, of the inbox
	Severities               map[Severity]int
}

// Standing is how the groups of the inbox stand.
type Standing struct {
	Failing InboxShare // whose letters die now
	Quiet   InboxShare // the others
	LastAt  time.Time  // when the newest letter of all died; zero: there is none
}

// InboxShare is a number of groups, with their letters that need people.
type InboxShare struct {
	Groups  int
	Letters int // dead or held
	Overdue int
}
