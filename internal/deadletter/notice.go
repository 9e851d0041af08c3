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
	At       time.Time
	Channels []string // by their names in the configuration; none = it is kept and told to nobody
}

// NoticeKind says what a notice is about.
type NoticeKind string

const (
	NoticeOpened    NoticeKind = "opened"    // a group needs people
	NoticeRegressed NoticeKind = "regressed" // a resolved group came back
	NoticeEscalated NoticeKind = "escalated" // a group grows faster than it did
	NoticeUpdated   NoticeKind = "updated"   // a group that people were told of has many more letters
	NoticeResolved  NoticeKind = "resolved"  // a group that people were told of needs nobody any more
	NoticeRefused   NoticeKind = "nacks"     // a queue refuses what is requeued
	NoticeBreaker   NoticeKind = "breaker"   // retries of a queue are held back
	NoticeProblem   NoticeKind = "problem"   // something keeps dlo itself from its work
	NoticeOver      NoticeKind = "over"      // a problem that people were told of is over
	NoticeDigest    NoticeKind = "digest"
	NoticeTest      NoticeKind = "test" // a person tries a channel
)

// Closes says that the notice ends what others of its key began.
func (k NoticeKind) Closes() bool { return k == NoticeResolved || k == NoticeOver }

// Delivery is one notice on its way to one channel. Group and Digest are what is known when it is
// claimed.
type Delivery struct {
	ID      int64
	Channel string
	Tries   int       // that failed
	DueAt   time.Time // not before
	Notice  Notice
	Group   *GroupRow // of the notice, as it is now; nil = it is about none
	Digest  *Digest   // nil = it is none
}

// Delivered is how a try to deliver ended. Exactly one of Sent, Failed and a RetryAt is set.
type Delivered struct {
	ID      int64
	Sent    bool
	Failed  bool      // for good: it is not tried again
	RetryAt time.Time // of the next try; without a detail it only waits for the end of quiet hours
	Detail  string    // of a failure, or of a part of one: an error without secrets
}
