// Package failure reads what a consumer or its framework reports about a message that it gave up.
// It finds the parts that distinguish one cause from another. Read reads headers and properties by
// the conventions of the frameworks. Join adds the report from an envelope in the body. Fold
// removes the parts of an error text that vary from letter to letter. Frames reduces a stack trace
// to the frames of the consumer's own code.
//
// The package has no I/O and no clock, and treats all its input as hostile. Every function accepts
// any input. Its work is linear in the input, and its result is bounded.
package failure

import (
	"cmp"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// These are the limits on the stored parts of a failure, in bytes. Masks are applied before a text
// is cut. Otherwise, the cut could leave half of a value that a mask would have found.
const (
	maxName    = 300     // limit for types, queues, exchanges, services
	maxMessage = 8 << 10 // the maximum size of an error message in bytes
	maxStack   = 64 << 10
)

// convention is one way in which consumers report why they gave up a message.
type convention struct {
	name string
	read func(r *reading) (f deadletter.Failure, found bool)
}

// conventions contains the conventions for headers and properties, the most specific first.
// Conventions that have their own header names for errors come first. The plain headers, which
// anybody may use, come next. Conventions that report only what the message is or where it comes
// from are last.
var conventions = []convention{
	{"NServiceBus", (*reading).nServiceBus},
	{"MassTransit", (*reading).massTransit},
	{"Rebus", (*reading).rebus},
	{"Wolverine", (*reading).wolverine},
	{"Spring AMQP", (*reading).spring},
	{"Symfony Messenger", (*reading).symfony},
	{"Sneakers", (*reading).sneakers},
	{"Watermill", (*reading).watermill},
	{"Rascal", (*reading).rascal},
	{"Knative", (*reading).knative},
	{Plain, (*reading).plainFailure},
	{"Laravel", (*reading).laravel},
	{"Celery", (*reading).celery},
	{"Nameko", (*reading).nameko},
	{"CloudEvents", (*reading).cloudEvents},
	{"Shovel", (*reading).shovel},
}

// Read returns the failure that the headers and properties of a message report. It uses the first
// convention that reports an error. If none does, it uses the first convention that reports
// anything. The other conventions fill in the fields that this one omits, such as the message type
// or the place of the failure. The parameter "inbox" is the queue from which the message was
// drained. Some conventions need it, because they derive the name of the error queue from the
// original queue. The parameter "route" is the route by which the message reached the inbox. The
// parameter "own" names more headers, which take precedence over all conventions. The case of names
// does not matter.
//
// The function "mask" hides text that people must not see. Its argument "name" is the header that
// contains the text. If the function "mask" is nil, nothing is hidden. Type, Message, Stack,
// MessageType, ID, Service and Version are masked. A value from one header never shows text that is
// masked in another header. Queues, exchanges, routing keys and times are not masked, because they
// decide where a letter goes.
func Read(
	p deadletter.Properties, inbox string, route deadletter.Route, own deadletter.FailureHeaders,
	mask func(name, text string) (string, bool),
) deadletter.Failure {
	if len(p.Headers) == 0 {
		return deadletter.Failure{}
	}
	r := &reading{Properties: p, inbox: inbox, route: route, own: own, mask: mask, named: byName(p.Headers)}
	if mask == nil {
		r.mask = func(_, text string) (string, bool) { return text, false }
	}
	var read []deadletter.Failure
	leads := -1
	for _, c := range conventions {
		f, found := c.read(r)
		if !found {
			continue
		}
		f.By = c.name
		if leads < 0 && f.Said() {
			leads = len(read)
		}
		read = append(read, f)
	}
	f := r.configured()
	if len(read) > 0 {
		f = fillFrom(f, read[max(0, leads)])
	}
	if f.By == "" && len(read) > 0 {
		f.By = read[0].By
	}
	for i := range read {
		f = fillFrom(f, read[i])
	}
	return f
}

// Join combines what the headers report about a failure with what the body's envelope reports about
// it. If both report an error, Join uses the more specific one. An error in the envelope is more
// specific than an error in a plain header, and an error in a framework's headers is more specific
// than both.
func Join(header, body deadletter.Failure) deadletter.Failure {
	if body.Said() && (!header.Said() || header.By == Plain) {
		header, body = body, header
	}
	f := fillFrom(header, body)
	if f.By == "" {
		f.By = body.By
	}
	if f.Stack != "" && f.Type == "" && f.Message == "" {
		f.Type, f.Message = head(f.Stack)
	}
	return f
}

// fillFrom fills the empty fields of f from the failure "other". It takes all fields of an error or
// none of them, because a message from one source with a stack from another would describe a
// failure that never happened. The queue, the exchange and the routing key are also taken all
// together.
func fillFrom(f, other deadletter.Failure) deadletter.Failure {
	if !f.Said() {
		f.Type, f.Message, f.Stack = other.Type, other.Message, other.Stack
		if other.Said() {
			f.By, f.FailedAt = other.By, other.FailedAt
		}
	}
	if f.Queue == "" && f.Exchange == "" && f.RoutingKey == "" {
		f.Queue, f.Exchange, f.RoutingKey = other.Queue, other.Exchange, other.RoutingKey
	}
	f.MessageType, f.ID = cmp.Or(f.MessageType, other.MessageType), cmp.Or(f.ID, other.ID)
	f.Service, f.Version = cmp.Or(f.Service, other.Service), cmp.Or(f.Version, other.Version)
	if f.Attempts == 0 {
		f.Attempts = other.Attempts
	}
	if f.FailedAt.IsZero() {
		f.FailedAt = other.FailedAt
	}
	return f
}
