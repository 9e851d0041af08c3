package deadletter

// Queue is a queue in which letters died, or whose retries are held back.
type Queue struct {
	Origin
	Scheduled int     `json:"scheduled"`     // number of letters
	Dead      int     `json:"dead"`          // number of letters
	Held      int     `json:"held"`          // number of letters
	Depth     Amount  `json:"depth"`         // number of messages; null = unknown
	Consumers Amount  `json:"consumers"`     // null = unknown
	Gone      bool    `json:"-"`             // the broker does not have the queue
	Retries   Guard   `json:"retries"`       // the pause or the breaker of the queue itself
	Away      string  `json:"away"`          // why no letter can be sent to the broker now
	Groups    []Guard `json:"groups_paused"` // groups with retries that are held back
}

// Inbox is an inbox that dlo drains.
type Inbox struct {
	Origin
	Connected bool   `json:"connected"` // dlo is connected to the broker
	Why       string `json:"-"`         // why dlo is not connected to the broker
	Draining  bool   `json:"draining"`
	Depth     Amount `json:"depth"` // number of messages; null = unknown
	Gone      bool   `json:"-"`     // the broker does not have the queue
	Note      string `json:"note"`  // why the inbox is not drained, or a warning about it
}
