package view

import "strings"

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
	403: {
		"Not allowed",
		"You do not have permission for this, or the request came from another site. Nothing was changed.",
	},
	404: {"Not found", "Check the address. If retention purged a letter, its page stays, but without its content."},
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

// detail returns the details of the error that the page shows. If the status is 404 and the details
// say what does not exist, they become a full sentence.
func (p ErrorPage) detail() string {
	text := line(p.Detail, 400)
	if rest, ok := strings.CutPrefix(text, "there is no "); ok && p.Status == 404 {
		return "There is no " + rest + "."
	}
	return text
}
