package deadletter

import "time"

// Notice is a piece of news for people. The transaction that causes the notice also writes it to
// the outbox.
type Notice struct {
	ID       int64
	Kind     NoticeKind
	Key      string // key of the cause; notices with equal keys count as one, and as one incident in a pager
	Severity Severity
	Text     string // what happened, if it is not about a group; untrusted names in it are visible text
	Letter   ID
	Group    GroupID
	Op       OperationID // 0 = none
	At       time.Time
	Channels []string // names in the configuration; none = the notice is kept but not sent; events for machines have channels of their own
}

// NoticeKind is the kind of event that a notice reports.
type NoticeKind string

const (
	NoticeOpened    NoticeKind = "opened"    // a group needs people
	NoticeRegressed NoticeKind = "regressed" // a resolved group came back
	NoticeJoined    NoticeKind = "joined"    // a group joins an incident that people already know of
	NoticeEscalated NoticeKind = "escalated" // a group grows faster than before
	NoticeUpdated   NoticeKind = "updated"   // a group that people know of has many more letters
	NoticeQuiet     NoticeKind = "quiet"     // no letter has died for a while in the groups that people know of
	NoticeResolved  NoticeKind = "resolved"  // the groups that people were notified of no longer need them
	NoticeRefused   NoticeKind = "nacks"     // a queue rejects requeued letters
	NoticeBreaker   NoticeKind = "breaker"   // retries of a queue are held back
	NoticeProblem   NoticeKind = "problem"   // something prevents dlo from doing its work
	NoticeOver      NoticeKind = "over"      // a problem that people were notified of is over
	NoticeDigest    NoticeKind = "digest"

	// The following kinds are events for machines. Webhooks get them, whatever the rules say.
	EventGroupQuiet        NoticeKind = "group.quiet"        // no letter of a group has died for a while
	EventGroupResolved     NoticeKind = "group.resolved"     // a group no longer needs people
	EventOperationFinished NoticeKind = "operation.finished" // done or cancelled
)

// Closes returns true if the notice ends the incident that earlier notices with its key began.
func (k NoticeKind) Closes() bool {
	return k == NoticeResolved || k == NoticeQuiet || k == NoticeOver
}

// ForMachines reports whether only machines get the notice.
func (k NoticeKind) ForMachines() bool {
	return k == EventGroupQuiet || k == EventGroupResolved || k == EventOperationFinished
}

// Delivery is one notice on its way to one channel. It also describes the subject of the notice, as
// it was when the delivery was claimed.
type Delivery struct {
	ID      int64
	Channel string
	Tries   int       // failed tries so far
	DueAt   time.Time // it is not sent before this time
	Notice  Notice
	Group   *GroupRow // group of the notice, or first group of its incident; nil = not about a group

	// The next fields are set only for an incident with several groups.
	Incident []GroupRow // groups that the channel is notified of, in order of joining; for a closing notice, all that it was ever notified of
	Left     []GroupRow // groups that left the incident and that nobody is notified of any more
	With     []int64    // ids of further deliveries that this one includes
	After    *Deploy    // deploy after which all these groups began; nil = no such deploy, or the incident is over

	Operation *Operation // nil = not about an operation
	Digest    *Digest    // nil = no digest
}

// Delivered is the outcome of one try to deliver. Exactly one of Sent, Failed and RetryAt is set.
type Delivered struct {
	ID      int64
	Sent    bool
	With    []int64   // further deliveries included in it
	Failed  bool      // permanently: not retried
	RetryAt time.Time // time of the next try; if Detail is empty, the delivery only waits for the end of quiet hours
	Detail  string    // error without secrets, if all or part of the delivery failed
}
