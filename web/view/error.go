package view

import (
	"cmp"
	"context"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// ErrorPage says what went wrong and how to continue.
type ErrorPage struct {
	Shell
	Status int
	Detail string // a sentence about this case; "" if only the text for the status is shown
	Name   string // the name of the request in the log, or ""
}

// errorWords are the title and the text of the error page for each HTTP status.
var errorWords = map[int]struct{ title, text string }{
	400: {"Bad request", "Nothing was changed."},
	403: {"Not allowed", "Nothing was changed."},
	404: {"Not found", "Check the address."},
	405: {"Method not allowed", "This address does not accept that kind of request. Nothing was changed."},
	409: {
		"The state has changed",
		"The state has changed since you opened the page, and no longer allows this action. Nothing was changed.",
	},
	413: {"Too large", "The request is larger than this address accepts. Nothing was changed."},
	421: {
		"Unknown host",
		"dlo does not answer to this host name. If it should, name it under hosts in the configuration.",
	},
	503: {
		"Not available now",
		"dlo is starting or stopping, or its store is full. Letters are safe: those not stored yet wait in RabbitMQ. Try again in a moment.",
	},
}

// missingWords say for each kind of missing object what to check.
var missingWords = map[string]string{
	"group":     "A group keeps its number, even if it is merged or has no letters left. Check the number.",
	"letter":    "A letter keeps its page, even after a purge. Check the id.",
	"operation": "An operation keeps its page. Check the number.",
	"queue":     "It may have been deleted, and no letter of it is stored.",
}

// ErrorTitle returns the heading of the error page for a status.
func ErrorTitle(status int) string {
	if words, ok := errorWords[status]; ok {
		return words.title
	}
	return "Something broke on our side"
}

// ErrorText returns the explanation of a status in one or two sentences.
func ErrorText(status int) string {
	if words, ok := errorWords[status]; ok {
		return words.text
	}
	return "Your letters are safe."
}

// detail returns the details of the error. If they say which object is missing, they become a full
// sentence.
func (p ErrorPage) detail() string {
	text := line(p.Detail, 400)
	if p.Status == 404 {
		return upperFirst(text) + "."
	}
	return text
}

// advice returns what to do about the error. If an object is missing, the advice depends on the
// kind of the object, and on whether the reader sees all queues.
func (p ErrorPage) advice(ctx context.Context) string {
	rest, missing := strings.CutPrefix(p.Detail, "there is no ")
	if !missing || p.Status != 404 {
		return ErrorText(p.Status)
	}
	kind, _, _ := strings.Cut(rest, " ")
	text := cmp.Or(missingWords[kind], ErrorText(p.Status))
	if r, known := ctx.Value(readerKey{}).(reader); known && !r.principal.MayEverywhere(deadletter.VerbView) {
		text += " You see only the queues of your grants."
	}
	return text
}
