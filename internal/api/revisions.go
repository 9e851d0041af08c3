package api

import (
	"encoding/json"
	"time"
)

// RevisionRequest is the body of POST /letters/{id}/revisions. Of json, text, body and patch there
// is one at most; without any the body stays. An empty one is sent, and is not the same as none.
type RevisionRequest struct {
	JSON json.RawMessage `json:"json,omitzero"` // the decoded body, changed
	// Text is the decoded body as text, so that a mistake is in its line; of a text body, the text.
	Text       *string                    `json:"text,omitempty"`
	Body       []byte                     `json:"body,omitzero"`  // the whole body, perhaps empty
	Patch      json.RawMessage            `json:"patch,omitzero"` // RFC 6902, on the decoded body
	Properties map[string]string          `json:"properties,omitempty"`
	Headers    map[string]json.RawMessage `json:"headers,omitempty"`
	Reason     string                     `json:"reason,omitempty"`
	// From is the revision that it is made of; 0: as received, absent: the newest.
	From    *int `json:"from,omitempty"`
	DryRun  bool `json:"dry_run,omitempty"`
	Requeue bool `json:"requeue,omitempty"`
}

// Revision is an edit of a letter, in GET /letters/{id}.
type Revision struct {
	Number    int       `json:"number"`
	By        string    `json:"by"`
	Reason    string    `json:"reason"`
	Changes   string    `json:"changes"`
	At        time.Time `json:"at"`
	Size      int       `json:"size"` // of the body, bytes
	Operation string    `json:"operation,omitempty"`
}

// EditCheck is what was checked of an edit, in the answer of POST /letters/{id}/revisions.
type EditCheck struct {
	OK   bool   `json:"ok"`
	Text string `json:"text"`
}

// Edited is the answer of POST /letters/{id}/revisions: what an edit comes to.
type Edited struct {
	Revision  *Revision       `json:"revision"` // null of a dry run
	Operation string          `json:"operation,omitempty"`
	Changed   []string        `json:"changed"`
	Diff      []string        `json:"diff"` // lines, each after "  ", "- " or "+ "
	Checks    []EditCheck     `json:"checks"`
	JSON      json.RawMessage `json:"json,omitempty"` // of the new body, masked
	Size      int             `json:"size"`           // of the new body, bytes
}
