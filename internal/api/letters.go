// Package api defines the JSON format of the API under /api/v1. Package web writes this format, the
// command line reads it, and openapi.json describes it. The package contains structs and their
// encoding, but no logic. An unknown value is null. An empty text means that there is no value. A
// time is omitted if there is no such time. Bytes are base64. Requests omit fields that have their
// default value.
package api

import (
	"encoding/json"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/rules"
)

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
	// messages that members of a JSON body hold as base64
	Inside []payload.Inside `json:"inside,omitzero"`
	// charset from which a text was converted; "" = it was UTF-8
	Charset        string `json:"charset,omitzero"`
	CharsetGuessed bool   `json:"charset_guessed,omitzero"` // no declared charset fits, so the charset is a guess
}

// Letter is the response to GET /letters/{id}. It contains everything that is known about a letter.
type Letter struct {
	deadletter.Letter
	Failure *deadletter.Failure `json:"failure,omitzero"` // what the consumer reported about the latest death
	// replaces the field of the same name in Row, which is a number
	Attempts     []deadletter.Attempt `json:"attempts"`
	AttemptsUsed int                  `json:"attempts_used"`
	// Rules holds the current rules, and how they apply to the letter now. It is null if they are
	// unknown.
	Rules    *[]rules.Step   `json:"rules"`
	Siblings []deadletter.ID `json:"siblings"`
	// Properties and Headers belong to the message that dlo received when the letter arrived for
	// the first time. A requeue sends them.
	Properties deadletter.Properties       `json:"properties"`
	Headers    map[string]deadletter.Typed `json:"headers"`
	Arrived    Arrived                     `json:"arrived"` // the letter as it was received last
	Deaths     []deadletter.Death          `json:"deaths"`
	History    []deadletter.Event          `json:"history"`
	// Revisions lists the oldest revision first. If the letter is requeued, dlo sends the newest
	// revision. The field "decoded" shows the newest revision too.
	Revisions []Revision `json:"revisions"`
	// Masked reports whether a part of the letter is masked. The body of a masked letter is null,
	// unless the request has reveal=1.
	Masked  bool    `json:"masked"`
	Body    *[]byte `json:"body"`
	Decoded Decoded `json:"decoded"`
	// Candidates lists the types that can decode the body, the best first. It is set only if
	// nothing names the type of the body.
	Candidates []payload.Match `json:"candidates"`
	Tied       int             `json:"tied,omitzero"` // number of types that can decode the body equally well
	// number of types that were not compared because the body is too large
	NotCompared int `json:"not_compared,omitzero"`
}

// Arrived holds what dlo received when the letter arrived the last time. The response to GET
// /letters/{id} contains it.
type Arrived struct {
	Properties deadletter.Properties       `json:"properties"`
	Headers    map[string]deadletter.Typed `json:"headers"`
}

// Letters is a page of GET /letters.
type Letters struct {
	Letters []deadletter.Row `json:"letters"`
	Next    string           `json:"next"` // cursor of the next page; "" = this is the last page

	Looked *deadletter.Looked `json:"looked,omitzero"` // set only for a query for a body path that is not indexed
}

// Count is the response to GET /letters/count. An operation contains it too.
type Count struct {
	Count int  `json:"count"`
	Exact bool `json:"exact"` // false = there are more letters
}

// Facets is the response to GET /letters/facets. It holds the values of each field, the most
// frequent first.
type Facets struct {
	Facets  map[string][]deadletter.FacetValue `json:"facets"`
	Sampled int                                `json:"sampled"` // how many of the newest letters were counted; 0 = all letters
}
