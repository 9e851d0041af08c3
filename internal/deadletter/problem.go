package deadletter

import (
	"cmp"
	"fmt"
	"time"
)

// Problem is a condition that keeps a part of dlo from working, or that loses letters.
type Problem struct {
	Kind     ProblemKind
	Severity Severity // its urgency
	Title    string   // a sentence
	Text     string   // the known details
	Cure     string   // remedy for the problem; "" = none that fits in a line
	Since    time.Time
	// These fields name the subject of the problem; "" = nothing in particular.
	Broker, VHost, Inbox, Queue string
}

// ProblemKind is a stable identifier of a kind of problem; docs/monitoring lists them.
type ProblemKind string

// These are the kinds of problems.
const (
	ProblemBrokerAway     ProblemKind = "broker_away"
	ProblemBrokerUnknown  ProblemKind = "broker_unknown" // letters of a broker that is not configured: they are not sent
	ProblemInboxNotRead   ProblemKind = "inbox_not_read"
	ProblemInboxLoses     ProblemKind = "inbox_loses_letters" // a policy or an argument lets the broker delete letters from it
	ProblemInboxUnbound   ProblemKind = "inbox_unbound"       // dead letters are not routed to it
	ProblemInboxDeleted   ProblemKind = "inbox_deleted"       // it was deleted within the last day, with its contents
	ProblemNearLimit      ProblemKind = "inbox_near_limit"    // its letters have few deliveries left
	ProblemMissing        ProblemKind = "letters_missing"     // the broker deleted them before dlo stored them
	ProblemOwnQueue       ProblemKind = "own_queue"           // another queue of dlo loses messages
	ProblemRights         ProblemKind = "rights"              // dlo's broker user lacks a right it needs
	ProblemManagement     ProblemKind = "management"          // the management API does not respond
	ProblemBlocked        ProblemKind = "blocked"             // the broker accepts no messages
	ProblemWaiter         ProblemKind = "waiter"              // letters wait in the store instead of the broker
	ProblemStoreRestored  ProblemKind = "store_restored"      // the store is a copy: letters that may have been sent since are held
	ProblemStoreUnproved  ProblemKind = "store_unproved"      // the store is not proved current, so nothing is sent
	ProblemStoreDamaged   ProblemKind = "store_damaged"       // dlo no longer writes to it
	ProblemStoreOther     ProblemKind = "store_other"         // a different store was in its place
	ProblemBrokerReplaced ProblemKind = "broker_replaced"     // the broker is older than the progress that it confirmed
	ProblemNoProgress     ProblemKind = "progress"            // the store's progress cannot be noted
	ProblemDisk           ProblemKind = "disk"
	ProblemAge            ProblemKind = "age"     // dead letters are about to age out
	ProblemNotices        ProblemKind = "notices" // notices are not delivered
)

// ProblemKinds lists all kinds.
var ProblemKinds = []ProblemKind{
	ProblemBrokerAway, ProblemBrokerUnknown, ProblemInboxNotRead, ProblemInboxLoses, ProblemInboxUnbound, ProblemInboxDeleted, ProblemNearLimit, ProblemMissing, ProblemOwnQueue, ProblemRights, ProblemManagement, ProblemBlocked, ProblemWaiter,
	ProblemStoreRestored, ProblemStoreUnproved, ProblemStoreDamaged, ProblemStoreOther, ProblemBrokerReplaced, ProblemNoProgress, ProblemDisk, ProblemAge, ProblemNotices,
}

// Key identifies a problem. The key stays the same for as long as the problem lasts.
func (p *Problem) Key() string {
	return fmt.Sprintf("problem %s %s %s %s", p.Kind, p.Broker, Visible(p.VHost), Visible(cmp.Or(p.Queue, p.Inbox)))
}

// Problems returns the problems that a broker causes. While dlo is not connected to the broker, it
// does not know the broker's other problems.
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
		add(ProblemBlocked, SeverityNotify, "", "Broker "+s.Name+" accepts no messages now.", "Retries and requeues wait until it accepts messages again. It reports: "+s.Blocked)
	}
	if s.Note != "" {
		add(ProblemWaiter, SeverityNotify, "", "Broker "+s.Name+" does not provide what the rules need.", s.Note)
	}
	for _, i := range s.Inboxes {
		if !i.Draining && i.Reason != "" && !s.refused(i.Queue) {
			add(ProblemInboxNotRead, SeverityPage, i.Queue, "Inbox "+i.Queue+" is not read.", "Its letters wait in the queue: "+i.Reason)
		}
	}
	return append(list, s.Queues...)
}

// away returns the problem that dlo is not connected to a broker. Before the first connection,
// nothing at the broker keeps the messages that die there.
func (s *BrokerStatus) away() Problem {
	p := Problem{
		Kind: ProblemBrokerAway, Severity: SeverityPage, Broker: s.Name, VHost: s.VHost, Since: s.Since,
		Title: "Broker " + s.Name + " is not connected.", Text: "The letters stored here are complete; new dead letters wait in the broker. " + s.Reason,
	}
	if !s.Reached {
		p.Title, p.Text = "Never connected to broker "+s.Name+".", UntilReached(s.Exchange)+" "+s.Reason
		p.Cure = CheckSetting(s.Setting)
	}
	return p
}

// UntilReached says what happens to dead letters before dlo has connected to a broker for the first
// time and declared the given exchange. If the exchange is "", dlo declares none.
func UntilReached(exchange string) string {
	if exchange == "" {
		return "Until dlo has connected once, it is not known whether dead letters are kept."
	}
	return "Until dlo has connected once, dead letters are dropped by the broker."
}

// CheckSetting returns the advice to check a setting with connection details. It returns "" if the
// name of the setting is unknown.
func CheckSetting(setting string) string {
	if setting == "" {
		return ""
	}
	return "Check " + setting + "."
}
