package api

import "time"

// Group is a failure group, in GET /groups.
type Group struct {
	ID        string      `json:"id"`
	Title     string      `json:"title"`
	Broker    string      `json:"broker"`
	VHost     string      `json:"vhost"`
	Queue     string      `json:"queue"`
	Type      string      `json:"type"`
	Reason    string      `json:"reason"`
	Error     string      `json:"error"`
	Severity  string      `json:"severity"`
	Chosen    bool        `json:"severity_chosen"` // by a person
	Status    string      `json:"status"`
	Owner     string      `json:"owner"`
	Ticket    string      `json:"ticket"`
	Note      string      `json:"note"`
	Snooze    *Snooze     `json:"snooze,omitempty"`
	Resolved  *Resolution `json:"resolved,omitempty"`
	Count     int         `json:"count"`   // letters now dead or held
	Waiting   int         `json:"waiting"` // letters that wait for a retry
	Overdue   int         `json:"overdue"` // of those: letters whose retries should have been over
	Failing   bool        `json:"failing"` // letters of it die now; otherwise it is quiet since LastSeen
	FirstSeen time.Time   `json:"first_seen"`
	LastSeen  time.Time   `json:"last_seen"`
	Hours     []int       `json:"hours"` // letters of each of the last 24 hours, oldest first
}

// Snooze is until when a group is put off, in GET /groups.
type Snooze struct {
	Until time.Time `json:"until"`
	After int       `json:"after,omitempty"` // further letters
	Queue bool      `json:"queue,omitempty"`
	By    string    `json:"by"`
}

// Resolution is how a group was resolved, in GET /groups.
type Resolution struct {
	At      time.Time `json:"at"`
	By      string    `json:"by"`
	Version string    `json:"version,omitempty"`
}

// GroupDetail is the answer of GET /groups/{id}: a group with all that is known of it.
type GroupDetail struct {
	Group
	MergedInto string         `json:"merged_into,omitempty"`
	Merged     []Group        `json:"merged"`
	Letters    map[string]int `json:"letters"` // by state
	Rules      []string       `json:"rules"`
	Paused     bool           `json:"paused"`
	History    []GroupEvent   `json:"history"`
	Operations []Operation    `json:"operations"`
	Deploys    []Deploy       `json:"deploys"`
	Suspect    *Deploy        `json:"suspect,omitempty"`
	Shared     []Shared       `json:"shared"`
	Sampled    int            `json:"sampled"`       // letters that shared was read from
	Different  []Different    `json:"different"`     // from the letters of its queue that stayed quiet, the greatest difference first
	Quiet      int            `json:"quiet_sampled"` // of those: letters that different was read from
}

// GroupEvent is what happened to a group, in GET /groups/{id}.
type GroupEvent struct {
	At     time.Time `json:"at"`
	Kind   string    `json:"kind"`
	By     string    `json:"by"`
	Detail string    `json:"detail"`
}

// Shared is what letters of a group have in common, in GET /groups/{id}: a header or a field of the
// body, and the value that most of them have.
type Shared struct {
	Field   string `json:"field"`
	Value   string `json:"value"`
	Letters int    `json:"letters"` // with the value
	Values  int    `json:"values"`  // different ones
}

// Different is what letters of a group have much more often, or much less often, than the letters
// of its queue that stayed quiet after a retry or requeue, in GET /groups/{id}.
type Different struct {
	Field     string `json:"field"`
	Value     string `json:"value"`     // empty: the field has some value
	Here      int    `json:"here"`      // letters of the group with it, of sampled
	Otherwise int    `json:"otherwise"` // quiet letters with it, of quiet_sampled
}

// Groups is a page of GET /groups.
type Groups struct {
	Groups []Group `json:"groups"`
	Next   string  `json:"next,omitempty"` // cursor of the next page; absent at the end
}
