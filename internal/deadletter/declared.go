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
	Detail json.RawMessage // of a policy, so that it can be compared with the broker's
	Sure   bool            // it exists; false while it is being set, and after a crash during that
	At     time.Time
	By     string
}

// DeclaredKind is the kind of thing that dlo declared.
type DeclaredKind string

// Kinds of declared things. A binding is named by its exchange and its queue: "dlo.dlx to
// dlo.letters".
const (
	DeclaredQueue    DeclaredKind = "queue"
	DeclaredExchange DeclaredKind = "exchange"
	DeclaredBinding  DeclaredKind = "binding"
	DeclaredPolicy   DeclaredKind = "policy"
)
