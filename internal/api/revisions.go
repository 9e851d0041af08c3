package api

import (
	"encoding/json"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
)

// RevisionRequest is the body of POST /letters/{id}/revisions. At most one of json, text, body and
// patch may be set. If none is set, the body does not change. If one is set but empty, the new body
// is empty.
type RevisionRequest struct {
	JSON json.RawMessage `json:"json,omitzero"` // the decoded body with the changes
	// Text is the decoded body as text, so that errors can refer to its lines. If the body is a
	// text, Text is the body itself.
	Text       *string                    `json:"text,omitzero"`
	Body       []byte                     `json:"body,omitzero"`  // the new body as bytes; may be empty
	Patch      json.RawMessage            `json:"patch,omitzero"` // a patch of the decoded body, RFC 6902
	Properties map[string]string          `json:"properties,omitzero"`
	Headers    map[string]json.RawMessage `json:"headers,omitzero"`
	Reason     string                     `json:"reason,omitzero"`
	// From is the number of the revision on which the edit is based. 0 means the letter as
	// received. If From is missing, the edit is based on the newest revision.
	From    *int `json:"from,omitzero"`
	DryRun  bool `json:"dry_run,omitzero"`
	Requeue bool `json:"requeue,omitzero"`
}

// Revision is one edit of a letter. The response to GET /letters/{id} contains it.
type Revision struct {
	deadletter.Revision
	Size int `json:"size"` // the size of the body in bytes
}

// NewRevision returns an edit of a letter in the form of the API.
func NewRevision(r deadletter.Revision) Revision { return Revision{r, len(r.Body)} }

// Edited is the response to POST /letters/{id}/revisions. It contains the result of an edit.
type Edited struct {
	Revision  *Revision              `json:"revision"` // null = this is a dry run
	Operation deadletter.OperationID `json:"operation,omitzero"`
	Changed   []string               `json:"changed"`
	Diff      []string               `json:"diff"` // lines that begin with "  ", "- " or "+ "
	Checks    []payload.Check        `json:"checks"`
	JSON      json.RawMessage        `json:"json,omitzero"` // the JSON of the new body, NOT masked
	Size      int                    `json:"size"`          // bytes of the new body
}
