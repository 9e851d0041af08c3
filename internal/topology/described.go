package topology

import (
	"cmp"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Described is one queue as the pages and the command line show it.
type Described struct {
	Name      string
	Kind      string // the type of the queue
	Own       bool   // the queue belongs to dlo
	Inbox     bool   // dlo drains it
	Ready     Figure
	Unacked   Figure
	Delayed   Figure // messages that delayed retry holds back
	Consumers Figure
	Published float64 // messages per second; -1 = unknown
	Acked     float64 // messages per second that consumers acknowledged, or that needed no acknowledgement
	Policy    string  // the name of the policy that applies; "" = none
	Route     Route
}

// Route is the path of a queue's dead letters.
type Route struct {
	Known     bool // false if a part of the vhost could not be read
	Judged    bool // false for queues that are exclusive, deleted automatically, or streams
	Set       bool // the queue has a dead-letter exchange
	Exchange  string
	From      string   // what sets the exchange, such as "policy limits"
	Key       string   // the routing key that replaces the one of the message
	Fixed     bool     // Key is set
	Queues    []string // queues that the dead letters reach, at most maxRoute
	More      int      // the number of further queues that the dead letters reach
	Lost      string   // why some or all dead letters are lost; "" = dlo knows of no loss
	Guarantee string   // at-least-once or at-most-once; "" for queues of other types than quorum
}

// maxRoute is the maximum number of queues that a Route lists.
const maxRoute = 5

// describe returns the queues of the vhost, sorted by name.
func (in *inspector) describe() []Described {
	list := make([]Described, 0, len(in.s.Queues))
	for _, v := range in.all {
		d := Described{
			Name: v.Name, Kind: v.Kind(), Own: deadletter.OwnQueue(v.Name), Inbox: in.isInbox(v.Name),
			Ready: v.Ready, Unacked: v.Unacked, Delayed: v.Delayed, Consumers: v.Consumers,
			Published: v.Rates.Publish.PerSecond, Acked: v.Rates.Done(),
			Policy: v.policyName(), Route: in.routeOf(v),
		}
		if in.s.Passive || in.s.NoRates {
			d.Published = -1
		}
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b Described) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// routeOf returns the path of a queue's dead letters.
func (in *inspector) routeOf(v *view) Route {
	r := Route{
		Known:    in.s.complete() && !in.unknownTarget(v),
		Judged:   v.isDurableWork(),
		Set:      v.Set,
		Exchange: v.Exchange.Text,
		Key:      v.Key.Text,
		Fixed:    v.Fixed,
	}
	if v.Set {
		r.From = strings.TrimSpace(v.Exchange.From + " " + v.Exchange.Policy)
	}
	if !r.Known || !r.Judged {
		return r
	}
	r.Queues, r.More = v.Queues, max(0, len(v.Queues)-maxRoute)
	r.Queues = r.Queues[:len(r.Queues)-r.More]
	if v.Set && v.Kind() == Quorum {
		r.Guarantee = "at-most-once"
		if _, works := v.atLeastOnce(); works {
			r.Guarantee = "at-least-once"
		}
	}
	r.Lost = in.whyLost(v)
	return r
}

// whyLost returns why dead letters of a queue are lost, in a few words.
func (in *inspector) whyLost(v *view) string {
	switch {
	case deadletter.OwnQueue(v.Name) && !in.isInbox(v.Name):
		return "" // dlo handles the messages in its own queues
	case !v.Set && intentFor(in.o.Intents, v.Name) == IntentNever:
		return "" // the intent says that nobody wants these messages
	case !v.Set && (in.isInbox(v.Name) || in.isDeadLetterQueue(v)):
		return "" // letters are meant to stay in this queue
	case !v.Set:
		return "no dead-letter exchange"
	case !v.Exists:
		return "the exchange does not exist"
	case !v.Bound:
		return "the exchange has no binding"
	case v.Dangles && in.s.ReadAt.IsZero():
		return "the exchange is bound to a queue that does not exist"
	case len(v.Lost) > 0 && len(v.Queues) == 0:
		return "the exchange routes them to no queue"
	case len(v.Lost) > 0:
		return "those with key " + v.Lost[0] + " reach no queue"
	case in.deathsLost(v):
		return v.lostReasons() + " reach no queue"
	case len(v.Unjudged) > 0:
		return "not known: exchange " + v.Unjudged[0] + " cannot be judged"
	case len(v.Partly) > 0 && len(v.droppingLimits()) == 0:
		return "those keys of " + v.Partly[0] + " that are not bound"
	case v.OnlyName && len(v.droppingLimits()) == 0:
		return "probably those with other keys than the name of the queue"
	case v.Again && in.leadsToInbox(v):
		return "a letter that was requeued is lost when it dies again"
	}
	return ""
}
