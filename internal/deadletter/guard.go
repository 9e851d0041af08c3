package deadletter

import "time"

// Guard holds back the automatic retries of a queue or of one group. It does not hold back letters
// that people requeue.
type Guard struct {
	Origin            // broker, vhost and queue; for a group, those in which its letters died
	Group  GroupID    `json:"group,omitzero"` // absent = the whole queue
	Title  string     `json:"title,omitzero"` // title of the group
	State  GuardState `json:"state"`          // running, or why the retries are held back
	Why    string     `json:"why"`            // reason of the person, or what the breaker has observed
	By     string     `json:"by"`
	Since  time.Time  `json:"since,omitzero"`
	Until  time.Time  `json:"until,omitzero"` // time of the next probe, if the breaker has tripped
}

// GuardState says why retries are held back. If they are not, it is "", which is running in JSON.
type GuardState string

const (
	GuardPaused  GuardState = "paused"  // a person paused the retries, until a person resumes them
	GuardTripped GuardState = "tripped" // the breaker stopped the retries, because almost all letters came back
	GuardProbing GuardState = "probing" // the breaker has sent a few letters and watches them
	// the letters of the probe did not come back, so that the breaker raises the rate to its limit
	GuardRamping GuardState = "ramping"
)

// Allowance limits which letters may be sent now to the queues of a broker.
type Allowance struct {
	Rules   []string // rules that have a rate of their own
	Waiters []string // waiters of the broker that accept letters now
	// Allow returns how many automatic retries may be sent to a queue now. The result "probe" is
	// true if these letters are a probe: a few letters that show whether the queue works again. The
	// parameter "rule" is one of Rules, or "" for all other rules.
	Allow func(o Origin, rule string) (n int, probe bool)
	// Shares returns those groups of a queue for which a breaker holds back or slows down the
	// retries. If Shares is nil, there are no such groups.
	Shares func(o Origin) []GroupShare
}

// GroupShare says how many automatic retries of one group may be sent now. These retries also count
// towards the limit of the queue.
type GroupShare struct {
	Group GroupID
	N     int
	Probe bool
}

// Breaker is the stored state of a breaker that is not closed.
type Breaker struct {
	Origin Origin  // broker, vhost and queue
	Group  GroupID // group whose retries the breaker holds back; 0 = the whole queue
	State  GuardState
	Why    string
	Since  time.Time
	Until  time.Time     // time of the next probe, if the breaker has tripped
	Wait   time.Duration // time until a probe; it doubles with each probe that comes back
	// number of letters that the breaker holds back; set only when the breaker is read from the
	// store
	Waits int
}

// QueueCounts contains a queue in which letters died, and the number of these letters in each
// state.
type QueueCounts struct {
	Origin Origin // broker, vhost and queue
	Counts map[State]int
}
