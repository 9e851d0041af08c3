// Package api defines the JSON format of the API under /api/v1, which package web writes, the
// command line reads, and openapi.yaml describes. The package contains structs and their encoding,
// but no logic. An unknown value is null. An empty text means that there is no value. A time is
// omitted if there is no such time. Bytes are base64. Requests omit fields that have their default
// value.
package api

import (
	"encoding/json"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Row is one letter of the list. The response to GET /letters contains it.
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
	ReceivedAt Time             `json:"received_at"`
	DiedAt     *Time            `json:"died_at"` // null: unknown
	DueAt      Time             `json:"due_at,omitzero"`
	Size       int              `json:"size"` // size of the body, in bytes
	Summary    string           `json:"summary"`
	Error      string           `json:"error"`
}

// FacetValue is one value of a field, with the number of letters that have the value. The response
// to GET /letters/facets contains it.
type FacetValue struct {
	Value string `json:"value"`
	Count int    `json:"count"`
}

// Bar is a bar of GET /letters/histogram. It counts letters by their fate.
type Bar struct {
	At        Time `json:"at"` // its start
	Waiting   int  `json:"waiting"`
	Recovered int  `json:"recovered"`
	Dead      int  `json:"dead"`
	Discarded int  `json:"discarded"`
}

// Properties are the properties of a message without its headers. The responses to GET
// /letters/{id} and GET /letters/export contain them.
type Properties struct {
	ContentType     string `json:"content_type,omitempty"`
	ContentEncoding string `json:"content_encoding,omitempty"`
	DeliveryMode    uint8  `json:"delivery_mode,omitempty"`
	Priority        uint8  `json:"priority,omitempty"`
	CorrelationID   string `json:"correlation_id,omitempty"`
	ReplyTo         string `json:"reply_to,omitempty"`
	Expiration      string `json:"expiration,omitempty"` // milliseconds
	MessageID       string `json:"message_id,omitempty"`
	Timestamp       Time   `json:"timestamp,omitzero"`
	Type            string `json:"type,omitempty"`
	UserID          string `json:"user_id,omitempty"`
	AppID           string `json:"app_id,omitempty"`
}

// Death is a death recorded in a letter's headers. The response to GET /letters/{id} contains it.
type Death struct {
	Queue       string   `json:"queue"`
	Exchange    string   `json:"exchange"`
	RoutingKeys []string `json:"routing_keys"`
	Reason      string   `json:"reason"`
	Count       int64    `json:"count"`
	FirstAt     *Time    `json:"first_at"` // null: unknown
}

// Attempt is an attempt to requeue a letter. The response to GET /letters/{id} contains it.
type Attempt struct {
	Number    int                    `json:"number"` // from 1
	Queue     string                 `json:"queue"`
	Operation string                 `json:"operation"`
	Sends     int                    `json:"sends"` // how often it was sent
	Outcome   deadletter.OutcomeKind `json:"outcome"`
	Detail    string                 `json:"detail"`
	Revision  int                    `json:"revision,omitempty"` // revision sent; missing = as received
	At        Time                   `json:"at"`
	ClosedAt  Time                   `json:"closed_at,omitzero"`
	WaitsIn   string                 `json:"waits_in,omitempty"`
	WaitUntil Time                   `json:"wait_until,omitzero"`
	Back      *Return                `json:"came_back,omitempty"`
}

// Return describes how the letter of an attempt came back. The response to GET /letters/{id}
// contains it.
type Return struct {
	At     Time   `json:"at"`
	Queue  string `json:"queue"`
	Reason string `json:"reason"`
	Copies int    `json:"further_copies"`
}

// Event is an entry in a letter's history. The response to GET /letters/{id} contains it.
type Event struct {
	At        Time   `json:"at"`
	Kind      string `json:"kind"`
	Actor     string `json:"actor"`
	Detail    string `json:"detail"`
	Operation string `json:"operation"`
}

// Decoded is the result of decoding a body. The responses to GET /letters/{id} and POST
// /types/match contain it.
type Decoded struct {
	Kind          string          `json:"kind"`
	Type          string          `json:"type"`
	Score         float64         `json:"score,omitempty"`      // match score, from 0 to 1
	ShapeOnly     bool            `json:"shape_only,omitempty"` // matched by shape only: the letter and its queue do not name the type
	Chosen        string          `json:"chosen"`
	Set           string          `json:"set"`
	JSON          json.RawMessage `json:"json"` // null if there is none
	UnknownFields int             `json:"unknown_fields"`
	Problem       string          `json:"problem"`
}

// Letter is the response to GET /letters/{id}: a letter with everything known about it.
type Letter struct {
	Row
	Failure      *Failure            `json:"failure,omitempty"` // report on its latest death
	Attempts     []Attempt           `json:"attempts"`          // replaces the number in Row
	AttemptsUsed int                 `json:"attempts_used"`
	Inbox        string              `json:"inbox"`
	Severity     deadletter.Severity `json:"severity"`
	Rule         string              `json:"rule"` // the last rule that applied
	// Rules are the current rules and how they apply to the letter now; null if they are unknown.
	Rules      []RuleStep      `json:"rules"`
	Why        string          `json:"why"`
	Twin       deadletter.ID   `json:"twin"`
	Siblings   []deadletter.ID `json:"siblings"`
	Unverified bool            `json:"unverified"`
	Operation  string          `json:"operation"`
	ChangedAt  Time            `json:"changed_at,omitzero"`
	// Properties and Headers have the values with which the letter was first received. A requeue
	// sends these values.
	Properties Properties                  `json:"properties"`
	Headers    map[string]deadletter.Typed `json:"headers"`
	Arrived    Arrived                     `json:"arrived"` // as last received
	Deaths     []Death                     `json:"deaths"`
	History    []Event                     `json:"history"`
	// Revisions are oldest first. decoded shows the newest revision, and a requeue sends it.
	Revisions []Revision `json:"revisions"`
	// Withheld reports that body, headers and properties are omitted, because the request is not
	// allowed to read them.
	Withheld bool `json:"withheld,omitzero"`
	// Masked reports whether part of the letter is masked. Without reveal=1 a masked body is null.
	Masked  bool    `json:"masked"`
	Body    []byte  `json:"body"`
	Decoded Decoded `json:"decoded"`
	// Candidates are the types that can decode the body, best first. They are set if nothing names
	// the body's type.
	Candidates []Match `json:"candidates"`
	Matching
}

// Arrived is a letter in the form in which it was last received. The response to GET /letters/{id}
// contains it.
type Arrived struct {
	Properties Properties                  `json:"properties"`
	Headers    map[string]deadletter.Typed `json:"headers"`
}

// Letters is a page of GET /letters.
type Letters struct {
	Letters []Row  `json:"letters"`
	Next    string `json:"next"` // cursor of the next page; "" at the end

	Looked *Looked `json:"looked,omitempty"` // only for a query on an unindexed body path
}

// Looked describes how far a query has scanned the letters. The response to GET /letters contains
// it.
type Looked struct {
	Letters int  `json:"letters"`       // letters scanned
	Back    Time `json:"back,omitzero"` // when the last scanned letter was received
	All     bool `json:"all"`           // every letter has been scanned
}

// Count is the response to GET /letters/count.
type Count struct {
	Count int  `json:"count"`
	Exact bool `json:"exact"` // false = there are more
}

// Facets is the response to GET /letters/facets: values by field, most letters first.
type Facets struct {
	Facets  map[string][]FacetValue `json:"facets"`
	Sampled int                     `json:"sampled"` // newest letters counted; 0 = all
}

// Histogram is the response to GET /letters/histogram.
type Histogram struct {
	From    Time     `json:"from,omitzero"`
	To      Time     `json:"to,omitzero"`
	Step    Duration `json:"step"`    // of one bar
	Sampled int      `json:"sampled"` // newest letters counted; 0 = all
	Bars    []Bar    `json:"bars"`
}
