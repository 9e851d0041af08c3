package deadletter

import "time"

// BrokerStatus is what dlo knows about its connection to one broker and vhost.
type BrokerStatus struct {
	Name     string `json:"name"`
	VHost    string `json:"vhost"`
	Label    string `json:"label"`  // name that people use for the broker, e.g. production; "" = none
	Colour   Colour `json:"colour"` // colour of the label
	Setting  string `json:"-"`      // name of the setting that contains the connection details, e.g. DLO_AMQP_URL
	Exchange string `json:"-"`      // dead-letter exchange that dlo declares; "" = dlo declares none
	// the inboxes have existed at least once since the store was created, so that dead messages
	// wait in them
	Reached   bool      `json:"reached"`
	Version   string    `json:"version,omitzero"` // of RabbitMQ; missing = not connected since dlo was started
	Connected bool      `json:"connected"`        // the connection for publishing is open
	Blocked   string    `json:"blocked"`          // why the broker accepts no messages now; "" = it accepts messages
	Reason    string    `json:"reason"`           // why dlo is not connected
	Since     time.Time `json:"since"`            // when this state began
	NextTry   time.Time `json:"next_try,omitzero"`
	// how dlo deviates from the configuration, and what it does instead; "" = it does not deviate
	Note    string        `json:"-"`
	Inboxes []InboxStatus `json:"inboxes"`
	Managed bool          `json:"-"` // dlo has a management API of the broker, configured or found
	// address at which dlo found the management API; absent = it is configured, or was not found
	ManagementFound string    `json:"management_found,omitzero"`
	User            string    `json:"-"` // AMQP user of dlo
	Rights          []Right   `json:"-"` // rights that dlo needs on the broker
	Grant           string    `json:"-"` // command that grants all these rights to the user
	Queues          []Problem `json:"-"` // risks that dlo's own queues lose messages
}

// Away says why letters cannot be sent to the broker now, and what they wait for. If they can be
// sent, it returns "".
func (s *BrokerStatus) Away() string {
	switch {
	case !s.Connected:
		return Visible(s.Name) + " is not connected: letters wait until it is back"
	case s.Blocked != "":
		return Visible(s.Name) + " accepts no messages now: letters wait until it does"
	}
	return ""
}

// Away finds the broker and vhost of an origin in a list. It returns what BrokerStatus.Away returns
// for them.
func Away(brokers []BrokerStatus, o Origin) string {
	for i := range brokers {
		if b := &brokers[i]; b.Name == o.Broker && b.VHost == o.VHost {
			return b.Away()
		}
	}
	return "vhost " + Visible(o.VHost) + " of broker " + Visible(o.Broker) +
		" is not in the configuration: nobody sends its letters"
}

// InboxStatus is what dlo knows about one inbox.
type InboxStatus struct {
	Queue    string `json:"queue"`
	Draining bool   `json:"draining"`
	// if the inbox is not drained, why not, and what to do; if it is drained, what may go wrong
	Reason string `json:"reason,omitempty"`
}

// QueueFacts contains what the broker reports about a queue. Some fields are unknown if there is no
// management API, or if its data is out of date. An unknown number is never 0.
type QueueFacts struct {
	Known bool // at least one fact about the queue could be determined
	// Known is false only because the answer of the management API did not contain the queue this
	// time
	Silent       bool
	Exists       bool
	Consumers    int           // -1 = unknown
	Ready        int           // -1 = unknown
	Unacked      int           // number of delivered messages that are not acknowledged; -1 = unknown
	Form         string        // type, arguments and flags, which only a new declaration changes; "" = unknown
	Stream       bool          // the queue is a stream, so that reading removes no messages; false if unknown
	TTL          time.Duration // message TTL from the arguments and policies, at least 1 ms; 0 = none, -1 = unknown
	SingleActive bool          // the queue has a single active consumer; false if unknown
	// maximum number of messages, from the arguments and policies; 0 = no limit, -1 = unknown
	MaxLength int
	MaxBytes  int // maximum size of all bodies in bytes; 0 = no limit, -1 = unknown
	// place to which the queue sends dead messages, e.g. "exchange dlo.dlx", or DeadLettersNowhere;
	// "" = unknown
	DeadLetters string
	// the queue sends dead messages to a place other than dlo, as a delay queue does; false if
	// unknown
	LeadsOn bool
}

// HasSingleActive returns the field SingleActive and reports whether its value is known. The broker
// reports all arguments of a queue together. The value is therefore known if the field TTL is
// known.
func (f QueueFacts) HasSingleActive() (single, known bool) {
	return f.SingleActive, f.SingleActive || f.TTL >= 0
}

// DeadLettersNowhere is the value of QueueFacts.DeadLetters for a queue that has no dead-letter
// exchange. Messages that die in such a queue are lost.
const DeadLettersNowhere = "nowhere"

// UnknownQueue contains the facts of a queue about which nothing could be determined.
var UnknownQueue = QueueFacts{Consumers: -1, Ready: -1, Unacked: -1, TTL: -1, MaxLength: -1, MaxBytes: -1}

// Unseen says why dlo can no longer observe what happens to letters that were sent to a queue.
type Unseen struct {
	Why     string
	Since   time.Time // the reason applies to letters that were in the queue at this time
	Settles bool      // the letters are settled as unverified; otherwise they are held
	// If SettlesRedirected is true, letters that people redirected to the queue are settled as
	// unverified.
	SettlesRedirected bool
}
