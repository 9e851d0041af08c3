package api

import (
	"time"
)

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

// Binding is a binding of the configuration.
type Binding struct {
	Queue string `json:"queue"`
	Key   string `json:"key,omitempty"`
	Type  string `json:"type"`
}

type Bindings struct {
	Bindings      []Pick    `json:"bindings"` // by people, picks for groups and letters too
	Configuration []Binding `json:"configuration"`
}

type BindingRequest struct {
	Queue  string `json:"queue"`
	Key    string `json:"key"`
	Type   string `json:"type"`
	Reason string `json:"reason"`
}

type PickRequest struct {
	Type   string `json:"type"`
	For    string `json:"for"`
	Reason string `json:"reason"`
}
