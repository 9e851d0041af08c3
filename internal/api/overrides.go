package api

// Override is a redirect that a person has saved. The response to GET /overrides contains it.
type Override struct {
	ID     int64  `json:"id"`
	Broker string `json:"broker"`
	VHost  string `json:"vhost"`
	Queue  string `json:"queue"`
	To     string `json:"to"`
	By     string `json:"by"`
	Reason string `json:"reason"`
	At     Time   `json:"at"`
}

// Overrides is the response to GET /overrides.
type Overrides struct {
	Overrides []Override `json:"overrides"`
}

// OverrideRequest is the body of POST /overrides.
type OverrideRequest struct {
	Broker string `json:"broker,omitzero"`
	VHost  string `json:"vhost,omitzero"`
	Queue  string `json:"queue"`
	To     string `json:"to"`
	Reason string `json:"reason,omitzero"`
}
