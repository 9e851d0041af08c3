package api

import (
	"encoding/json"
)

// RevisionRequest is the body of POST /letters/{id}/revisions. At most one of json, text, body and
// patch may be set. Without any of them the body stays unchanged. A body that is set but empty
// replaces the old one.
type RevisionRequest struct {
	JSON json.RawMessage `json:"json,omitzero"` // the decoded body, changed
	// Text is the decoded body as text, so that errors can refer to its lines. If the body is a
	// text, this is the body.
	Text       *string                    `json:"text,omitempty"`
	Body       []byte                     `json:"body,omitzero"`  // the whole body; may be empty
	Patch      json.RawMessage            `json:"patch,omitzero"` // RFC 6902, for the decoded body
	Properties map[string]string          `json:"properties,omitempty"`
	Headers    map[string]json.RawMessage `json:"headers,omitempty"`
	Reason     string                     `json:"reason,omitempty"`
	// From is the revision that the edit is based on. 0 means the letter as received. A missing
	// From means the newest revision.
	From    *int `json:"from,omitempty"`
	DryRun  bool `json:"dry_run,omitempty"`
	Requeue bool `json:"requeue,omitempty"`
}

// Revision is an edit of a letter. The response to GET /letters/{id} contains it.
type Revision struct {
	Number    int    `json:"number"`
	By        string `json:"by"`
	Reason    string `json:"reason"`
	Changes   string `json:"changes"`
	At        Time   `json:"at"`
	Size      int    `json:"size"` // size of the body, in bytes
	Operation string `json:"operation,omitempty"`
}

// EditCheck is one check of an edit. The response to POST /letters/{id}/revisions contains it.
type EditCheck struct {
	OK   bool   `json:"ok"`
	Text string `json:"text"`
}

// Edited is the response to POST /letters/{id}/revisions: the outcome of an edit.
type Edited struct {
	Revision  *Revision       `json:"revision"` // null for a dry run
	Operation string          `json:"operation,omitempty"`
	Changed   []string        `json:"changed"`
	Diff      []string        `json:"diff"` // lines, each after "  ", "- " or "+ "
	Checks    []EditCheck     `json:"checks"`
	JSON      json.RawMessage `json:"json,omitempty"` // JSON of the new body, masked
	Size      int             `json:"size"`           // size of the new body, in bytes
}
