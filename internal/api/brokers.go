package api

import "time"

// Broker is the state of the connection to a broker and vhost. The response to GET /brokers
// contains it.
type Broker struct {
	Name      string `json:"name"`
	VHost     string `json:"vhost"`
	Label     string `json:"label"`  // display name, such as production
	Colour    string `json:"colour"` // the colour of the label
	Connected bool   `json:"connected"`
	Reached   bool   `json:"reached"` // dlo has been connected to it at least once since the store was created
	// version of RabbitMQ; null = unknown until the first connection after the start of dlo
	Version *string   `json:"version"`
	Reason  string    `json:"reason"`  // why dlo is not connected to it
	Blocked string    `json:"blocked"` // why the broker accepts no messages now
	Since   time.Time `json:"since"`   // when this state began
	NextTry time.Time `json:"next_try,omitzero"`
	Inboxes []string  `json:"inboxes"`
}

// Brokers is the response to GET /brokers.
type Brokers struct {
	Brokers []Broker `json:"brokers"`
}
