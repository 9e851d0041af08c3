package deadletter

import (
	"cmp"
	"fmt"
	"time"
)

// Problem is something that keeps a part of dlo from its work, or loses letters, while it lasts.
type Problem struct {
	Kind     ProblemKind
	Severity Severity // how loudly it calls
	Title    string   // a sentence
	Text     string   // what is known of it
	Cure     string   // what to do about it; "" = nothing that could be said in a line
	Since    time.Time
	// What it is about; "" = nothing in particular.
	Broker, VHost, Inbox, Queue string
}

// ProblemKind is a stable word for a problem; docs/monitoring lists them.
type ProblemKind string

// The kinds of problems.
const (
	ProblemBrokerAway     ProblemKind = "broker_away"
	ProblemBrokerUnknown  ProblemKind = "broker_unknown" // letters of a broker that is not configured: nobody sends them
	ProblemInboxNotRead   ProblemKind = "inbox_not_read"
	ProblemInboxLoses     ProblemKind = "inbox_loses_letters" // a policy or an argument lets the broker delete letters from it
	ProblemInboxUnbound   ProblemKind = "inbox_unbound"       // what dies is not led to it
	ProblemInboxDeleted   ProblemKind = "inbox_deleted"       // within a day, with all that was in it
	ProblemNearLimit      ProblemKind = "inbox_near_limit"    // its letters have few deliveries left
	ProblemMissing        ProblemKind = "letters_missing"     // the broker deleted them before they were stored
	ProblemOwnQueue       ProblemKind = "own_queue"           // another queue of dlo loses messages
	ProblemRights         ProblemKind = "rights"              // the user of dlo may not do what it has to
	ProblemManagement     ProblemKind = "management"          // the management API does not answer
	ProblemBlocked        ProblemKind = "blocked"             // the broker takes no messages
	ProblemWaiter         ProblemKind = "waiter"              // letters wait in the store instead of the broker
	ProblemStoreRestored  ProblemKind = "store_restored"      // it is a copy: what may have been sent since is held
	ProblemStoreUnproved  ProblemKind = "store_unproved"      // nothing shows that it is no copy: nothing is sent
	ProblemStoreDamaged   ProblemKind = "store_damaged"       // nothing more is written to it
	ProblemStoreOther     ProblemKind = "store_other"         // another store was in its place
	ProblemBrokerReplaced ProblemKind = "broker_replaced"     // it is older than what it had confirmed
	ProblemNoProgress     ProblemKind = "progress"            // it cannot be noted how far the store has got
	ProblemDisk           ProblemKind = "disk"
	ProblemAge            ProblemKind = "age"     // dead letters are about to age out
	ProblemNotices        ProblemKind = "notices" // they do not get through
)

// ProblemKinds lists all kinds.
var ProblemKinds = []ProblemKind{
	ProblemBrokerAway, ProblemBrokerUnknown, ProblemInboxNotRead, ProblemInboxLoses, ProblemInboxUnbound, ProblemInboxDeleted, ProblemNearLimit, ProblemMissing, ProblemOwnQueue, ProblemRights, ProblemManagement, ProblemBlocked, ProblemWaiter,
	ProblemStoreRestored, ProblemStoreUnproved, ProblemStoreDamaged, ProblemStoreOther, ProblemBrokerReplaced, ProblemNoProgress, ProblemDisk, ProblemAge, ProblemNotices,
}

// Key tells a problem from others: the same one has the same key for as long as it lasts.
func (p *Problem) Key() string {
	return fmt.Sprintf("problem %s %s %s %s", p.Kind, p.Broker, Visible(p.VHost), Visible(cmp.Or(p.Queue, p.Inbox)))
}

// Problems returns what a broker keeps dlo from. All else is unknown while it is away.
func (s *BrokerStatus) Problems() []Problem {
	var list []Problem
	if !s.Connected {
		return []Problem{s.away()}
	}
	add := func(kind ProblemKind, severity Severity, inbox, title, text string) {
		list = append(list, Problem{Kind: kind, Severity: severity, Title: title, Text: text, Broker: s.Name, VHost: s.VHost, Inbox: inbox})
	}
	if p := s.rightsProblem(); p != nil {
		list = append(list, *p)
	}
	if s.Blocked != "" {
		add(ProblemBlocked, SeverityNotify, "", "Broker "+s.Name+" takes no messages now.", "Retries and requeues wait until it does. It says: "+s.Blocked)
	}
	if s.Note != "" {
		add(ProblemWaiter, SeverityNotify, "", "Broker "+s.Name+" is not as the rules want it.", s.Note)
	}
	for _, i := range s.Inboxes {
		if !i.Draining && i.Reason != "" && !s.refused(i.Queue) {
			add(ProblemInboxNotRead, SeverityPage, i.Queue, "Inbox "+i.Queue+" is not read.", "Its letters wait there: "+i.Reason)
		}
	}
	return append(list, s.Queues...)
}

// away is the problem that a broker is not connected. Until it was once, nothing keeps what dies.
func (s *BrokerStatus) away() Problem {
	p := Problem{
		Kind: ProblemBrokerAway, Severity: SeverityPage, Broker: s.Name, VHost: s.VHost, Since: s.Since,
		Title: "Broker " + s.Name + " is not connected.", Text: "What is stored here is complete; its letters wait there. " + s.Reason,
	}
	if !s.Reached {
		p.Title, p.Text = "Never connected to broker "+s.Name+".", UntilReached(s.Exchange)+" "+s.Reason
		p.Cure = CheckSetting(s.Setting)
	}
	return p
}

// UntilReached says what becomes of dead letters until dlo has been connected to a broker once,
// where it declares exchange; "" = it declares none.
func UntilReached(exchange string) string {
	if exchange == "" {
		return "Until dlo has connected once, it is not known whether dead letters are kept."
	}
	return "Until dlo has connected once, dead letters are dropped by the broker."
}

// CheckSetting says which setting leads to a broker; "" where it is not known.
func CheckSetting(setting string) string {
	if setting == "" {
		return ""
	}
	return "Check " + setting + "."
}
