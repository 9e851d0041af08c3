package deadletter

import "time"

// Origin is the place where a letter last died: broker, vhost and queue, with the exchange and
// routing key of its last publish. A requeue goes to Queue.
type Origin struct{ Broker, VHost, Queue, Exchange, RoutingKey string }

// Severity is the urgency of a dead letter: page, notify or digest.
type Severity string

const (
	SeverityPage   Severity = "page"
	SeverityNotify Severity = "notify"
	SeverityDigest Severity = "digest"
)

// Louder reports whether s is more urgent than another severity. Every severity is louder than "".
func (s Severity) Louder(than Severity) bool { return LoudestFirst(s, than) < 0 }

// LoudestFirst compares severities for a sort that puts the most urgent first.
func LoudestFirst(a, b Severity) int {
	rank := map[Severity]int{SeverityDigest: 1, SeverityNotify: 2, SeverityPage: 3}
	return rank[b] - rank[a]
}

// Arrival is one delivery from an inbox.
type Arrival struct {
	Exchange, RoutingKey string // of this delivery: usually the dead-letter exchange
	Tag                  uint64
	Redelivered          bool // alone never a reason to drop anything
	Properties           Properties
	Body                 []byte
	Fingerprint          Fingerprint
}

// Window is the deliveries of one inbox between two fences. They are committed together and
// acknowledged together.
type Window struct {
	Session       int64 // number of the inbox's session, continued over restarts of dlo
	Number        int64 // number within the session
	Broker, VHost string
	Inbox         string
	Origin        string    // origin of deliveries whose headers name no origin; "" = unknown
	Same          []string  // other names of this broker and vhost in the configuration
	Arrivals      []Arrival // in delivery order
	Prefetch      int       // maximum letters in the next window
	GivesBack     bool      // later letters may come back with the redelivered flag, although none of them is in the window

	// The next fields say which redeliveries the broker can tell apart, and how far back to look
	// for a twin.
	Restarted          bool // the broker was restarted since the last quiet moment: acks may be lost
	RedeliveredLeaks   bool // this inbox may set redelivered on first deliveries too (quorum, >= 4.0; all, >= 4.1)
	EveryReturnCounted bool // this inbox counts every return in x-delivery-count (quorum, >= 4.3)
	FirstReturnCounted bool // this inbox counts the first return of a letter without x-delivery-count (quorum)
	Uncertain          Uncertain
	Horizon            time.Duration
	HorizonRows        int
}

// Ours reports whether letters in the window cannot have a queue as their origin, because the queue
// is their inbox or one of dlo's own queues.
func (w *Window) Ours(queue string) bool { return queue == w.Inbox || NoOrigin(queue) }

// Receipt is the result of a committed window.
type Receipt struct {
	Window   int64 // window to settle once the broker has processed the ack
	New      []ID  // new rows, including suspects
	CameBack int   // letters that joined their existing row
	Returned []ID  // ids of the letters that came back
	Copies   int   // further copies of a closed attempt
	Merged   int   // letters merged into their twin
	Suspects int   // rows that may be copies, to be held
}

// InboxSession contains what the store knows when an inbox session starts.
type InboxSession struct {
	Number    int64
	Marker    string // marker whose loss reveals a restart of the broker; "" = there is none yet
	Restarted bool   // a restart was detected, and letters may still come back because of it
	Prefetch  int    // maximum number of letters that earlier sessions may have held unacknowledged; 0 = unknown
	AtStake   int    // letters on their last delivery that the last session did not store
}

// SessionFacts contains what a new inbox session has learned about its broker.
type SessionFacts struct {
	Marker             MarkerState
	Late               string // why acknowledged letters may come back although the marker is present; "" = there is no sign of that
	RedeliveredLeaks   bool   // Window.RedeliveredLeaks
	EveryReturnCounted bool   // Window.EveryReturnCounted
	FirstReturnCounted bool   // Window.FirstReturnCounted
	DeliveryLimit      int    // how many lost deliveries of a letter the broker tolerates; one more deletes the letter; 0 = no limit
}

// LastTime reports whether the broker deletes the letter if this delivery is lost. With a limit of
// 3, this is true of the delivery with count 3 (3.10.8, 4.0.5, 4.3.6).
func (f *SessionFacts) LastTime(a *Arrival) bool {
	return f.DeliveryLimit > 0 && a.DeliveryCount() >= int64(f.DeliveryLimit)
}

// MarkerState says what happened to an inbox's marker since the last session. In every state except
// MarkerThere, the broker may have been restarted.
type MarkerState int

const (
	MarkerThere   MarkerState = iota // the marker is present, or no marker was looked for
	MarkerEmptied                    // the message is gone, as after a broker restart
	MarkerDeleted                    // the queue is gone, which no restart causes
	MarkerUnknown                    // the marker could not be requested
)

// String describes the state in words that can begin a sentence.
func (s MarkerState) String() string {
	switch s {
	case MarkerEmptied:
		return "the broker was restarted"
	case MarkerDeleted:
		return "the marker queue is gone, but a restart does not delete it, so dlo cannot tell whether the broker was restarted"
	case MarkerUnknown:
		return "the marker cannot be read, so dlo cannot tell whether the broker was restarted"
	}
	return "the broker was not restarted"
}

// Uncertain says how a letter is treated that may or may not be a copy of its twin.
type Uncertain string

const (
	UncertainHold  Uncertain = "hold"  // separate row, linked to its twin, held by classify
	UncertainKeep  Uncertain = "keep"  // separate row, treated like any other
	UncertainMerge Uncertain = "merge" // merged into its twin
)

// OpenWindow is a window that was committed, but was not recorded as settled. Of all windows of an
// inbox, only this one can come back.
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
	Reason       string // reason of the latest death; not limited to a fixed set
	Properties   Properties
	Body         []byte     // as received; immutable
	Arrived      Properties // properties of the newest arrival; after the letter came back, they differ from Properties
	ArrivedBody  []byte     // body of the newest arrival, if that is an EasyNetQ error around the body that was sent; nil = same as sent
	ArrivedBy    Route      // exchange and routing key of the first arrival
	Type         string
	Reading      Reading   // how its body was read
	Picked       string    // type that a person picked for this letter, "" = none
	GroupPick    string    // type that a person chose for its group
	Revision     int       // newest revision, sent instead of Properties and Body; 0 = none
	Revised      *Revision // newest revision; nil = none
	Group        GroupID
	GroupVersion int // version of the grouping that found its group; 0 = none
	Severity     Severity
	Rule         string
	Summary      string   // masked, at most 200 bytes
	Error        string   // masked
	Annotation   *Failure // the consumer's report on its latest death; nil = none
	Why          string   // why it is held or dead
	Attempts     int      // attempts used; an attempt that ended in a nack or a return does not count
	Reset        int      // attempts that were used before a person restarted the letter's retries
	Nacks        int      // consecutive rejections by its queue
	Operation    OperationID
	Twin         ID    // letter that it may be a copy of, or whose token it carries
	Doubt        Doubt // why it may be a copy of Twin and is held until people decide; "" = it is not held for that reason
	WaitsIn      string
	Withheld     bool  // body, headers and properties are left out, because the request may not read them
	Unverified   bool  // settled although it is unknown whether a consumer reads its queue
	Unguarded    bool  // a person released it, so the classifier never holds it again
	Imported     State // state that the classifier gives an imported letter, because another dlo decided on it; "" = not imported
	Crashes      int   // process crashes while this letter was being classified
	Size         int   // bytes of the body
	ReceivedAt   time.Time
	DiedAt       time.Time // whole seconds; zero if the headers do not give it
	DueAt        time.Time // scheduled: time of the retry; requeued: end of the watch
	ChangedAt    time.Time
}

// Withhold removes the parts of a letter that a request is not allowed to read.
func (l *Letter) Withhold() {
	l.Properties, l.Body, l.Arrived, l.ArrivedBody, l.Revised, l.Summary = Properties{}, nil, Properties{}, nil, nil, ""
	l.Withheld = true
}

// Place returns the place to which the letter belongs. This is the queue that it died in or, if
// that queue is unknown, the inbox that it was drained from.
func (l *Letter) Place() Origin { return belongs(l.Origin, l.Inbox) }

func belongs(o Origin, inbox string) Origin {
	if o.Queue == "" {
		return Origin{Broker: o.Broker, VHost: o.VHost, Queue: inbox}
	}
	return o
}

// MaxCrashes is how often the process may crash while it reads a letter. After that many crashes,
// dlo no longer reads the letter. With a limit of 2, a letter reached the limit in one of 60 loops
// in which the process was killed from outside.
const MaxCrashes = 3

// InBroker reports whether a letter waits in the broker, where nobody can act on it. Once the
// letter has been due for longer than Overdue, InBroker returns false even if the broker has not
// moved the letter on.
func (l *Letter) InBroker(now time.Time) bool {
	return l.WaitsIn != "" && now.Before(l.DueAt.Add(Overdue))
}

// Undecodable reports whether reading this letter has crashed the process too often. Such a letter
// must not be decoded again.
func (l *Letter) Undecodable() bool { return l.Crashes >= MaxCrashes }

// Current returns the content that a requeue of the letter sends, before it is sanitised: the
// newest revision, or the message as received.
func (l *Letter) Current() (Properties, []byte) {
	if l.Revised != nil {
		return l.Revised.Properties, l.Revised.Body
	}
	return l.Properties, l.Body
}

// Route is the exchange and routing key of a delivery.
type Route struct{ Exchange, RoutingKey string }

// Row is a letter in the form that lists show, without its body and headers.
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

// Row returns the letter in the form that lists show.
func (l *Letter) Row() Row {
	return Row{
		ID: l.ID, State: l.State, WaitsIn: l.WaitsIn, Broker: l.Origin.Broker, VHost: l.Origin.VHost, Queue: l.Origin.Queue,
		Reason: l.Reason, Type: l.Type, Group: l.Group, Attempts: l.Attempts, Exchange: l.Origin.Exchange,
		RoutingKey: l.Origin.RoutingKey, ReceivedAt: l.ReceivedAt, DiedAt: l.DiedAt, DueAt: l.DueAt, Size: l.Size,
		Summary: l.Summary, Error: l.Error, Why: l.Why, Severity: l.Severity, Unverified: l.Unverified,
	}
}

// Classified is the classifier's verdict on one received letter.
type Classified struct {
	Letter        ID
	To            Trigger // one of the Classified triggers
	Origin        Origin
	Reason        string
	DiedAt        time.Time
	Repeated      bool // DiedAt is the time of the first of several deaths, because the broker does not report the time of the last
	Type          string
	Reading       Reading
	Added         []AddedField // fields that its type does not declare, by number, at most MaxAdded
	Rule          string
	Summary       string // masked, at most 200 bytes
	Error         string // masked
	Why           string
	Unwrapped     *Revision // revision that is sent instead of the received message, which is only an envelope; nil = none
	Unpublishable string    // why RabbitMQ would refuse the letter as it is now; "" = it would accept it
	GroupKey      [32]byte  // the store finds or creates the group with this key
	GroupTitle    string
	GroupVersion  int
	GroupCause    []byte   // cause of the failure, equal in every queue; nil = the error is unknown
	Version       string   // version of the consumer that rejected the letter; "" = not reported
	Channels      []string // channels that are notified
	Imported      bool     // the letter died elsewhere, so there are no notices
	Tried         bool     // dlo made it for a trial: it has no group
	Severity      Severity
	DueAt         time.Time
	ToldBy        time.Time     // retry: when all retries should be over; people are notified if the letter still waits then
	Waiter        string        // the waiter of the broker in which it waits; "" = in the store
	Wait          time.Duration // delay in the waiter
	Annotation    int64         // id of the annotation that now explains this death; 0 = unchanged
	Unexplained   DeathKeys     // if no annotation explains the failure: keys by which a later annotation may find it
}

// Page selects a page of a list.
type Page struct {
	After  string // cursor of the last row of the previous page; "" = first
	Before string // cursor of the first row of the next page; selects the rows just before that row
	Limit  int
	Order  Order
}

// Order is the order of a list of letters.
type Order string

const (
	OrderReceived Order = "received" // newest first
	OrderOldest   Order = "oldest"   // first received first
	OrderDied     Order = "died"     // last died first; without a time of death, the time received counts
	OrderAttempts Order = "attempts" // most attempts first
	OrderSize     Order = "size"     // largest first
	OrderDue      Order = "due"      // next due first; only letters with a due time
)

// Orders lists all orders of letters.
var Orders = []Order{OrderReceived, OrderOldest, OrderDied, OrderAttempts, OrderSize, OrderDue}

// Event is one entry of a letter's history and of the audit. Both are kept in one append-only
// table.
type Event struct {
	Letter    ID
	Operation OperationID
	At        time.Time
	Kind      string
	Actor     string
	Detail    string
}

// FacetValue is one value of a field and the number of letters that have it.
type FacetValue struct {
	Value string
	Count int
}

// Due is a claimed letter with the attempt committed for it.
type Due struct {
	Letter  Letter // its DueAt is set; if a waiter of the broker takes the letter, DueAt is when the letter leaves the waiter
	Attempt Attempt
	Waiter  string        // waiter of the broker for which it is claimed early; "" = it goes to its queue
	Wait    time.Duration // its whole delay, of which a part may have passed
}

// Indexed is the search data of a letter: the words of a text, and fields with their values. It
// must not contain masked data.
type Indexed struct {
	Letter ID
	AsOf   time.Time // time of the letter's last change, as read; zero = not given
	Text   string
	Fields []IndexedField
}

// IndexedField is a field and its value. The name is the one used in the query language, such as
// "header.x-tenant" or "app".
type IndexedField struct{ Name, Value string }
