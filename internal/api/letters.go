// Package api defines the JSON format of the API under /api/v1. Package web writes this format, the
// command line reads it, and openapi.yaml describes it. The package contains structs and their
// encoding, but no logic. An unknown value is null. An empty text means that there is no value. A
// time is omitted if there is no such time. Bytes are base64. Requests omit fields that have their
// default value.
package api

import (
	"encoding/json"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Row is one letter of a list. The response to GET /letters contains it.
type Row struct {
	ID         deadletter.ID    `json:"id"`
	State      deadletter.State `json:"state"`
	WaitsIn    string           `json:"waits_in"` // the queue of the broker in which the letter waits; "" = none
	Broker     string           `json:"broker"`
	VHost      string           `json:"vhost"`
	Queue      string           `json:"queue"`
	Reason     string           `json:"reason"`
	Type       string           `json:"type"`
	Group      string           `json:"group"`
	Attempts   int              `json:"attempts"` // number of attempts used so far
	Exchange   string           `json:"exchange"`
	RoutingKey string           `json:"routing_key"`
	ReceivedAt Time             `json:"received_at"`
	DiedAt     *Time            `json:"died_at"` // null = unknown
	DueAt      Time             `json:"due_at,omitzero"`
	Size       int              `json:"size"` // the size of the body in bytes
	Summary    string           `json:"summary"`
	Error      string           `json:"error"`
}

// FacetValue is one value of a field, and the number of letters that have it. The response to GET
// /letters/facets contains it.
type FacetValue struct {
	Value string `json:"value"`
	Count int    `json:"count"`
}

// Bar is one bar of GET /letters/histogram. It covers the letters of one period, and says how many
// of them wait, recovered, are dead or were discarded.
type Bar struct {
	At        Time `json:"at"` // when the time of the bar begins
	Waiting   int  `json:"waiting"`
	Recovered int  `json:"recovered"`
	Dead      int  `json:"dead"`
	Discarded int  `json:"discarded"`
}

// Properties are the properties of a message without its headers. The responses to GET
// /letters/{id} and GET /letters/export contain them.
type Properties struct {
	ContentType     string `json:"content_type,omitzero"`
	ContentEncoding string `json:"content_encoding,omitzero"`
	DeliveryMode    uint8  `json:"delivery_mode,omitzero"`
	Priority        uint8  `json:"priority,omitzero"`
	CorrelationID   string `json:"correlation_id,omitzero"`
	ReplyTo         string `json:"reply_to,omitzero"`
	Expiration      string `json:"expiration,omitzero"` // in milliseconds
	MessageID       string `json:"message_id,omitzero"`
	Timestamp       Time   `json:"timestamp,omitzero"`
	Type            string `json:"type,omitzero"`
	UserID          string `json:"user_id,omitzero"`
	AppID           string `json:"app_id,omitzero"`
}

// Death is one death that the headers of a letter record. The response to GET /letters/{id}
// contains it.
type Death struct {
	Queue       string   `json:"queue"`
	Exchange    string   `json:"exchange"`
	RoutingKeys []string `json:"routing_keys"`
	Reason      string   `json:"reason"`
	Count       int64    `json:"count"`
	FirstAt     *Time    `json:"first_at"` // null = unknown
}

// Attempt is an attempt to requeue a letter. The response to GET /letters/{id} contains it.
type Attempt struct {
	Number    int                    `json:"number"` // counted from 1
	Queue     string                 `json:"queue"`
	Operation string                 `json:"operation"`
	Sends     int                    `json:"sends"` // how often the letter was sent in this attempt
	Outcome   deadletter.OutcomeKind `json:"outcome"`
	Detail    string                 `json:"detail"`
	// number of the revision that was sent; missing = the letter as received
	Revision  int     `json:"revision,omitzero"`
	At        Time    `json:"at"`
	ClosedAt  Time    `json:"closed_at,omitzero"`
	WaitsIn   string  `json:"waits_in,omitzero"`
	WaitUntil Time    `json:"wait_until,omitzero"`
	Back      *Return `json:"came_back,omitzero"`
}

// Return says how the letter came back after an attempt. The response to GET /letters/{id} contains
// it.
type Return struct {
	At     Time   `json:"at"`
	Queue  string `json:"queue"`
	Reason string `json:"reason"`
	Copies int    `json:"further_copies"`
}

// Event is one entry in the history of a letter. The response to GET /letters/{id} contains it.
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
	Kind  string  `json:"kind"`
	Type  string  `json:"type"`
	Score float64 `json:"score,omitzero"` // score of the match, from 0 to 1
	// only the shape of the body was matched: neither the letter nor its queue names the type
	ShapeOnly     bool            `json:"shape_only,omitzero"`
	Chosen        string          `json:"chosen"`
	Set           string          `json:"set"`
	JSON          json.RawMessage `json:"json"` // null = there is no JSON
	UnknownFields int             `json:"unknown_fields"`
	Problem       string          `json:"problem"`
}

// Letter is the response to GET /letters/{id}. It contains everything that is known about a letter.
type Letter struct {
	Row
	Failure *Failure `json:"failure,omitzero"` // what the consumer reported about the latest death
	// replaces the field of the same name in Row, which is a number
	Attempts     []Attempt           `json:"attempts"`
	AttemptsUsed int                 `json:"attempts_used"`
	Inbox        string              `json:"inbox"`
	Severity     deadletter.Severity `json:"severity"`
	Rule         string              `json:"rule"` // the rule that applied last
	// Rules holds the current rules, and how they apply to the letter now. It is null if they are
	// unknown.
	Rules      *[]RuleStep     `json:"rules"`
	Why        string          `json:"why"`
	Twin       deadletter.ID   `json:"twin"`
	Siblings   []deadletter.ID `json:"siblings"`
	Unverified bool            `json:"unverified"`
	// Damaged names the contents that changed in the file of the store after dlo stored them.
	Damaged string `json:"damaged,omitzero"`
	// Unchecked reports whether the store has no checksum of the contents yet.
	Unchecked bool   `json:"unchecked,omitzero"`
	Operation string `json:"operation"`
	ChangedAt Time   `json:"changed_at,omitzero"`
	// Properties and Headers belong to the message that dlo received when the letter arrived for
	// the first time. A requeue sends them.
	Properties Properties                  `json:"properties"`
	Headers    map[string]deadletter.Typed `json:"headers"`
	Arrived    Arrived                     `json:"arrived"` // the letter as it was received last
	Deaths     []Death                     `json:"deaths"`
	History    []Event                     `json:"history"`
	// Revisions lists the oldest revision first. If the letter is requeued, dlo sends the newest
	// revision. The field "decoded" shows the newest revision too.
	Revisions []Revision `json:"revisions"`
	// Withheld reports whether body, headers and properties are omitted because the caller may not
	// read them.
	Withheld bool `json:"withheld,omitzero"`
	// Masked reports whether a part of the letter is masked. The body of a masked letter is null,
	// unless the request has reveal=1.
	Masked  bool    `json:"masked"`
	Body    *[]byte `json:"body"`
	Decoded Decoded `json:"decoded"`
	// Candidates lists the types that can decode the body, the best first. It is set only if nothing
	// names the type of the body.
	Candidates []Match `json:"candidates"`
	Matching
}

// Arrived holds what dlo received when the letter arrived the last time. The response to GET
// /letters/{id} contains it.
type Arrived struct {
	Properties Properties                  `json:"properties"`
	Headers    map[string]deadletter.Typed `json:"headers"`
}

// Letters is a page of GET /letters.
type Letters struct {
	Letters []Row  `json:"letters"`
	Next    string `json:"next"` // cursor of the next page; "" = this is the last page

	Looked *Looked `json:"looked,omitzero"` // set only for a query for a body path that is not indexed
}

// Looked says how far a query has searched the letters. The response to GET /letters contains it.
type Looked struct {
	Letters int  `json:"letters"`       // number of letters searched
	Back    Time `json:"back,omitzero"` // when the last letter searched was received
	All     bool `json:"all"`           // every letter was searched
}

// Count is the response to GET /letters/count.
type Count struct {
	Count int  `json:"count"`
	Exact bool `json:"exact"` // false = there are more letters
}

// Facets is the response to GET /letters/facets. It holds the values of each field, the most
// frequent first.
type Facets struct {
	Facets  map[string][]FacetValue `json:"facets"`
	Sampled int                     `json:"sampled"` // how many of the newest letters were counted; 0 = all letters
}

// Histogram is the response to GET /letters/histogram.
type Histogram struct {
	From    Time     `json:"from,omitzero"`
	To      Time     `json:"to,omitzero"`
	Step    Duration `json:"step"`    // the time that one bar covers
	Sampled int      `json:"sampled"` // how many of the newest letters were counted; 0 = all letters
	Bars    []Bar    `json:"bars"`
}
