package deadletter

import "time"

// Origin is the place where a letter last died: broker, vhost and queue. It also contains the
// exchange and routing key with which the letter was last published. A requeue sends the letter to
// Queue.
type Origin struct {
	Broker     string `json:"broker,omitzero"`
	VHost      string `json:"vhost,omitzero"`
	Queue      string `json:"queue,omitzero"`
	Exchange   string `json:"-"`
	RoutingKey string `json:"-"`
}

// Severity is how urgently a dead letter needs people: page, notify or digest.
type Severity string

const (
	SeverityPage   Severity = "page"
	SeverityNotify Severity = "notify"
	SeverityDigest Severity = "digest"
)

// Louder reports whether a severity is higher than another one. Every severity is higher than "".
func (s Severity) Louder(than Severity) bool { return LoudestFirst(s, than) < 0 }

// LoudestFirst compares two severities. It is used to sort the highest severity first.
func LoudestFirst(a, b Severity) int {
	rank := map[Severity]int{SeverityDigest: 1, SeverityNotify: 2, SeverityPage: 3}
	return rank[b] - rank[a]
}

// Arrival is one delivery from an inbox.
type Arrival struct {
	// exchange and routing key of this delivery; the exchange is usually the dead-letter exchange
	Exchange, RoutingKey string
	Tag                  uint64
	Redelivered          bool // this flag alone is never a reason to drop a delivery
	Properties           Properties
	Body                 []byte
	Fingerprint          Fingerprint
}

// Window contains the deliveries that dlo fetches from an inbox at a time. They are committed
// together and acknowledged together.
type Window struct {
	Session       int64 // number of the inbox's session; the numbers continue after a restart of dlo
	Number        int64 // number of the window within its session
	Broker, VHost string
	Inbox         string
	Origin        string    // origin of deliveries whose headers do not say where they died; "" = unknown
	Same          []string  // other names of the same broker and vhost in the configuration
	Arrivals      []Arrival // deliveries in the order in which they were received
	Prefetch      int       // maximum number of letters in the next window
	// later letters may come back with the redelivered flag, although they are not in this window
	GivesBack bool

	// The store uses the following fields to decide whether a delivery is a new letter or one that
	// comes back. If this cannot be decided, the field Uncertain says what happens to the letter.
	// The two fields of the horizon say how far back the store searches for an earlier copy of the
	// letter.
	Restarted bool // the broker was restarted recently, so that acks may be lost
	// this inbox may also set the redelivered flag on first deliveries (quorum, >= 4.0; all, >=
	// 4.1)
	RedeliveredLeaks   bool
	EveryReturnCounted bool // this inbox counts every return of a letter in x-delivery-count (quorum, >= 4.3)
	FirstReturnCounted bool // this inbox counts the first return of a letter that has no x-delivery-count (quorum)
	Uncertain          Uncertain
	Horizon            time.Duration
	HorizonRows        int
}

// Ours reports whether a queue can never be the origin of letters in the window. This is true of
// the window's inbox, and of dlo's own queues. The only exceptions are the queues of trials and
// probes.
func (w *Window) Ours(queue string) bool { return queue == w.Inbox || NoOrigin(queue) }

// Receipt says what happened to the deliveries of a committed window.
type Receipt struct {
	Window   int64 // id of the window, which must be settled when the broker has processed the ack
	New      []ID  // ids of the new letters, including suspects
	CameBack int   // number of letters that came back and joined their existing row
	Returned []ID  // ids of the letters that came back
	Copies   int   // number of further copies of closed attempts
	Merged   int   // number of letters that were merged into their twins
	Suspects int   // number of new letters that may be copies and will be held
}

// InboxSession contains what the store knows about an inbox when a session begins.
type InboxSession struct {
	Number    int64
	Marker    string // marker by whose loss a restart of the broker is detected; "" = there is none yet
	Restarted bool   // a restart was detected, and letters may still come back because of it
	// maximum number of letters that earlier sessions may have had without acknowledging them; 0 =
	// unknown
	Prefetch int
	AtStake  int // number of letters on their last delivery that the last session did not store
	// the longest time for which the broker may hold back what the last session did not acknowledge
	Delay time.Duration
}

// SessionFacts contains what a new session of an inbox has found out about the broker.
type SessionFacts struct {
	Marker MarkerState
	// reason why acknowledged letters may come back although the marker still exists; "" = there is
	// no such sign
	Late               string
	RedeliveredLeaks   bool // the inbox may also set the redelivered flag on first deliveries
	EveryReturnCounted bool // the inbox counts every return of a letter in x-delivery-count
	FirstReturnCounted bool // the inbox counts the first return of a letter that has no x-delivery-count
	// the longest time for which the broker holds back what this session does not acknowledge; 0 =
	// it gives letters back at once
	Delay time.Duration
	// number of lost deliveries after which the next one deletes a letter; 0 = no limit
	DeliveryLimit int
}

// LastTime reports whether the delivery limit of the queue permits no further delivery of the
// letter. If this delivery is lost, the broker deletes the letter. For example, if the limit is 3,
// LastTime returns true for a delivery with the header x-delivery-count 3 (3.10.8, 4.0.5, 4.3.6).
func (f *SessionFacts) LastTime(a *Arrival) bool {
	return f.DeliveryLimit > 0 && a.DeliveryCount() >= int64(f.DeliveryLimit)
}

// MarkerState says what happened to the marker of an inbox since the last session. The marker is a
// queue with one message that a restart of the broker removes. In every state except MarkerThere,
// the broker may have been restarted.
type MarkerState int

const (
	MarkerThere   MarkerState = iota // the marker exists, or dlo did not look for one
	MarkerEmptied                    // the message is gone, as after a restart of the broker
	MarkerDeleted                    // the marker's queue is gone, which is never the result of a restart
	MarkerUnknown                    // dlo could not look for the marker
)

// String describes the state in words. A sentence can begin with these words.
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

// Uncertain says what happens to a letter if nobody can tell whether it is a copy of a stored
// letter. The stored letter that equals it is called its twin.
type Uncertain string

const (
	UncertainHold  Uncertain = "hold"  // the letter gets its own row, linked to its twin, and the classifier holds it
	UncertainKeep  Uncertain = "keep"  // the letter gets its own row and is treated like any other letter
	UncertainMerge Uncertain = "merge" // the letter is merged into its twin
)

// OpenWindow is a window that is committed but not yet settled. An inbox has at most one open
// window. No other window of the inbox can be delivered again.
type OpenWindow struct {
	ID           int64
	Fingerprints []Fingerprint // fingerprints in the order of the deliveries
}

// Letter is a dead-lettered message that dlo has stored. Its JSON has nothing of the contents, as
// these may have to be masked.
type Letter struct {
	Row
	Inbox      string     `json:"inbox"` // inbox from which the letter was drained
	Properties Properties `json:"-"`
	Body       []byte     `json:"-"` // body as it was received; it never changes
	// properties of the newest arrival; they differ from Properties after the letter has come back
	Arrived Properties `json:"-"`
	// body of the newest arrival, if it is an EasyNetQ error around the body that was sent; nil =
	// the body that was sent
	ArrivedBody []byte  `json:"-"`
	ArrivedBy   Route   `json:"-"` // exchange and routing key of the first arrival
	Reading     Reading `json:"-"` // how the body was read
	Picked      string  `json:"-"` // type that a person picked for this letter; "" = none
	GroupPick   string  `json:"-"` // type that a person picked for the group of the letter; "" = none
	// number of the newest revision, which is sent instead of Properties and Body; 0 = none
	Revision     int         `json:"-"`
	Revised      *Revision   `json:"-"`    // the newest revision; nil = none
	GroupVersion int         `json:"-"`    // version of the grouping that determined the group; 0 = none
	Rule         string      `json:"rule"` // the rule that applied last
	Annotation   *Failure    `json:"-"`    // consumer's report on the latest death; nil = none
	Reset        int         `json:"-"`    // number of attempts before a person restarted the retries of the letter
	Nacks        int         `json:"-"`    // number of times in a row that the queue rejected the letter
	Operation    OperationID `json:"operation"`
	Twin         ID          `json:"twin"` // letter of which this letter may be a copy, or whose token it contains
	// reason why it may be a copy of Twin and is held until people decide; "" = it is not held for
	// such a reason
	Doubt Doubt `json:"-"`
	// contents that the store no longer has as dlo stored them; "" = none
	Damage string `json:"damaged,omitzero"`
	// body, headers and properties are left out, because the request may not read them
	Withheld bool `json:"withheld,omitzero"`
	// a person released the letter, so that the classifier does not hold it again
	Unguarded bool `json:"-"`
	// state that the classifier gives to an imported letter, because another dlo has decided about
	// it; "" = not imported
	Imported  State     `json:"-"`
	Crashes   int       `json:"-"` // number of times that the process crashed while it read this letter
	ChangedAt time.Time `json:"changed_at,omitzero"`
}

// WhyDamaged returns the reason why a letter is neither sent nor edited. The parameter "damage" is
// the Damage of the letter.
func WhyDamaged(damage string) string {
	return "damaged: " + damage + " changed in the file of the store"
}

// Withhold removes the parts of a letter that a request may not read.
func (l *Letter) Withhold() {
	l.Properties, l.Body, l.Arrived, l.ArrivedBody, l.Revised, l.Summary = Properties{}, nil, Properties{}, nil, nil, ""
	l.Withheld = true
}

// Place returns the place to which the letter belongs. This is the queue in which it died. If that
// queue is unknown, it is the inbox from which the letter was drained.
func (l *Letter) Place() Origin { return placeOf(l.Origin(), l.Inbox) }

func placeOf(o Origin, inbox string) Origin {
	if o.Queue == "" {
		return Origin{Broker: o.Broker, VHost: o.VHost, Queue: inbox}
	}
	return o
}

// MaxCrashes is the number of crashes after which dlo no longer reads a letter. A crash counts for
// a letter if the process dies while it reads the letter. A limit of 2 would be too low: in a test
// that killed the process from outside in 60 loops, one letter reached 2.
const MaxCrashes = 3

// InBroker reports whether a letter waits in the broker, where nobody can act on it. If the letter
// has been due for longer than the constant Overdue, InBroker returns false, even if the letter is
// still in its wait queue.
func (l *Letter) InBroker(now time.Time) bool {
	return l.WaitsIn != "" && now.Before(l.DueAt.Add(Overdue))
}

// Undecodable reports whether the process crashed too often while it read this letter. Such a
// letter must not be decoded again.
func (l *Letter) Undecodable() bool { return l.Crashes >= MaxCrashes }

// Current returns the contents that a requeue of the letter sends, before Sanitise changes them.
// These are the contents of the newest revision, or the message as it was received.
func (l *Letter) Current() (Properties, []byte) {
	if l.Revised != nil {
		return l.Revised.Properties, l.Revised.Body
	}
	return l.Properties, l.Body
}

// Route is the exchange and the routing key of a delivery.
type Route struct{ Exchange, RoutingKey string }

// Row is a letter with the values that lists show. It has no body and no headers.
type Row struct {
	// An export as CSV has the fields with a csv tag, in the order of their declaration.

	ID         ID        `json:"id" csv:"id"`
	State      State     `json:"state" csv:"state"`
	ReceivedAt time.Time `json:"received_at" csv:"received_at"`
	DiedAt     time.Time `json:"died_at" csv:"died_at"` // in whole seconds; zero if the headers do not contain it
	// scheduled: time of the retry; requeued: end of the watch
	DueAt    time.Time `json:"due_at,omitzero" csv:"due_at"`
	Broker   string    `json:"broker" csv:"broker"`
	VHost    string    `json:"vhost" csv:"vhost"`
	Queue    string    `json:"queue" csv:"queue"`
	Reason   string    `json:"reason" csv:"reason"` // reason of the latest death; any text is possible
	Type     string    `json:"type" csv:"type"`
	Group    GroupID   `json:"group" csv:"group"`
	Severity Severity  `json:"severity" csv:"severity"`
	// number of attempts; an attempt that ended with a nack or a return does not count
	Attempts   int    `json:"attempts" csv:"attempts"`
	Exchange   string `json:"exchange" csv:"exchange"`
	RoutingKey string `json:"routing_key" csv:"routing_key"`
	Size       int    `json:"size" csv:"size"`       // size of the body in bytes
	Summary    string `json:"summary" csv:"summary"` // summary of the body without masked values, at most 200 bytes
	Error      string `json:"error" csv:"error"`     // error text without masked values
	Why        string `json:"why" csv:"why"`         // reason why the letter is held or dead
	WaitsIn    string `json:"waits_in"`              // queue of the broker in which the letter waits; "" = none
	Unverified bool   `json:"unverified"`            // settled, but it is unknown whether a consumer reads the queue
}

// Origin returns the place where the letter last died.
func (r *Row) Origin() Origin { return Origin{r.Broker, r.VHost, r.Queue, r.Exchange, r.RoutingKey} }

// SetOrigin sets the place where the letter last died.
func (r *Row) SetOrigin(o Origin) {
	r.Broker, r.VHost, r.Queue, r.Exchange, r.RoutingKey = o.Broker, o.VHost, o.Queue, o.Exchange, o.RoutingKey
}

// Texts returns the values that are made from the contents of the letter. They may contain what a
// mask hides, and a purge erases them.
func (r *Row) Texts() []*string { return []*string{&r.Summary, &r.Error} }

// Classified is the classifier's verdict on a received letter.
type Classified struct {
	Letter ID
	To     Trigger // one of the triggers whose names begin with Classified
	Origin Origin
	Reason string
	DiedAt time.Time
	// DiedAt is the time of the first of several deaths, because the broker does not report the
	// time of the last one
	Repeated bool
	Type     string
	Reading  Reading
	Added    []AddedField // up to MaxAdded fields that the type does not declare, sorted by number
	Rule     string
	Summary  string // summary of the body without masked values, at most 200 bytes
	Error    string // error text without masked values
	Why      string
	// revision that is sent instead of the received message, if that is only an envelope; nil =
	// none
	Unwrapped     *Revision
	Unpublishable string   // reason why RabbitMQ would reject the letter as it is now; "" = it would accept the letter
	GroupKey      [32]byte // key by which the store finds the group, or with which it creates the group
	GroupTitle    string
	GroupVersion  int
	GroupCause    []byte   // cause of the failure, which is equal in every queue; nil = the error is unknown
	Version       string   // version of the consumer that rejected the letter; "" = not reported
	Channels      []string // channels on which people are notified
	Imported      bool     // the letter died for another dlo, so that nobody is notified
	Tried         bool     // dlo made the letter for a trial, so that it has no group
	Severity      Severity
	DueAt         time.Time
	// for a retry: time by which all retries should be over; people are notified if the letter
	// still waits then
	ToldBy      time.Time
	Waiter      string        // waiter of the broker in which the letter waits; "" = it waits in the store
	Wait        time.Duration // delay of the waiter
	Annotation  int64         // id of the annotation that now explains this death; 0 = no change
	Unexplained DeathKeys     // if no annotation explains the death, the keys by which a later annotation may find it
}

// Page selects one page of a list of letters.
type Page struct {
	After  string // cursor of the last row on the previous page; "" = first page
	Before string // cursor of the first row on the next page; the page then consists of the rows just before it
	Limit  int
	Order  Order
}

// Looked says how far a query has searched the letters for a path of the body that has no index.
// Such a search reads the letters one by one, and may end before it has read all of them.
type Looked struct {
	Paths   []string  `json:"-"`             // the paths of the body that have no index
	Letters int       `json:"letters"`       // number of letters searched
	Back    time.Time `json:"back,omitzero"` // when the last letter searched was received
	All     bool      `json:"all"`           // every letter was searched
}

// Order is the order of a list of letters.
type Order string

const (
	OrderReceived Order = "received" // newest received first
	OrderOldest   Order = "oldest"   // oldest received first
	OrderDied     Order = "died"     // latest death first; without a time of death, the time of receipt counts
	OrderAttempts Order = "attempts" // most attempts first
	OrderSize     Order = "size"     // largest first
	OrderDue      Order = "due"      // earliest due time first; only letters that have a due time
)

// Orders lists all orders of letters.
var Orders = []Order{OrderReceived, OrderOldest, OrderDied, OrderAttempts, OrderSize, OrderDue}

// Event is one entry in the history of a letter or in the audit. Both are in one table, to which
// entries are only added.
type Event struct {
	Letter    ID          `json:"-"`
	Operation OperationID `json:"operation"`
	At        time.Time   `json:"at"`
	Kind      string      `json:"kind"`
	Actor     string      `json:"actor"`
	Detail    string      `json:"detail"`
}

// FacetValue is one value of a field, and the number of letters with this value.
type FacetValue struct {
	Value string `json:"value"`
	Count int    `json:"count"`
}

// Due is a claimed letter together with its committed attempt.
type Due struct {
	Letter  Letter // its DueAt is set; if the letter will wait in the broker, DueAt is the end of that wait
	Attempt Attempt
	Waiter  string        // waiter of the broker for which the letter was claimed early; "" = it goes to its queue
	Wait    time.Duration // whole delay, of which a part may be over
}

// Indexed contains what the search index needs to know about a letter: a text with words, and
// fields with values. It must not contain masked values.
type Indexed struct {
	Letter ID
	AsOf   time.Time // time of the last change to the letter, when the letter was read; zero = not given
	Text   string
	Fields []IndexedField
}

// IndexedField is a field with its value. The name is that of the query language, such as
// "header.x-tenant" or "app".
type IndexedField struct{ Name, Value string }
