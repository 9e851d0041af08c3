package deadletter

import (
	"fmt"
	"strings"
	"time"
)

// Right is a permission in RabbitMQ that dlo's user needs on a broker.
type Right struct {
	Operation string // kind of the permission: configure, write or read
	// name of a queue or an exchange; dlo.epoch.* stands for all queues whose names begin with
	// dlo.epoch.
	Resource string
	For      string // what dlo needs the permission for, e.g. "sending retries and requeues"
	Severity Severity
	State    RightState
	Since    time.Time // time at which the present state began
}

// RightState says what dlo knows about a permission.
type RightState string

// These are the states of dlo's knowledge about a permission.
const (
	RightAssumed RightState = "assumed" // dlo has not used the permission yet
	RightProved  RightState = "proved"  // the broker has granted the permission
	RightRefused RightState = "refused" // the broker has returned ACCESS_REFUSED
)

// rightsProblem returns one problem about all permissions that the broker has refused. If it has
// refused none, it returns nil.
func (s *BrokerStatus) rightsProblem() *Problem {
	p := Problem{
		Kind: ProblemRights, Severity: SeverityNotify, Broker: s.Name, VHost: s.VHost,
		Title: fmt.Sprintf("User %s has too few rights on broker %s.", Visible(s.User), s.Name), Cure: s.Grant,
	}
	var texts []string
	for _, r := range s.Rights {
		if r.State != RightRefused {
			continue
		}
		texts = append(
			texts, fmt.Sprintf("It may not %s %s, which it needs for %s.", r.Operation, Visible(r.Resource), r.For),
		)
		if r.Severity == SeverityPage {
			p.Severity = SeverityPage
		}
		if p.Since.IsZero() || r.Since.Before(p.Since) {
			p.Since = r.Since
		}
	}
	if texts == nil {
		return nil
	}
	p.Text = strings.Join(texts, " ") + " It continues automatically once it may."
	return &p
}

// isRefused reports whether the broker has refused to let dlo read a queue.
func (s *BrokerStatus) isRefused(queue string) bool {
	for _, r := range s.Rights {
		if r.State == RightRefused && r.Operation == "read" && r.Resource == queue {
			return true
		}
	}
	return false
}
