package api

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Group is a failure group. The response to GET /groups contains it.
type Group struct {
	ID       deadletter.GroupID `json:"id"`
	Title    string             `json:"title"`
	Broker   string             `json:"broker"`
	VHost    string             `json:"vhost"`
	Queue    string             `json:"queue"`
	Type     string             `json:"type"`
	Reason   string             `json:"reason"`
	Error    string             `json:"error"`
	Severity string             `json:"severity"`
	Chosen   bool               `json:"severity_chosen"` // a person chose the severity
	Status   string             `json:"status"`
	Owner    string             `json:"owner"`
	Ticket   string             `json:"ticket"`
	Note     string             `json:"note"`
	NoteBy   *string            `json:"note_by"` // who wrote the note; "" = no note; null = unknown
	Snooze   *Snooze            `json:"snooze,omitzero"`
	Resolved *Resolution        `json:"resolved,omitzero"`
	Count    int                `json:"count"`   // number of letters that are dead or held now
	Waiting  int                `json:"waiting"` // number of letters that wait for a retry
	Overdue  int                `json:"overdue"` // number of waiting letters whose retries should be over by now
	// letters of the group are dying now; false = the group has been quiet since LastSeen
	Failing   bool      `json:"failing"`
	FirstSeen time.Time `json:"first_seen"`
	LastSeen  time.Time `json:"last_seen"`
	Hours     []int     `json:"hours"` // number of letters in each of the last 24 hours, oldest hour first
}

// Snooze says how long a group is snoozed. The response to GET /groups contains it.
type Snooze struct {
	Until time.Time `json:"until"`
	After int       `json:"after,omitzero"` // number of further letters that end the snooze
	Queue bool      `json:"queue,omitzero"`
	By    string    `json:"by"`
}

// Resolution says how a group was resolved. The response to GET /groups contains it.
type Resolution struct {
	At      time.Time `json:"at"`
	By      string    `json:"by"`
	Version string    `json:"version,omitzero"`
}

// GroupDetail is the response to GET /groups/{id}. It contains everything that is known about a
// group.
type GroupDetail struct {
	Group
	MergedInto deadletter.GroupID       `json:"merged_into,omitzero"`
	Merged     []Group                  `json:"merged"`
	Letters    map[deadletter.State]int `json:"letters"` // number of letters in each state
	Rules      []string                 `json:"rules"`
	Paused     bool                     `json:"paused"`
	History    []deadletter.Event       `json:"history"`
	Operations []Operation              `json:"operations"`
	Deploys    []deadletter.Deploy      `json:"deploys"`
	Suspect    *deadletter.Deploy       `json:"suspect,omitzero"`
	Shared     []Shared                 `json:"shared"`
	Sampled    int                      `json:"sampled"` // number of letters that were sampled for shared
	// differences from the quiet letters of the queue, the greatest first
	Different []Different `json:"different"`
	Quiet     int         `json:"quiet_sampled"` // number of quiet letters that were sampled for different
}

// Shared is a header or a body field that many letters of a group have, with its most frequent
// value. The response to GET /groups/{id} contains it.
type Shared struct {
	Field   string `json:"field"`
	Value   string `json:"value"`
	Letters int    `json:"letters"` // number of letters that have this value
	Values  int    `json:"values"`  // number of different values
}

// Different is a value that is much more frequent, or much less frequent, in the letters of a group
// than in quiet letters of the queue. Quiet letters did not come back after a retry or requeue. The
// response to GET /groups/{id} contains it.
type Different struct {
	Field string `json:"field"`
	Value string `json:"value"` // empty = any value of the field
	// number of letters of the group with this value; the sample has sampled letters
	Here      int `json:"here"`
	Otherwise int `json:"otherwise"` // number of quiet letters with this value; the sample has quiet_sampled letters
}

// Groups is a page of GET /groups.
type Groups struct {
	Groups []Group `json:"groups"`
	Next   string  `json:"next"` // cursor of the next page; "" = this is the last page
}
