package deadletter

import (
	"fmt"
	"strings"
	"time"
)

// Right is a permission that dlo's user needs on a broker. It uses the kinds of permission that
// RabbitMQ has.
type Right struct {
	Operation string // configure, write or read
	Resource  string // a queue or an exchange, or dlo.epoch.* for all queues with that prefix
	For       string // what dlo needs it for, for example "sending retries and requeues"
	Severity  Severity
	State     RightState
	Since     time.Time // when this state began
}

// RightState is the state of dlo's knowledge about a right.
type RightState string

// These are the states of a right.
const (
	RightAssumed RightState = "assumed" // not tried yet
	RightProved  RightState = "proved"  // the broker granted it
	RightRefused RightState = "refused" // the broker returned ACCESS_REFUSED
)

// rightsProblem returns a single problem that covers all rights that the broker refuses. It returns
// nil if the broker refuses none.
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
		texts = append(texts, fmt.Sprintf("It may not %s %s, which it needs for %s.", r.Operation, Visible(r.Resource), r.For))
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

// refused reports whether a broker refuses to let dlo read a queue.
func (s *BrokerStatus) refused(queue string) bool {
	for _, r := range s.Rights {
		if r.State == RightRefused && r.Operation == "read" && r.Resource == queue {
			return true
		}
	}
	return false
}
