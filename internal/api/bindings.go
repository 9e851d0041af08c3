package api

import (
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Pick is a type that a person picked for a letter, a group or a queue. The responses to GET
// /bindings, POST /bindings and POST /letters/{id}/type contain it.
type Pick struct {
	For string `json:"for"` // "letter", "group" or "binding"
	deadletter.Pick
}

// Bindings is the response to GET /bindings.
type Bindings struct {
	// types that people picked, including those for groups and letters
	Bindings      []Pick               `json:"bindings"`
	Configuration []deadletter.Binding `json:"configuration"`
}

// BindingRequest is the body of POST /bindings.
type BindingRequest struct {
	Queue  string `json:"queue"`
	Key    string `json:"key,omitzero"`
	Path   string `json:"path,omitzero"` // member of JSON bodies that holds the message as base64
	Type   string `json:"type"`
	Reason string `json:"reason,omitzero"`
}

// PickRequest is the body of POST /letters/{id}/type.
type PickRequest struct {
	Type   string `json:"type"`
	For    string `json:"for,omitzero"`  // letter, group or binding; default: letter
	Path   string `json:"path,omitzero"` // with binding: member of JSON bodies that holds the message as base64
	Reason string `json:"reason,omitzero"`
}
