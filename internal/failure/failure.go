// Package failure reads what a consumer, or its framework, says about why it gave a message up, and
// finds what of it tells one cause from another. Read reads headers and properties by the
// conventions of the frameworks, Join adds what an envelope in the body says, Fold takes out of a
// message what varies from letter to letter, and Frames reduces a stack to its own frames.
//
// It is pure: no input, no output, no clock, and all that it reads is hostile. Every function is
// total, its work is linear in what it is given, and what it returns is bounded.
package failure

import (
	"cmp"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Bounds of what is kept of a failure, bytes. Masks see the whole text: a cut before them could
// leave half of a value that they would have found.
const (
	maxName    = 300     // of types, queues, exchanges, services
	maxMessage = 8 << 10 // of an error
	maxStack   = 64 << 10
)

// convention is one way to say why a message was given up.
type convention struct {
	name string
	read func(r *reading) (f deadletter.Failure, found bool)
}

// conventions are those of headers and properties, the most specific first: those that say what
// went wrong by names of their own, then the plain headers that anybody may use, then those that
// tell only what the message is or where it comes from.
var conventions = []convention{
	{"NServiceBus", (*reading).nServiceBus},
	{"MassTransit", (*reading).massTransit},
	{"Rebus", (*reading).rebus},
	{"Wolverine", (*reading).wolverine},
	{"Spring AMQP", (*reading).spring},
	{"Symfony Messenger", (*reading).symfony},
	{"Sneakers", (*reading).sneakers},
	{"Watermill", (*reading).watermill},
	{Plain, (*reading).plain},
	{"Laravel", (*reading).laravel},
	{"Celery", (*reading).celery},
	{"Nameko", (*reading).nameko},
	{"CloudEvents", (*reading).cloudEvents},
	{"Shovel", (*reading).shovel},
}

// Read returns what the headers and properties of an arrival say: of the first convention that
// reports an error, else of the first that says anything. Where others say something that it leaves
// out, that is filled in: what the message is, where it failed. inbox is the queue that it was
// drained from, for conventions that name error queues after the queue; route is how it was
// delivered there.
//
// mask hides what people must not see, under the name of the header that a text is in; nil
// hides nothing. Type, Message, Stack, MessageType, ID, Service and Version have gone through it,
// and nothing that is derived from a header shows what is masked in another. Queues, exchanges,
// routing keys and times are not masked: they decide where a letter goes.
func Read(p deadletter.Properties, inbox string, route deadletter.Route, mask func(name, text string) (string, bool)) deadletter.Failure {
	if len(p.Headers) == 0 {
		return deadletter.Failure{}
	}
	r := &reading{Properties: p, inbox: inbox, route: route, mask: mask}
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
	if len(read) == 0 {
		return deadletter.Failure{}
	}
	f := read[max(0, leads)]
	for i := range read {
		f = fill(f, read[i])
	}
	return f
}

// Join returns what the headers say, filled in by what the body says. An error in the body's
// envelope is more specific than one in a plain header, and less than one in the headers of a
// framework.
func Join(header, body deadletter.Failure) deadletter.Failure {
	if body.Said() && (!header.Said() || header.By == Plain) {
		header, body = body, header
	}
	f := fill(header, body)
	if f.By == "" {
		f.By = body.By
	}
	if f.Stack != "" && f.Type == "" && f.Message == "" {
		f.Type, f.Message = head(f.Stack)
	}
	return f
}

// fill adds to f what only other says. An error stays in one piece, and so does a place: the
// message of one and the stack of another would tell of a failure that nobody saw.
func fill(f, other deadletter.Failure) deadletter.Failure {
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
