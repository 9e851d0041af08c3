package deadletter

import (
	"encoding/json"
	"time"
)

// Declared is a policy that dlo set on a broker. Queues and exchanges need no record, because dlo
// recognises its own by the prefix of their names.
type Declared struct {
	ID     int64
	Broker string
	VHost  string
	Kind   DeclaredKind
	Name   string
	Detail json.RawMessage // definition of the policy, which is compared with the policy on the broker
	Sure   bool            // the thing is known to exist; false while dlo sets it, and after a crash at that moment
	At     time.Time
	By     string
}

// DeclaredKind is the kind of a declared thing.
type DeclaredKind string

// DeclaredPolicy is the only kind so far.
const DeclaredPolicy DeclaredKind = "policy"
