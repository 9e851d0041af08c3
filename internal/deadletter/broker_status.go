package deadletter

import "time"

// BrokerStatus is what dlo knows of its connection to one broker and vhost.
type BrokerStatus struct {
	Name, VHost string
	Label       string // what people call it, for example production; "" = nothing
	Colour      Colour // of the label
	Setting     string // where the configuration says how it is reached, such as DLO_AMQP_URL
	Exchange    string // dead-letter exchange that dlo declares; "" = it declares nothing
	Reached     bool   // once since the store was made its inboxes were there: what dies waits in them
	Version     string // of RabbitMQ, "" until the first connection since dlo started
	Connected   bool   // the publishing connection stands
	Blocked     string // why the broker takes no messages now; "" when it does
	Reason      string // why it is not connected, in words
	Since       time.Time
	NextTry     time.Time
	Note        string // what is not as the configuration wants it, and what is done instead; "" = nothing
	Inboxes     []InboxStatus
	Managed     bool      // the configuration names its management API
	User        string    // of AMQP
	Rights      []Right   // that it needs
	Grant       string    // the command that gives it all of them
	Queues      []Problem // of the queues of dlo: what may be lost there
}

// Away says why letters cannot be sent to the broker now, and until when they wait; "" when they
// can.
func (s *BrokerStatus) Away() string {
	switch {
	case !s.Connected:
		return Visible(s.Name) + " is not connected: letters wait until it is back"
	case s.Blocked != "":
		return Visible(s.Name) + " takes no messages now: letters wait until it does"
	}
	return ""
}

// Away is BrokerStatus.Away for the broker and vhost of an origin.
func Away(brokers []BrokerStatus, o Origin) string {
	for i := range brokers {
		if b := &brokers[i]; b.Name == o.Broker && b.VHost == o.VHost {
			return b.Away()
		}
	}
	return "vhost " + Visible(o.VHost) + " of broker " + Visible(o.Broker) + " is not in the configuration: nobody sends its letters"
}

// InboxStatus is what dlo knows of one dead-letter queue.
type InboxStatus struct {
	Queue    string
	Draining bool
	Reason   string // why not, and what cures it; of one that is drained, what may go wrong with it
}

// QueueFacts is what the broker says of a queue. Without the management API, or where it lags,
// fields are unknown, which is never 0.
type QueueFacts struct {
	Known        bool // anything at all could be asked
	Silent       bool // not known, as the management API was asked and did not say it this time
	Exists       bool
	Consumers    int           // -1 = unknown
	Ready        int           // -1 = unknown
	Unacked      int           // delivered and not acknowledged; -1 = unknown
	Stream       bool          // reading takes nothing out of it; false also where nobody says
	TTL          time.Duration // of a message in it, by its arguments and policies, at least 1 ms; 0 = no end, -1 = unknown
	SingleActive bool          // one of its consumers at a time is served; false also where nobody says
	MaxLength    int           // messages that it holds at most, by its arguments and policies; 0 = no limit, -1 = unknown
	MaxBytes     int           // bytes of bodies that it holds at most; 0 = no limit, -1 = unknown
	DeadLetters  string        // where what it gives up on goes, for example "exchange dlo.dlx", or DeadLettersNowhere; "" = unknown
	LeadsOn      bool          // what it gives up on goes elsewhere than to dlo, as from a queue that only delays; false also where nobody says
}

// DeadLettersNowhere is what QueueFacts.DeadLetters says of a queue without a dead-letter exchange:
// what dies there is gone.
const DeadLettersNowhere = "nowhere"

// UnknownQueue is what is known of a queue when nothing can be asked.
var UnknownQueue = QueueFacts{Consumers: -1, Ready: -1, Unacked: -1, TTL: -1, MaxLength: -1, MaxBytes: -1}

// Unseen is why nobody sees any more what becomes of letters that were sent to a queue.
type Unseen struct {
	Why     string
	Since   time.Time // it holds for letters that were in the queue by then
	Settles bool      // they count as settled, and unverified; otherwise they are held
	// Those that people sent to this queue instead of their own count as settled, and unverified.
	SettlesRedirected bool
}
