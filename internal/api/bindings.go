package api

import "time"

// Pick is a type that a person picked, as GET /bindings, POST /bindings and POST /letters/{id}/type
// answer it.
type Pick struct {
	ID     int64     `json:"id"`
	For    string    `json:"for"` // letter, group or binding
	Letter string    `json:"letter,omitempty"`
	Group  string    `json:"group,omitempty"`
	Queue  string    `json:"queue,omitempty"`
	Key    string    `json:"key,omitempty"`
	Type   string    `json:"type"`
	By     string    `json:"by"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// Binding is a binding of the configuration, in GET /bindings.
type Binding struct {
	Queue string `json:"queue"`
	Key   string `json:"key,omitempty"`
	Type  string `json:"type"`
}

// Bindings is the answer of GET /bindings.
type Bindings struct {
	Bindings      []Pick    `json:"bindings"` // by people, picks for groups and letters too
	Configuration []Binding `json:"configuration"`
}

// BindingRequest is the body of POST /bindings.
type BindingRequest struct {
	Queue  string `json:"queue"`
	Key    string `json:"key,omitempty"`
	Type   string `json:"type"`
	Reason string `json:"reason,omitempty"`
}

// PickRequest is the body of POST /letters/{id}/type.
type PickRequest struct {
	Type   string `json:"type"`
	For    string `json:"for,omitempty"` // letter, group or binding; letter where it is absent
	Reason string `json:"reason,omitempty"`
}
