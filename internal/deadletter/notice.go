package deadletter

import "time"

// Notice is something that people are told: written to the outbox in the commit that causes it.
type Notice struct {
	ID       int64
	Kind     NoticeKind
	Key      string // of the cause: equal keys are one notice, and one incident of a pager
	Severity Severity
	Text     string // what happened, where it is not about a group; untrusted names in it are visible text
	Letter   ID
	Group    GroupID
	Op       OperationID // 0 = none
	At       time.Time
	Channels []string // by their names in the configuration; none = it is kept and told to nobody; machines are told of their own
}

// NoticeKind says what a notice is about.
type NoticeKind string

const (
	NoticeOpened    NoticeKind = "opened"    // a group needs people
	NoticeRegressed NoticeKind = "regressed" // a resolved group came back
	NoticeJoined    NoticeKind = "joined"    // a further group belongs to an incident that people were told of
	NoticeEscalated NoticeKind = "escalated" // a group grows faster than it did
	NoticeUpdated   NoticeKind = "updated"   // a group that people were told of has many more letters
	NoticeQuiet     NoticeKind = "quiet"     // no letter has died for a while of the groups that people were told of
	NoticeResolved  NoticeKind = "resolved"  // the groups that people were told of need nobody any more
	NoticeRefused   NoticeKind = "nacks"     // a queue refuses what is requeued
	NoticeBreaker   NoticeKind = "breaker"   // retries of a queue are held back
	NoticeProblem   NoticeKind = "problem"   // something keeps dlo itself from its work
	NoticeOver      NoticeKind = "over"      // a problem that people were told of is over
	NoticeDigest    NoticeKind = "digest"
	NoticeTest      NoticeKind = "test" // a person tries a channel

	// For machines: webhooks get them, whatever rules say.
	EventGroupQuiet        NoticeKind = "group.quiet"        // no letter of a group has died for a while
	EventGroupResolved     NoticeKind = "group.resolved"     // a group needs nobody any more
	EventOperationFinished NoticeKind = "operation.finished" // it is done, or cancelled
)

// Closes says that the notice ends what others of its key began.
func (k NoticeKind) Closes() bool {
	return k == NoticeResolved || k == NoticeQuiet || k == NoticeOver
}

// ForMachines says that people are not told.
func (k NoticeKind) ForMachines() bool {
	return k == EventGroupQuiet || k == EventGroupResolved || k == EventOperationFinished
}

// Delivery is one notice on its way to one channel. What is not of the delivery or the notice
// itself is what is known when it is claimed.
type Delivery struct {
	ID      int64
	Channel string
	Tries   int       // that failed
	DueAt   time.Time // not before
	Notice  Notice
	Group   *GroupRow // of the notice, or the first of its incident; nil = it is about none

	// Of an incident of several groups.
	Incident []GroupRow // those that the channel is told of, in the order in which they joined; of a notice that closes all that it was told of
	Left     []GroupRow // those that belonged to it, and that nobody is told of any more
	With     []int64    // further deliveries that it says as well
	After    *Deploy    // all of them began after it; nil = not so, or it is over

	Operation *Operation // nil = it is about none
	Digest    *Digest    // nil = it is none
}

// Delivered is how a try to deliver ended. Exactly one of Sent, Failed and a RetryAt is set.
type Delivered struct {
	ID      int64
	Sent    bool
	With    []int64   // further deliveries that were said with it
	Failed  bool      // for good: it is not tried again
	RetryAt time.Time // of the next try; without a detail it only waits for the end of quiet hours
	Detail  string    // of a failure, or of a part of one: an error without secrets
}
