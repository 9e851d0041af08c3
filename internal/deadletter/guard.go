package deadletter

import "time"

// Guard holds back automatic retries of a queue or of one group. It does not hold back letters that
// people requeue.
type Guard struct {
	Origin Origin  // broker, vhost and queue; for a group: the queue its letters died in
	Group  GroupID // 0 = the whole queue
	Title  string  // the group's title
	State  GuardState
	Why    string // the person's reason, or what the breaker observed, in words
	By     string
	Since  time.Time
	Until  time.Time // tripped: time of the next probe; otherwise zero
}

// GuardState is the reason why retries are held back.
type GuardState string

const (
	GuardPaused  GuardState = "paused"  // by a person, until a person resumes them
	GuardTripped GuardState = "tripped" // by the breaker: almost all came back
	GuardProbing GuardState = "probing" // by the breaker: a few letters were sent and are being watched
	GuardRamping GuardState = "ramping" // by the breaker: the probe did not come back; the rate rises to its limit
)

// Allowance limits the letters that may be sent to the queues of a broker now.
type Allowance struct {
	Rules   []string // rules with their own rate
	Waiters []string // the broker's waiters that accept letters now
	// Allow returns how many automatic retries may leave for a queue, and whether they are a probe.
	// The argument "rule" is one of Rules, or "" for all other rules.
	Allow func(o Origin, rule string) (n int, probe bool)
	// Shares returns the groups of a queue whose own breakers hold back or slow down their retries.
	// A nil function means that there are no such groups.
	Shares func(o Origin) []GroupShare
}

// GroupShare is the number of automatic retries of one group that may leave now, within the queue's
// own limit.
type GroupShare struct {
	Group GroupID
	N     int
	Probe bool
}

// Breaker is the stored state of a breaker that is not closed.
type Breaker struct {
	Origin Origin  // broker, vhost and queue
	Group  GroupID // group whose retries it holds back; 0 = the whole queue
	State  GuardState
	Why    string
	Since  time.Time
	Until  time.Time     // tripped: time of the probe
	Wait   time.Duration // rest before a probe; doubles with each probe that comes back
	Waits  int           // letters that it holds back; set only when read
}

// QueueCounts is a queue in which letters died, with the number of its letters in each state.
type QueueCounts struct {
	Origin Origin // broker, vhost and queue
	Counts map[State]int
}
