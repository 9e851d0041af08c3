package topology

import "time"

// Applied is the result of applying a plan.
type Applied struct {
	Broker   string  `json:"broker"`
	VHost    string  `json:"vhost"`
	Policies []Proof `json:"policies"`
}

// Proof is one applied policy. It says whether a test message has proved that the policy works.
type Proof struct {
	Policy string   `json:"policy"`
	Queues []string `json:"queues"`
	Proved bool     `json:"proved"`
	Why    string   `json:"why"` // why the policy could not be proved; "" if it was
}

// Adopted is a policy that dlo applied and that is recorded in its store.
type Adopted struct {
	ID     int64  `json:"id"`
	Broker string `json:"broker"`
	VHost  string `json:"vhost"`
	Policy
	Queues []string  `json:"queues"`
	At     time.Time `json:"at"`
	By     string    `json:"by"`
}
