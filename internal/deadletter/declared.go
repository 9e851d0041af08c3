package deadletter

import (
	"encoding/json"
	"time"
)

// Declared is a thing that dlo declared on a broker, or a policy that it set there.
type Declared struct {
	ID     int64
	Broker string
	VHost  string
	Kind   DeclaredKind
	Name   string
	Detail json.RawMessage // definition of a policy, to compare with the policy on the broker
	Sure   bool            // the thing is known to exist; false while it is being set, and after a crash at that time
	At     time.Time
	By     string
}

// DeclaredKind is the kind of thing that dlo declared.
type DeclaredKind string

// These are the kinds of declared things. A binding is named by its exchange and its queue:
// "dlo.dlx to dlo.letters".
const (
	DeclaredQueue    DeclaredKind = "queue"
	DeclaredExchange DeclaredKind = "exchange"
	DeclaredBinding  DeclaredKind = "binding"
	DeclaredPolicy   DeclaredKind = "policy"
)
