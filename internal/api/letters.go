// Package api is the JSON of the API under /api/v1: web writes it, the command line reads it, and openapi.yaml describes it. It holds
// structs and how their values are written, and no rule. Times are RFC 3339 in UTC and absent where they are not known; bytes are base64; a
// pointer that is null is unknown.
package api

import (
	"encoding/json"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

type Row struct {
	ID         deadletter.ID    `json:"id"`
	State      deadletter.State `json:"state"`
	WaitsIn    string           `json:"waits_in"`
	Broker     string           `json:"broker"`
	VHost      string           `json:"vhost"`
	Queue      string           `json:"queue"`
	Reason     string           `json:"reason"`
	Type       string           `json:"type"`
	Group      string           `json:"group"`
	Attempts   int              `json:"attempts"`
	Exchange   string           `json:"exchange"`
	RoutingKey string           `json:"routing_key"`
	ReceivedAt time.Time        `json:"received_at"`
	DiedAt     time.Time        `json:"died_at,omitzero"`
	DueAt      time.Time        `json:"due_at,omitzero"`
	Size       int              `json:"size"`
	Summary    string           `json:"summary"`
	Error      string           `json:"error"`
}

type FacetValue struct {
	Value string `json:"value"`
	Count int    `json:"count"`
}

type Bar struct {
	At        time.Time `json:"at"`
	Waiting   int       `json:"waiting"`
	Recovered int       `json:"recovered"`
	Dead      int       `json:"dead"`
	Discarded int       `json:"discarded"`
}

type Properties struct {
	ContentType     string    `json:"content_type,omitempty"`
	ContentEncoding string    `json:"content_encoding,omitempty"`
	DeliveryMode    uint8     `json:"delivery_mode,omitempty"`
	Priority        uint8     `json:"priority,omitempty"`
	CorrelationID   string    `json:"correlation_id,omitempty"`
	ReplyTo         string    `json:"reply_to,omitempty"`
	Expiration      string    `json:"expiration,omitempty"`
	MessageID       string    `json:"message_id,omitempty"`
	Timestamp       time.Time `json:"timestamp,omitzero"`
	Type            string    `json:"type,omitempty"`
	UserID          string    `json:"user_id,omitempty"`
	AppID           string    `json:"app_id,omitempty"`
}

type Death struct {
	Queue       string    `json:"queue"`
	Exchange    string    `json:"exchange"`
	RoutingKeys []string  `json:"routing_keys"`
	Reason      string    `json:"reason"`
	Count       int64     `json:"count"`
	FirstAt     time.Time `json:"first_at,omitzero"`
}

type Attempt struct {
	Number    int                    `json:"number"`
	Queue     string                 `json:"queue"`
	Operation string                 `json:"operation"`
	Sends     int                    `json:"sends"`
	Outcome   deadletter.OutcomeKind `json:"outcome"`
	Detail    string                 `json:"detail"`
	Revision  int                    `json:"revision,omitempty"` // that was sent; absent = as received
	At        time.Time              `json:"at"`
	ClosedAt  time.Time              `json:"closed_at,omitzero"`
	WaitsIn   string                 `json:"waits_in,omitempty"`
	WaitUntil time.Time              `json:"wait_until,omitzero"`
	Back      *Return                `json:"came_back,omitempty"`
}

type Return struct {
	At     time.Time `json:"at"`
	Queue  string    `json:"queue"`
	Reason string    `json:"reason"`
	Copies int       `json:"further_copies"`
}

type Event struct {
	At        time.Time `json:"at"`
	Kind      string    `json:"kind"`
	Actor     string    `json:"actor"`
	Detail    string    `json:"detail"`
	Operation string    `json:"operation"`
}

type Decoded struct {
	Kind          string          `json:"kind"`
	Type          string          `json:"type"`
	Score         float64         `json:"score,omitempty"` // of a type that the body was matched as, 0 to 1
	Chosen        string          `json:"chosen"`
	Set           string          `json:"set"`
	JSON          json.RawMessage `json:"json"` // null where there is none
	UnknownFields int             `json:"unknown_fields"`
	Problem       string          `json:"problem"`
}

type Letter struct {
	Row
	Failure      *Failure                    `json:"failure,omitempty"` // what its consumer said of its latest death
	Attempts     []Attempt                   `json:"attempts"`          // instead of the number that lists have
	AttemptsUsed int                         `json:"attempts_used"`
	Inbox        string                      `json:"inbox"`
	Severity     deadletter.Severity         `json:"severity"`
	Rule         string                      `json:"rule"`  // that decided about it last
	Rules        []RuleStep                  `json:"rules"` // the rules in use, asked about it now; null where they are not known
	Why          string                      `json:"why"`
	Twin         deadletter.ID               `json:"twin"`
	Siblings     []deadletter.ID             `json:"siblings"`
	Unverified   bool                        `json:"unverified"`
	Operation    string                      `json:"operation"`
	ChangedAt    time.Time                   `json:"changed_at,omitzero"`
	Properties   Properties                  `json:"properties"` // as first received, and as it is requeued
	Headers      map[string]deadletter.Typed `json:"headers"`
	Arrived      Arrived                     `json:"arrived"` // as it came last
	Deaths       []Death                     `json:"deaths"`
	History      []Event                     `json:"history"`
	Revisions    []Revision                  `json:"revisions"` // oldest first; the newest is what decoded shows, and what a requeue sends
	Masked       bool                        `json:"masked"`    // something in it is masked; without reveal=1 a masked body is null
	Body         []byte                      `json:"body"`
	Decoded      Decoded                     `json:"decoded"`
	Candidates   []Match                     `json:"candidates"` // types that read the body, best first, where nothing names one
}

type Arrived struct {
	Properties Properties                  `json:"properties"`
	Headers    map[string]deadletter.Typed `json:"headers"`
}

type Letters struct {
	Letters []Row  `json:"letters"`
	Next    string `json:"next"` // cursor of the next page; "" at the end
}

type Count struct {
	Count int  `json:"count"`
	Exact bool `json:"exact"`
}

type Facets struct {
	Facets  map[string][]FacetValue `json:"facets"`
	Sampled int                     `json:"sampled"` // the newest so many letters were counted; 0 = all
}

type Histogram struct {
	From    time.Time `json:"from,omitzero"`
	To      time.Time `json:"to,omitzero"`
	Step    float64   `json:"step"`    // seconds of one bar
	Sampled int       `json:"sampled"` // the newest so many letters were counted; 0 = all
	Bars    []Bar     `json:"bars"`
}
