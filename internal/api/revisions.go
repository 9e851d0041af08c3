package api

import (
	"encoding/json"
	"time"
)

// RevisionRequest is the body of POST /letters/{id}/revisions. Of json, text, body and patch there is one at most; without any the body stays.
type RevisionRequest struct {
	JSON       json.RawMessage            `json:"json"`  // the decoded body, changed
	Text       *string                    `json:"text"`  // the same as text, so that mistakes have their line; or a text body
	Body       []byte                     `json:"body"`  // instead of the whole body, as it is
	Patch      json.RawMessage            `json:"patch"` // RFC 6902, on the decoded body
	Properties map[string]string          `json:"properties"`
	Headers    map[string]json.RawMessage `json:"headers"`
	Reason     string                     `json:"reason"`
	From       *int                       `json:"from"` // revision that it is made of; 0 = as received, absent = the newest
	DryRun     bool                       `json:"dry_run"`
	Requeue    bool                       `json:"requeue"`
}

type Revision struct {
	Number    int       `json:"number"`
	By        string    `json:"by"`
	Reason    string    `json:"reason"`
	Changes   string    `json:"changes"`
	At        time.Time `json:"at"`
	Size      int       `json:"size"`
	Operation string    `json:"operation,omitempty"`
}

type EditCheck struct {
	OK   bool   `json:"ok"`
	Text string `json:"text"`
}

// Edited is what an edit comes to.
type Edited struct {
	Revision  *Revision       `json:"revision"` // null of a dry run
	Operation string          `json:"operation,omitempty"`
	Changed   []string        `json:"changed"`
	Diff      []string        `json:"diff"` // lines, each after "  ", "- " or "+ "
	Checks    []EditCheck     `json:"checks"`
	JSON      json.RawMessage `json:"json,omitempty"` // of the new body, masked
	Size      int             `json:"size"`           // of the new body, bytes
}
