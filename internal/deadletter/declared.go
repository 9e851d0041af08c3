package deadletter

import (
	"encoding/json"
	"time"
)

// Declared records a policy that dlo set on a broker. Queues and exchanges need no such record,
// because dlo recognises its own ones by the prefix of their names.
type Declared struct {
	ID     int64
	Broker string
	VHost  string
	Kind   DeclaredKind
	Name   string
	Detail json.RawMessage // definition of the policy, with which the policy on the broker is compared
	Sure   bool            // the policy is known to exist; false while dlo sets it, and after a crash at that moment
	At     time.Time
	By     string
}

// DeclaredKind is the kind of an object that dlo declared.
type DeclaredKind string

// DeclaredPolicy is the only kind so far.
const DeclaredPolicy DeclaredKind = "policy"
