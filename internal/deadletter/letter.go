package deadletter

import "time"

// Origin is where a letter last died: broker, vhost and queue, with the exchange and routing key of
// that publish. Requeue goes to Queue.
type Origin struct{ Broker, VHost, Queue, Exchange, RoutingKey string }

// Severity says how loudly a dead letter calls: page, notify or digest.
type Severity string

const (
	SeverityPage   Severity = "page"
	SeverityNotify Severity = "notify"
	SeverityDigest Severity = "digest"
)

// Louder says that s calls louder than another; every severity is louder than none.
func (s Severity) Louder(than Severity) bool {
	rank := map[Severity]int{SeverityDigest: 1, SeverityNotify: 2, SeverityPage: 3}
	return rank[s] > rank[than]
}

// Arrival is one delivery out of an inbox.
type Arrival struct {
	Exchange, RoutingKey string // of the delivery: usually the dead-letter exchange
	Tag                  uint64
	Redelivered          bool // never by itself a reason to drop anything
	Properties           Properties
	Body                 []byte
	Fingerprint          Fingerprint
}

// Window is what one commit and one ack cover: the deliveries of one inbox between two fences.
type Window struct {
	Session       int64 // counts the sessions of this inbox, over restarts of dlo
	Number        int64 // counts the windows of a session
	Broker, VHost string
	Inbox         string
	Origin        string    // queue that deliveries come from whose headers do not say; "" = nobody knows
	Same          []string  // further names of this broker and vhost in the configuration
	Arrivals      []Arrival // in delivery order
	Prefetch      int       // letters that the window after this one may have
	GivesBack     bool      // letters behind it may come back flagged redelivered, though none of them is of the window

	// What the broker cannot be trusted to tell apart, and how far back to look for it.
	Restarted          bool // the broker was restarted since the last quiet moment: acks may have been undone
	RedeliveredLeaks   bool // this inbox may have redelivered set on first deliveries too (quorum, >= 4.0; all, >= 4.1)
	DeliveryCountTells bool // this inbox counts each return in x-delivery-count (quorum, >= 4.3)
	FirstReturnCounted bool // it counts the first return of a letter that came without x-delivery-count (quorum)
	Uncertain          Uncertain
	Horizon            time.Duration
	HorizonRows        int
}

// Ours says whether a queue is no origin for letters of the window: it is their inbox, or dlo's
// own.
func (w *Window) Ours(queue string) bool { return queue == w.Inbox || NoOrigin(queue) }

// Receipt is what a committed window became.
type Receipt struct {
	Window   int64 // to be settled once the broker has processed the ack
	New      []ID  // rows of their own, suspects among them
	CameBack int   // letters that joined their own row
	Returned []ID  // these letters
	Copies   int   // further copies of an attempt that was closed
	Merged   int   // joined to their twin
	Suspects int   // rows that may be copies, to be held
}

// InboxSession is what the store knows when a session of an inbox begins.
type InboxSession struct {
	Number    int64
	Marker    string // whose loss tells a restart of the broker; "" = none yet
	Restarted bool   // a restart was seen and its aftermath is not over
	Prefetch  int    // letters that earlier sessions may have had out at once; 0 = not known
	AtStake   int    // letters that the last session had in hand for the last time, and did not store
}

// SessionFacts is what a fresh session of an inbox found out about its broker.
type SessionFacts struct {
	Marker             MarkerState
	Late               string // why acknowledged letters may come back although the marker is there; "" = nothing says that they may
	RedeliveredLeaks   bool   // Window.RedeliveredLeaks
	DeliveryCountTells bool   // Window.DeliveryCountTells
	FirstReturnCounted bool   // Window.FirstReturnCounted
	DeliveryLimit      int    // after so many lost deliveries, and one more, the broker deletes a letter; 0 = it does not
}

// LastTime says that a letter is deleted by its broker should this delivery be lost: where the
// limit is 3, the delivery with count 3 is the last one (3.10.8, 4.0.5, 4.3.6).
func (f *SessionFacts) LastTime(a *Arrival) bool {
	return f.DeliveryLimit > 0 && a.DeliveryCount() >= int64(f.DeliveryLimit)
}

// MarkerState is what became of the marker of an inbox since its last session. With any but
// MarkerThere the broker may have been restarted.
type MarkerState int

const (
	MarkerThere   MarkerState = iota // also where no marker was looked for
	MarkerEmptied                    // its message is gone, as a restart of the broker leaves it
	MarkerDeleted                    // its queue is gone, which no restart does
	MarkerUnknown                    // it cannot be asked for
)

// String says it in words, as a sentence begins.
func (s MarkerState) String() string {
	switch s {
	case MarkerEmptied:
		return "the broker was restarted"
	case MarkerDeleted:
		return "the marker queue is gone, which no restart does, so dlo cannot tell whether the broker was restarted"
	case MarkerUnknown:
		return "the marker cannot be read, so dlo cannot tell whether the broker was restarted"
	}
	return "the broker was not restarted"
}

// Uncertain says what becomes of a doubtful twin.
type Uncertain string

const (
	UncertainHold  Uncertain = "hold"  // a row of its own, linked to its twin, that classify holds
	UncertainKeep  Uncertain = "keep"  // a row of its own, treated like any other
	UncertainMerge Uncertain = "merge" // joined to its twin
)

// OpenWindow is a window that was committed but whose settling is not recorded: the one window of
// its inbox that can come back.
type OpenWindow struct {
	ID           int64
	Fingerprints []Fingerprint // in delivery order
}

// Letter is one dead-lettered message that dlo holds.
type Letter struct {
	ID           ID
	State        State
	Origin       Origin
	Inbox        string // the dead-letter queue it was drained from
	Reason       string // of the latest death; an open set
	Properties   Properties
	Body         []byte     // as received; immutable
	Arrived      Properties // of the newest arrival: differs from Properties once it came back
	ArrivedBody  []byte     // of the newest arrival, where it was an error of EasyNetQ around what was sent; nil = as sent
	ArrivedBy    Route      // how the first arrival was delivered
	Type         string
	Reading      Reading   // how its body was read
	Picked       string    // type that a person picked for this letter, "" = none
	GroupPick    string    // type that a person picked for its group
	Revision     int       // the newest: what is sent instead of Properties and Body; 0 = none
	Revised      *Revision // the newest, nil = none
	Group        GroupID
	GroupVersion int // of how its group was found; 0 = it has none
	Severity     Severity
	Rule         string
	Summary      string   // masked, at most 200 bytes
	Error        string   // masked
	Annotation   *Failure // what its consumer said of its latest death; nil = nothing
	Why          string   // why it is held or dead, in words
	Attempts     int      // attempts used; what a nack or a return gave back is not counted
	Reset        int      // of these before a person began its retries anew
	Nacks        int      // refusals of its queue in a row
	Operation    OperationID
	Twin         ID    // the letter it may be a copy of, or that it carries the token of
	Doubt        Doubt // why it may be a copy of Twin, and is held until people decide; "" = it is not held for that
	WaitsIn      string
	Unverified   bool  // settled without knowing whether the queue is drained
	Unguarded    bool  // a person released it: no guard of classify holds it again
	Imported     State // classify gives it this state: it was decided where it comes from. "" = it was not imported
	Crashes      int   // how often the process died while this letter was being classified
	Size         int   // of the body, bytes
	ReceivedAt   time.Time
	DiedAt       time.Time // whole seconds; zero when the headers do not say
	DueAt        time.Time // scheduled: when; requeued: end of the watch
	ChangedAt    time.Time
}

// MaxCrashes is how often the process may die while it reads a letter before the letter is left
// alone.
const MaxCrashes = 2

// InBroker says that a letter waits in the broker, where nobody can act on it. It ends with its
// time there, also when nobody has moved it on.
func (l *Letter) InBroker(now time.Time) bool {
	return l.WaitsIn != "" && now.Before(l.DueAt.Add(Overdue))
}

// Undecodable says that the process died of this letter: nothing may decode it again.
func (l *Letter) Undecodable() bool { return l.Crashes >= MaxCrashes }

// Current is what a requeue of the letter sends, before it is sanitised: the newest revision, or
// what was received.
func (l *Letter) Current() (Properties, []byte) {
	if l.Revised != nil {
		return l.Revised.Properties, l.Revised.Body
	}
	return l.Properties, l.Body
}

// Route is the exchange and routing key that a delivery showed.
type Route struct{ Exchange, RoutingKey string }

// Row is a letter as lists show it: no body, no headers.
type Row struct {
	ID                   ID
	State                State
	WaitsIn              string
	Broker, VHost, Queue string
	Reason               string
	Type                 string
	Group                GroupID
	Attempts             int
	Exchange, RoutingKey string
	ReceivedAt           time.Time
	DiedAt               time.Time
	DueAt                time.Time
	Size                 int
	Summary, Error       string
	Why                  string
	Severity             Severity
	Unverified           bool
}

// Row is the letter as lists show it.
func (l *Letter) Row() Row {
	return Row{
		ID: l.ID, State: l.State, WaitsIn: l.WaitsIn, Broker: l.Origin.Broker, VHost: l.Origin.VHost, Queue: l.Origin.Queue,
		Reason: l.Reason, Type: l.Type, Group: l.Group, Attempts: l.Attempts, Exchange: l.Origin.Exchange,
		RoutingKey: l.Origin.RoutingKey, ReceivedAt: l.ReceivedAt, DiedAt: l.DiedAt, DueAt: l.DueAt, Size: l.Size,
		Summary: l.Summary, Error: l.Error, Why: l.Why, Severity: l.Severity, Unverified: l.Unverified,
	}
}

// Classified is the verdict of the classifier on one received letter.
type Classified struct {
	Letter        ID
	To            Trigger // one of the Classified triggers
	Origin        Origin
	Reason        string
	DiedAt        time.Time
	Repeated      bool // DiedAt is the first of several deaths: the broker does not say when the last was
	Type          string
	Reading       Reading
	Added         []AddedField // that its type does not have, by number, at most MaxAdded
	Rule          string
	Summary       string // masked, at most 200 bytes
	Error         string // masked
	Why           string
	Unwrapped     *Revision // what is sent instead of what was received, as that is only an envelope; nil = nothing
	Unpublishable string    // why RabbitMQ would refuse it as it is; "" = it would not
	GroupKey      [32]byte  // the store finds or makes the group of this key
	GroupTitle    string
	GroupVersion  int
	GroupCause    []byte   // what it fails of, wherever it died: the same in every queue; nil = its error is not known
	Version       string   // of the consumer that gave it up; "" = not said
	Channels      []string // where people are told of it
	Imported      bool     // it died elsewhere: nobody is told
	Tried         bool     // dlo made it for a trial: it is of no group
	Severity      Severity
	DueAt         time.Time
	ToldBy        time.Time     // of a retry: when people are told should it still wait, as all its retries should be over
	Waiter        string        // which waiter of the broker it waits behind; "" = in the store
	Wait          time.Duration // its delay there
	Annotation    int64         // what says so of this death, from now on; 0 = as it was
	Unexplained   DeathKeys     // where nothing says what went wrong: what an annotation may come to know it by
}

// Page selects a page of a list.
type Page struct {
	After  string // cursor of the last row of the page before; "" = first
	Before string // cursor of the first row of the page after; lists the rows just before it
	Limit  int
	Order  Order
}

// Order of a list of letters.
type Order string

const (
	OrderReceived Order = "received" // newest first
	OrderOldest   Order = "oldest"   // first received first
	OrderDied     Order = "died"     // last died first; a letter that does not say when counts as received
	OrderAttempts Order = "attempts" // most often sent back first
	OrderSize     Order = "size"     // largest first
	OrderDue      Order = "due"      // next due first; lists letters with a due time only
)

// Orders are all orders of letters.
var Orders = []Order{OrderReceived, OrderOldest, OrderDied, OrderAttempts, OrderSize, OrderDue}

// Event is one entry of a letter's history and of the audit: one append-only table.
type Event struct {
	Letter    ID
	Operation OperationID
	At        time.Time
	Kind      string
	Actor     string
	Detail    string
}

// FacetValue is one value of a field and how many letters have it.
type FacetValue struct {
	Value string
	Count int
}

// Due is a claimed letter with the attempt that was committed for it.
type Due struct {
	Letter  Letter // with DueAt: of one for a waiter of the broker, when it is to leave there
	Attempt Attempt
	Waiter  string        // it is claimed early, for this waiter of the broker; "" = for its queue
	Wait    time.Duration // its whole delay, of which a part may be over
}

// Indexed is what search finds a letter by: the words of a text, and fields with their values.
// Nothing that is masked may be in it.
type Indexed struct {
	Letter ID
	AsOf   time.Time // when the letter had changed last as it was read; zero = not said
	Text   string
	Fields []IndexedField
}

// IndexedField is a field as the query language names it, such as "header.x-tenant" or "app", with
// a value.
type IndexedField struct{ Name, Value string }
