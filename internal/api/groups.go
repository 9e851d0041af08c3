package api

// Group is a failure group. The response to GET /groups contains it.
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
	NoteBy    *string     `json:"note_by"` // who wrote the note; "" = no note; null = unknown
	Snooze    *Snooze     `json:"snooze,omitempty"`
	Resolved  *Resolution `json:"resolved,omitempty"`
	Count     int         `json:"count"`   // letters currently dead or held
	Waiting   int         `json:"waiting"` // letters waiting for a retry
	Overdue   int         `json:"overdue"` // waiting letters whose retries should have ended by now
	Failing   bool        `json:"failing"` // its letters are dying now; if false, the group has been quiet since LastSeen
	FirstSeen Time        `json:"first_seen"`
	LastSeen  Time        `json:"last_seen"`
	Hours     []int       `json:"hours"` // letters per hour over the last 24 hours, oldest first
}

// Snooze describes how long a group is snoozed. The response to GET /groups contains it.
type Snooze struct {
	Until Time   `json:"until"`
	After int    `json:"after,omitempty"` // further letters
	Queue bool   `json:"queue,omitempty"`
	By    string `json:"by"`
}

// Resolution describes how a group was resolved. The response to GET /groups contains it.
type Resolution struct {
	At      Time   `json:"at"`
	By      string `json:"by"`
	Version string `json:"version,omitempty"`
}

// GroupDetail is the response to GET /groups/{id}: a group with everything known about it.
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
	Sampled    int            `json:"sampled"`       // letters sampled for shared
	Different  []Different    `json:"different"`     // differences from quiet letters of its queue, greatest first
	Quiet      int            `json:"quiet_sampled"` // quiet letters sampled for different
}

// GroupEvent is an event in a group's history. The response to GET /groups/{id} contains it.
type GroupEvent struct {
	At     Time   `json:"at"`
	Kind   string `json:"kind"`
	By     string `json:"by"`
	Detail string `json:"detail"`
}

// Shared is a header or body field that the letters of a group have in common, with its most
// frequent value. The response to GET /groups/{id} contains it.
type Shared struct {
	Field   string `json:"field"`
	Value   string `json:"value"`
	Letters int    `json:"letters"` // letters with this value
	Values  int    `json:"values"`  // different ones
}

// Different is a value that is much more frequent, or much less frequent, in the letters of a group
// than in quiet letters of the queue. Quiet letters did not come back after a retry or requeue. The
// response to GET /groups/{id} contains it.
type Different struct {
	Field     string `json:"field"`
	Value     string `json:"value"`     // empty = the field has any value
	Here      int    `json:"here"`      // letters of the group with this value, out of sampled
	Otherwise int    `json:"otherwise"` // quiet letters with this value, out of quiet_sampled
}

// Groups is a page of GET /groups.
type Groups struct {
	Groups []Group `json:"groups"`
	Next   string  `json:"next"` // cursor of the next page; "" on the last page
}
