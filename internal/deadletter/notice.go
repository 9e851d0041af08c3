package deadletter

import "time"

// Notice is a message for people or machines. The transaction that causes the notice also writes it
// to the outbox.
type Notice struct {
	ID       int64
	Kind     NoticeKind
	Key      string // identifies the cause; notices with the same key count as one, and as one incident in a pager
	Severity Severity
	Text     string // what happened, if the notice is not about a group; untrusted names in it are visible text
	Letter   ID
	Group    GroupID
	Op       OperationID // 0 = none
	At       time.Time
	// names in the configuration; empty = the notice is kept but not sent; notices for machines
	// have separate channels
	Channels []string
}

// NoticeKind says what a notice is about.
type NoticeKind string

const (
	NoticeOpened    NoticeKind = "opened"    // a group needs people
	NoticeRegressed NoticeKind = "regressed" // a resolved or quiet group came back
	NoticeJoined    NoticeKind = "joined"    // a group joins an incident of which people already know
	NoticeEscalated NoticeKind = "escalated" // a group grows faster than before
	NoticeUpdated   NoticeKind = "updated"   // a group of which people know has many more letters
	NoticeQuiet     NoticeKind = "quiet"     // in the groups of which people know, no letter has died for a while
	NoticeResolved  NoticeKind = "resolved"  // the groups of which people know no longer need anyone
	NoticeRefused   NoticeKind = "nacks"     // a queue rejects requeued letters
	NoticeBreaker   NoticeKind = "breaker"   // retries of a queue are held back
	NoticeProblem   NoticeKind = "problem"   // something prevents dlo from doing its work
	NoticeOver      NoticeKind = "over"      // a problem about which people were notified is over
	NoticeDigest    NoticeKind = "digest"
	NoticeTest      NoticeKind = "test" // sent to one channel by a person, and kept nowhere

	// The following kinds of notices are for machines. A webhook gets all of them, whatever its
	// rules are.
	EventGroupQuiet        NoticeKind = "group.quiet"        // no letter of a group has died for a while
	EventGroupResolved     NoticeKind = "group.resolved"     // a group no longer needs people
	EventOperationFinished NoticeKind = "operation.finished" // an operation is done or cancelled
)

// Closes reports whether the notice ends the incident that earlier notices with the same key began.
func (k NoticeKind) Closes() bool {
	return k == NoticeResolved || k == NoticeQuiet || k == NoticeOver
}

// ForMachines reports whether only machines get the notice.
func (k NoticeKind) ForMachines() bool {
	return k == EventGroupQuiet || k == EventGroupResolved || k == EventOperationFinished
}

// Delivery is one notice that is to be sent to one channel. It also contains the group, operation
// or digest that the notice is about, as it was when the delivery was read.
type Delivery struct {
	ID      int64
	Channel string
	Tries   int       // number of failed tries so far
	DueAt   time.Time // time before which the notice is not sent
	Notice  Notice
	Group   *GroupRow // group of the notice, or first group of the incident; nil = the notice is not about a group

	// The following fields are set only if the incident has several groups.
	// groups about which the channel is notified, in the order in which they joined; if the notice
	// ends the incident, all groups about which the channel was ever notified
	Incident []GroupRow
	Left     []GroupRow // groups that have left the incident and about which nobody is notified any more
	With     []int64    // ids of other deliveries that this delivery makes unnecessary
	// deploy after which all these groups began; nil = there is no such deploy, or the incident is
	// over
	After *Deploy

	Operation *Operation // nil = the notice is not about an operation
	Digest    *Digest    // nil = the notice is not a digest
}

// Delivered is the result of one try to deliver a notice. Exactly one of Sent, Failed and RetryAt
// is set.
type Delivered struct {
	ID      int64
	Sent    bool
	With    []int64   // ids of other deliveries that this delivery made unnecessary
	Failed  bool      // the notice is never tried again
	RetryAt time.Time // time of the next try; if Detail is empty, the delivery only waits for the end of quiet hours
	Detail  string    // error without secrets, if some or all of the delivery failed
}
