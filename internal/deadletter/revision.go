package deadletter

import "time"

// Revision is what a person made of a letter: it is sent instead of what was received, which stays
// as it is.
type Revision struct {
	Letter     ID
	Number     int // from 1
	Properties Properties
	Body       []byte
	Changes    string // in words, without values: "template.name; header x-tenant"
	Reason, By string
	At         time.Time
	Operation  OperationID // that made it; 0 = a person edited this letter alone
	Key        string      // Idempotency-Key
}
