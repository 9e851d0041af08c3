package deadletter

import "time"

// BrokerStatus is the state of dlo's connection to one broker and vhost, as far as dlo knows it.
type BrokerStatus struct {
	Name, VHost string
	Label       string // people's name for the broker, for example production; "" = none
	Colour      Colour // the label's colour
	Setting     string // setting with the connection details, such as DLO_AMQP_URL
	Exchange    string // dead-letter exchange that dlo declares; "" = it declares nothing
	Reached     bool   // its inboxes have existed since the store was created, so dead messages wait in them
	Version     string // version of RabbitMQ; "" until the first connection since dlo started
	Connected   bool   // the publishing connection is open
	Blocked     string // reason why the broker accepts no messages now; "" = it accepts them
	Reason      string // why it is not connected, in words
	Since       time.Time
	NextTry     time.Time
	Note        string // how dlo deviates from the configuration, and what it does instead; "" = it does not
	Inboxes     []InboxStatus
	Managed     bool      // the configuration names its management API
	User        string    // of AMQP
	Rights      []Right   // rights that dlo needs
	Grant       string    // command that grants all these rights
	Queues      []Problem // risks of loss in dlo's own queues
}

// Away explains why letters cannot be sent to the broker now, and what they wait for. It returns ""
// if they can be sent.
func (s *BrokerStatus) Away() string {
	switch {
	case !s.Connected:
		return Visible(s.Name) + " is not connected: letters wait until it is back"
	case s.Blocked != "":
		return Visible(s.Name) + " accepts no messages now: letters wait until it does"
	}
	return ""
}

// Away returns BrokerStatus.Away for the broker and vhost of o.
func Away(brokers []BrokerStatus, o Origin) string {
	for i := range brokers {
		if b := &brokers[i]; b.Name == o.Broker && b.VHost == o.VHost {
			return b.Away()
		}
	}
	return "vhost " + Visible(o.VHost) + " of broker " + Visible(o.Broker) + " is not in the configuration: nobody sends its letters"
}

// InboxStatus is the state of one dead-letter queue, as far as dlo knows it.
type InboxStatus struct {
	Queue    string
	Draining bool
	Reason   string // if not drained: why, and the remedy; if drained: what may go wrong
}

// QueueFacts contains the facts that the broker reports about a queue. Without the management API,
// or when the API's data lags, some fields are unknown. An unknown number is never 0.
type QueueFacts struct {
	Known        bool // the broker could be asked about at least one fact
	Silent       bool // not Known: the management API was asked, but its answer did not contain the queue this time
	Exists       bool
	Consumers    int           // -1 = unknown
	Ready        int           // -1 = unknown
	Unacked      int           // delivered and not acknowledged; -1 = unknown
	Stream       bool          // the queue is a stream, so reading removes nothing; false also if unknown
	TTL          time.Duration // message TTL from arguments and policies, at least 1 ms; 0 = none, -1 = unknown
	SingleActive bool          // single active consumer; false also if unknown
	MaxLength    int           // maximum messages, from arguments and policies; 0 = no limit, -1 = unknown
	MaxBytes     int           // maximum bytes of bodies; 0 = no limit, -1 = unknown
	DeadLetters  string        // where its dead messages go, for example "exchange dlo.dlx", or DeadLettersNowhere; "" = unknown
	LeadsOn      bool          // dead-letters to a place other than dlo, as a delay queue does; false also if unknown
}

// HasSingleActive returns SingleActive, and whether it is known. The broker reports the arguments
// of a queue together, so it is known if the TTL is known.
func (f QueueFacts) HasSingleActive() (single, known bool) {
	return f.SingleActive, f.SingleActive || f.TTL >= 0
}

// DeadLettersNowhere is the value of QueueFacts.DeadLetters for a queue without a dead-letter
// exchange. Messages that die there are lost.
const DeadLettersNowhere = "nowhere"

// UnknownQueue contains the facts of a queue about which the broker could not be asked.
var UnknownQueue = QueueFacts{Consumers: -1, Ready: -1, Unacked: -1, TTL: -1, MaxLength: -1, MaxBytes: -1}

// Unseen is the reason why dlo can no longer see what happens to letters sent to a queue.
type Unseen struct {
	Why     string
	Since   time.Time // the reason applies to letters that were in the queue at this time
	Settles bool      // these letters count as settled, unverified; otherwise they are held
	// Letters that people redirected to this queue count as settled, unverified.
	SettlesRedirected bool
}
