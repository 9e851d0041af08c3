package deadletter

import "time"

// Revision is an edited version of a letter. It is sent instead of the received message, which does
// not change.
type Revision struct {
	Letter     ID          `json:"-"`
	Number     int         `json:"number"` // counted from 1
	Properties Properties  `json:"-"`
	Body       []byte      `json:"-"`
	Changes    string      `json:"changes"` // names of the changed fields without their values, e.g. "template.name; header x-tenant"
	Reason     string      `json:"reason"`
	By         string      `json:"by"`
	At         time.Time   `json:"at"`
	Operation  OperationID `json:"operation,omitzero"` // operation that created the revision; 0 = a person edited only this letter
	Key        string      `json:"-"`                  // Idempotency-Key
	Damaged    bool        `json:"-"`                  // the store no longer has properties and body as dlo stored them
}
