package topology

import "time"

// Applied is the result of applying a plan.
type Applied struct {
	Broker   string
	VHost    string
	Policies []Proof
}

// Proof is one applied policy. It says whether a test message has proved that the policy works.
type Proof struct {
	Policy string
	Queues []string
	Proved bool
	Why    string // why the policy could not be proved; "" if it was
}

// Adopted is a policy that dlo applied and that is recorded in its store.
type Adopted struct {
	ID     int64
	Broker string
	VHost  string
	Policy
	Queues []string
	At     time.Time
	By     string
}
