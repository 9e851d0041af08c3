package deadletter

import "time"

// Revision is an edited version of a letter. It is sent instead of the received message, which
// stays unchanged.
type Revision struct {
	Letter     ID
	Number     int // from 1
	Properties Properties
	Body       []byte
	Changes    string // in words, without values: "template.name; header x-tenant"
	Reason, By string
	At         time.Time
	Operation  OperationID // the operation that created it; 0 = a person edited this letter alone
	Key        string      // Idempotency-Key
}
