package api

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Pick is a type that a person picked for a letter, a group or a queue. The responses to GET
// /bindings, POST /bindings and POST /letters/{id}/type contain it.
type Pick struct {
	ID     int64              `json:"id"`
	For    string             `json:"for"` // "letter", "group" or "binding"
	Letter deadletter.ID      `json:"letter,omitzero"`
	Group  deadletter.GroupID `json:"group,omitzero"`
	Queue  string             `json:"queue,omitzero"`
	Key    string             `json:"key,omitzero"`
	Type   string             `json:"type"`
	By     string             `json:"by"`
	Reason string             `json:"reason"`
	At     time.Time          `json:"at"`
}

// Binding is a binding from the configuration. The response to GET /bindings contains it.
type Binding struct {
	Queue string `json:"queue"`
	Key   string `json:"key,omitzero"`
	Type  string `json:"type"`
}

// Bindings is the response to GET /bindings.
type Bindings struct {
	Bindings      []Pick    `json:"bindings"` // types that people picked, including those for groups and letters
	Configuration []Binding `json:"configuration"`
}

// BindingRequest is the body of POST /bindings.
type BindingRequest struct {
	Queue  string `json:"queue"`
	Key    string `json:"key,omitzero"`
	Type   string `json:"type"`
	Reason string `json:"reason,omitzero"`
}

// PickRequest is the body of POST /letters/{id}/type.
type PickRequest struct {
	Type   string `json:"type"`
	For    string `json:"for,omitzero"` // letter, group or binding; default: letter
	Reason string `json:"reason,omitzero"`
}
