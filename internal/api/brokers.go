package api

import "time"

// Broker is what is known of the connection to a broker and vhost, in GET /brokers.
type Broker struct {
	Name      string    `json:"name"`
	VHost     string    `json:"vhost"`
	Label     string    `json:"label"`  // what people call it, such as production
	Colour    string    `json:"colour"` // of the label
	Connected bool      `json:"connected"`
	Reached   bool      `json:"reached"` // once since the store was made: what dies waits in its inboxes
	Version   string    `json:"version"` // of RabbitMQ; "" until the first connection since dlo started
	Reason    string    `json:"reason"`  // why it is not connected
	Blocked   string    `json:"blocked"` // why it takes no messages now
	Since     time.Time `json:"since"`   // of this state
	NextTry   time.Time `json:"next_try,omitzero"`
	Inboxes   []string  `json:"inboxes"`
}

// Brokers is the answer of GET /brokers.
type Brokers struct {
	Brokers []Broker `json:"brokers"`
}
