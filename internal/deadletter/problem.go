package deadletter

import (
	"cmp"
	"fmt"
	"time"
)

// Problem is something that prevents a part of dlo from working, or that causes the loss of
// letters.
type Problem struct {
	Kind     ProblemKind `json:"kind"`
	Severity Severity    `json:"severity"` // how urgent the problem is
	Title    string      `json:"title"`
	Text     string      `json:"text"` // known details of the problem
	// what to do about the problem; "" = nothing that can be said in one line
	Cure  string    `json:"cure,omitempty"`
	Since time.Time `json:"since,omitzero"`
	// The following fields name the broker, vhost, inbox and queue that the problem is about. A
	// field is "" if the problem is not about such an object.
	Broker string `json:"broker,omitempty"`
	VHost  string `json:"vhost,omitempty"`
	Inbox  string `json:"inbox,omitempty"`
	Queue  string `json:"queue,omitempty"`
}

// ProblemKind identifies a kind of problem. It never changes. The page docs/monitoring lists all
// kinds.
type ProblemKind string

// These are the kinds of problems.
const (
	ProblemBrokerAway ProblemKind = "broker_away"
	// letters belong to a broker that is not configured, so that they are not sent
	ProblemBrokerUnknown ProblemKind = "broker_unknown"
	ProblemInboxNotRead  ProblemKind = "inbox_not_read"
	// because of a policy or an argument, the broker may delete letters from the inbox
	ProblemInboxLoses ProblemKind = "inbox_loses_letters"
	// the broker holds letters of the inbox back after lost connections
	ProblemDelayedRetry   ProblemKind = "delayed_retry"
	ProblemLimitsUnknown  ProblemKind = "limits_unknown"  // it is not known which policies apply to the inboxes
	ProblemUnknownSetting ProblemKind = "unknown_setting" // the inbox has a setting that dlo does not know
	ProblemInboxUnbound   ProblemKind = "inbox_unbound"   // dead letters are not routed to the inbox
	// the inbox was deleted within the last day, together with its letters
	ProblemInboxDeleted ProblemKind = "inbox_deleted"
	ProblemNearLimit    ProblemKind = "inbox_near_limit" // letters in the inbox have few deliveries left
	ProblemMissing      ProblemKind = "letters_missing"  // the broker deleted letters before dlo stored them
	ProblemOwnQueue     ProblemKind = "own_queue"        // another queue of dlo loses messages
	// dlo's user does not have a right on the broker that dlo needs
	ProblemRights     ProblemKind = "rights"
	ProblemManagement ProblemKind = "management" // the management API does not respond
	ProblemBlocked    ProblemKind = "blocked"    // the broker accepts no messages
	ProblemWaiter     ProblemKind = "waiter"     // letters wait in the store instead of in the broker
	// the store is a copy, so that letters which may have been sent since then are held
	ProblemStoreRestored ProblemKind = "store_restored"
	// there is no proof that the store is current, so that nothing is sent
	ProblemStoreUnproved ProblemKind = "store_unproved"
	// the store is damaged, so that dlo no longer writes to it
	ProblemStoreDamaged ProblemKind = "store_damaged"
	ProblemStoreOther   ProblemKind = "store_other" // there was another store at the same path
	// another dlo works with the same store or a copy of it, so that nothing is sent
	ProblemStoreTwice ProblemKind = "store_twice"
	// the broker cannot keep a second dlo from sending from a copy of the store
	ProblemStoreUnguarded ProblemKind = "store_unguarded"
	// the broker is older than the progress that it has confirmed
	ProblemBrokerReplaced ProblemKind = "broker_replaced"
	ProblemNoProgress     ProblemKind = "progress" // the progress of the store cannot be noted
	ProblemDisk           ProblemKind = "disk"
	ProblemAge            ProblemKind = "age"     // dead letters will soon be purged because of their age
	ProblemNotices        ProblemKind = "notices" // notices cannot be delivered
	ProblemBackup         ProblemKind = "backup"  // there is no current backup that can be relied on
)

// ProblemKinds lists all kinds.
var ProblemKinds = []ProblemKind{
	ProblemBrokerAway, ProblemBrokerUnknown, ProblemInboxNotRead, ProblemInboxLoses, ProblemDelayedRetry,
	ProblemLimitsUnknown, ProblemUnknownSetting, ProblemInboxUnbound, ProblemInboxDeleted, ProblemNearLimit,
	ProblemMissing, ProblemOwnQueue, ProblemRights, ProblemManagement, ProblemBlocked, ProblemWaiter,
	ProblemStoreRestored, ProblemStoreUnproved, ProblemStoreDamaged, ProblemStoreOther, ProblemStoreTwice,
	ProblemStoreUnguarded, ProblemBrokerReplaced, ProblemNoProgress, ProblemDisk, ProblemAge, ProblemNotices,
	ProblemBackup,
}

// Key returns a text that identifies the problem. It stays the same as long as the problem lasts.
func (p *Problem) Key() string {
	return fmt.Sprintf("problem %s %s %s %s", p.Kind, p.Broker, Visible(p.VHost), Visible(cmp.Or(p.Queue, p.Inbox)))
}

// Problems returns the problems of a broker. If dlo is not connected to the broker, the list
// contains only one problem: the missing connection.
func (s *BrokerStatus) Problems() []Problem {
	var list []Problem
	if !s.Connected {
		return []Problem{s.awayProblem()}
	}
	add := func(kind ProblemKind, severity Severity, inbox, title, text string) {
		list = append(list, Problem{
			Kind:     kind,
			Severity: severity,
			Title:    title,
			Text:     text,
			Broker:   s.Name,
			VHost:    s.VHost,
			Inbox:    inbox,
		})
	}
	if p := s.rightsProblem(); p != nil {
		list = append(list, *p)
	}
	if s.Blocked != "" {
		add(
			ProblemBlocked, SeverityNotify, "", "Broker "+s.Name+" accepts no messages now.",
			"Retries and requeues wait until it accepts messages again. It reports: "+s.Blocked,
		)
	}
	if s.Note != "" {
		add(ProblemWaiter, SeverityNotify, "", "Broker "+s.Name+" does not provide what the rules need.", s.Note)
	}
	for _, i := range s.Inboxes {
		if !i.Draining && i.Reason != "" && !s.isRefused(i.Queue) {
			add(
				ProblemInboxNotRead, SeverityPage, i.Queue, "Inbox "+i.Queue+" is not read.",
				"Its letters wait in the queue: "+i.Reason,
			)
		}
	}
	return append(list, s.Queues...)
}

// awayProblem returns the problem that dlo is not connected to a broker. If dlo has never been
// connected to this broker, the problem also says what happens to messages that die there. The
// broker may drop them, because dlo has not declared an exchange for them yet.
func (s *BrokerStatus) awayProblem() Problem {
	p := Problem{
		Kind:     ProblemBrokerAway,
		Severity: SeverityPage,
		Broker:   s.Name,
		VHost:    s.VHost,
		Since:    s.Since,
		Title:    "Broker " + s.Name + " is not connected.",
		Text:     "The letters stored here are complete; new dead letters wait in the broker. " + s.Reason,
	}
	if !s.Reached {
		p.Title, p.Text = "Never connected to broker "+s.Name+".", UntilReached(s.Exchange)+" "+s.Reason
		p.Cure = CheckSetting(s.Setting)
	}
	return p
}

// UntilReached says what happens to dead letters until dlo connects to a broker for the first time.
// The parameter "exchange" is the exchange that dlo will declare when it connects; "" = it declares
// none.
func UntilReached(exchange string) string {
	if exchange == "" {
		return "Until dlo has connected once, it is not known whether dead letters are kept."
	}
	return "Until dlo has connected once, dead letters are dropped by the broker."
}

// CheckSetting returns a sentence that tells a person to check the setting with the given name.
// Such a setting contains details of a connection. If the name is "", CheckSetting returns "".
func CheckSetting(setting string) string {
	if setting == "" {
		return ""
	}
	return "Check " + setting + "."
}

// Checkup is one check of `dlo doctor`, with what it found.
type Checkup struct {
	Part    string `json:"part"` // what was checked, for example "broker main"
	Problem bool   `json:"problem"`
	Text    string `json:"text"`
	Cure    string `json:"cure,omitzero"` // what to do about the problem
}
