package deadletter

import "time"

// Revision is an edited version of a letter. It is sent instead of the received message, which does
// not change.
type Revision struct {
	Letter     ID
	Number     int // counted from 1
	Properties Properties
	Body       []byte
	Changes    string // names of the changed fields without their values, e.g. "template.name; header x-tenant"
	Reason, By string
	At         time.Time
	Operation  OperationID // operation that created the revision; 0 = a person edited only this letter
	Key        string      // Idempotency-Key
	Damaged    bool        // the store no longer has properties and body as dlo stored them
}
