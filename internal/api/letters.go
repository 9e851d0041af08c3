// Package api is the JSON of the API under /api/v1: web writes it, the command line reads it, and
// openapi.yaml describes it. It holds structs and how their values are written, and no rule. Times
// are RFC 3339 in UTC and absent where they are not known; bytes are base64; a pointer that is null
// is unknown. A request leaves out what has its default.
package api

import (
	"encoding/json"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Row is a letter in GET /letters.
type Row struct {
	ID         deadletter.ID    `json:"id"`
	State      deadletter.State `json:"state"`
	WaitsIn    string           `json:"waits_in"` // queue of the broker; "": none
	Broker     string           `json:"broker"`
	VHost      string           `json:"vhost"`
	Queue      string           `json:"queue"`
	Reason     string           `json:"reason"`
	Type       string           `json:"type"`
	Group      string           `json:"group"`
	Attempts   int              `json:"attempts"` // used so far
	Exchange   string           `json:"exchange"`
	RoutingKey string           `json:"routing_key"`
	ReceivedAt time.Time        `json:"received_at"`
	DiedAt     time.Time        `json:"died_at,omitzero"`
	DueAt      time.Time        `json:"due_at,omitzero"`
	Size       int              `json:"size"` // of the body, bytes
	Summary    string           `json:"summary"`
	Error      string           `json:"error"`
}

// FacetValue is a value of a field, with how many letters have it, in GET /letters/facets.
type FacetValue struct {
	Value string `json:"value"`
	Count int    `json:"count"`
}

// Bar is a bar of GET /letters/histogram: letters by what became of them.
type Bar struct {
	At        time.Time `json:"at"` // its start
	Waiting   int       `json:"waiting"`
	Recovered int       `json:"recovered"`
	Dead      int       `json:"dead"`
	Discarded int       `json:"discarded"`
}

// Properties are the properties of a message without its headers, in GET /letters/{id} and
// GET /letters/export.
type Properties struct {
	ContentType     string    `json:"content_type,omitempty"`
	ContentEncoding string    `json:"content_encoding,omitempty"`
	DeliveryMode    uint8     `json:"delivery_mode,omitempty"`
	Priority        uint8     `json:"priority,omitempty"`
	CorrelationID   string    `json:"correlation_id,omitempty"`
	ReplyTo         string    `json:"reply_to,omitempty"`
	Expiration      string    `json:"expiration,omitempty"` // milliseconds
	MessageID       string    `json:"message_id,omitempty"`
	Timestamp       time.Time `json:"timestamp,omitzero"`
	Type            string    `json:"type,omitempty"`
	UserID          string    `json:"user_id,omitempty"`
	AppID           string    `json:"app_id,omitempty"`
}

// Death is a death of a letter as its headers tell it, in GET /letters/{id}.
type Death struct {
	Queue       string    `json:"queue"`
	Exchange    string    `json:"exchange"`
	RoutingKeys []string  `json:"routing_keys"`
	Reason      string    `json:"reason"`
	Count       int64     `json:"count"`
	FirstAt     time.Time `json:"first_at,omitzero"`
}

// Attempt is an attempt to requeue a letter, in GET /letters/{id}.
type Attempt struct {
	Number    int                    `json:"number"` // from 1
	Queue     string                 `json:"queue"`
	Operation string                 `json:"operation"`
	Sends     int                    `json:"sends"` // how often it went out
	Outcome   deadletter.OutcomeKind `json:"outcome"`
	Detail    string                 `json:"detail"`
	Revision  int                    `json:"revision,omitempty"` // that was sent; absent = as received
	At        time.Time              `json:"at"`
	ClosedAt  time.Time              `json:"closed_at,omitzero"`
	WaitsIn   string                 `json:"waits_in,omitempty"`
	WaitUntil time.Time              `json:"wait_until,omitzero"`
	Back      *Return                `json:"came_back,omitempty"`
}

// Return is how an attempt came back, in GET /letters/{id}.
type Return struct {
	At     time.Time `json:"at"`
	Queue  string    `json:"queue"`
	Reason string    `json:"reason"`
	Copies int       `json:"further_copies"`
}

// Event is a line of the history of a letter, in GET /letters/{id}.
type Event struct {
	At        time.Time `json:"at"`
	Kind      string    `json:"kind"`
	Actor     string    `json:"actor"`
	Detail    string    `json:"detail"`
	Operation string    `json:"operation"`
}

// Decoded is what a body was read as, in GET /letters/{id} and POST /types/match.
type Decoded struct {
	Kind          string          `json:"kind"`
	Type          string          `json:"type"`
	Score         float64         `json:"score,omitempty"`      // of a match, from 0 to 1
	ShapeOnly     bool            `json:"shape_only,omitempty"` // a match, and nothing in the letter or its queue names the type
	Chosen        string          `json:"chosen"`
	Set           string          `json:"set"`
	JSON          json.RawMessage `json:"json"` // null where there is none
	UnknownFields int             `json:"unknown_fields"`
	Problem       string          `json:"problem"`
}

// Letter is the answer of GET /letters/{id}: a letter with all that is known of it.
type Letter struct {
	Row
	Failure      *Failure            `json:"failure,omitempty"` // of its latest death
	Attempts     []Attempt           `json:"attempts"`          // instead of the number of Row
	AttemptsUsed int                 `json:"attempts_used"`
	Inbox        string              `json:"inbox"`
	Severity     deadletter.Severity `json:"severity"`
	Rule         string              `json:"rule"` // that applied last
	// Rules are the rules in use, asked about it now; null where they are not known.
	Rules      []RuleStep      `json:"rules"`
	Why        string          `json:"why"`
	Twin       deadletter.ID   `json:"twin"`
	Siblings   []deadletter.ID `json:"siblings"`
	Unverified bool            `json:"unverified"`
	Operation  string          `json:"operation"`
	ChangedAt  time.Time       `json:"changed_at,omitzero"`
	// Properties and headers are as first received, and as it is requeued.
	Properties Properties                  `json:"properties"`
	Headers    map[string]deadletter.Typed `json:"headers"`
	Arrived    Arrived                     `json:"arrived"` // as it came last
	Deaths     []Death                     `json:"deaths"`
	History    []Event                     `json:"history"`
	// Revisions are oldest first; the newest is what decoded shows, and what a requeue sends.
	Revisions []Revision `json:"revisions"`
	// Masked says that something in it is masked; without reveal=1 a masked body is null.
	Masked  bool    `json:"masked"`
	Body    []byte  `json:"body"`
	Decoded Decoded `json:"decoded"`
	// Candidates are the types that read the body, best first, where nothing names one.
	Candidates []Match `json:"candidates"`
	Matching
}

// Arrived is a letter as it came last, in GET /letters/{id}.
type Arrived struct {
	Properties Properties                  `json:"properties"`
	Headers    map[string]deadletter.Typed `json:"headers"`
}

// Letters is a page of GET /letters.
type Letters struct {
	Letters []Row  `json:"letters"`
	Next    string `json:"next"` // cursor of the next page; "" at the end

	Looked *Looked `json:"looked,omitempty"` // of a query on a path of the body that is not indexed
}

// Looked says how far letters were looked through, in GET /letters.
type Looked struct {
	Letters int       `json:"letters"`       // that were looked at
	Back    time.Time `json:"back,omitzero"` // the last of them was received then
	All     bool      `json:"all"`           // there are no further ones
}

// Count is the answer of GET /letters/count.
type Count struct {
	Count int  `json:"count"`
	Exact bool `json:"exact"` // false: there are more
}

// Facets is the answer of GET /letters/facets: values by field, most letters first.
type Facets struct {
	Facets  map[string][]FacetValue `json:"facets"`
	Sampled int                     `json:"sampled"` // newest letters that were counted; 0: all
}

// Histogram is the answer of GET /letters/histogram.
type Histogram struct {
	From    time.Time `json:"from,omitzero"`
	To      time.Time `json:"to,omitzero"`
	Step    float64   `json:"step"`    // seconds of one bar
	Sampled int       `json:"sampled"` // newest letters that were counted; 0: all
	Bars    []Bar     `json:"bars"`
}
