package deadletter

import "time"

// Guard keeps automatic retries back: those of a queue, or of one group. What people requeue is not
// kept back.
type Guard struct {
	Origin Origin  // broker, vhost and queue; of a group: the queue that its letters died in
	Group  GroupID // 0 = the whole queue
	Title  string  // of the group
	State  GuardState
	Why    string // in words: the reason that a person gave, or what the breaker saw
	By     string
	Since  time.Time
	Until  time.Time // tripped: when the queue is probed; zero otherwise
}

// GuardState is why retries are kept back.
type GuardState string

const (
	GuardPaused  GuardState = "paused"  // by a person, until a person resumes them
	GuardTripped GuardState = "tripped" // by the breaker: almost all came back
	GuardProbing GuardState = "probing" // by the breaker: a few letters were sent, and are being watched
	GuardRamping GuardState = "ramping" // by the breaker: the probe stayed quiet, and the rate is rising to its limit
)

// Allowance says what may leave for the queues of a broker now.
type Allowance struct {
	Rules   []string // with a rate of their own
	Waiters []string // of the broker, that take letters now
	// Allow returns how many automatic retries may leave for a queue, of one of Rules or ("") of
	// all others, and whether they are a probe.
	Allow func(o Origin, rule string) (n int, probe bool)
	// Shares are of the groups of a queue that their breakers hold back or slow down; nil = of
	// none.
	Shares func(o Origin) []GroupShare
}

// GroupShare is how many automatic retries of one group may leave now, within what its queue
// allows.
type GroupShare struct {
	Group GroupID
	N     int
	Probe bool
}

// Breaker is what is recorded of a breaker that is not closed.
type Breaker struct {
	Origin Origin  // broker, vhost and queue
	Group  GroupID // whose retries it holds back; 0 = those of the whole queue
	State  GuardState
	Why    string
	Since  time.Time
	Until  time.Time     // tripped: when it is probed
	Wait   time.Duration // how long it rests before a probe; doubles with each probe that comes back
	Waits  int           // letters that it holds back; only as it is read
}

// QueueCounts is a queue that letters died in, with how many of them are in each state.
type QueueCounts struct {
	Origin Origin // broker, vhost and queue
	Counts map[State]int
}
