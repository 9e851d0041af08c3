package view

import "strings"

// ErrorPage says that something did not work, and what to do now.
type ErrorPage struct {
	Shell
	Status int
	Detail string // a sentence about this case; "" = only what the status says
	Name   string // of the request, for the log; "" = none
}

// errorWords are what an error page says of a status of HTTP.
var errorWords = map[int]struct{ title, text string }{
	400: {"The request is wrong", "Nothing was changed."},
	403: {"Not allowed", "This needs a right that you do not have, or the request came from another site. Nothing was changed."},
	404: {"Not found", "Letters can be purged by retention. Their page stays then, without what was in them."},
	405: {"Not this way", "This address does not take that kind of request. Nothing was changed."},
	409: {"Not in this state", "Meanwhile the state has changed, and does not allow it any more. Nothing was changed."},
	413: {"Too large", "The request is larger than this address takes. Nothing was changed."},
	421: {"Unknown host", "dlo does not answer to this host name. If it should, name it under hosts in the configuration."},
	503: {"Not now", "dlo is starting, stopping, or its store has no room. Letters stay safe: what is not stored waits in RabbitMQ. Try again in a moment."},
}

// ErrorTitle is the heading of an error page.
func ErrorTitle(status int) string {
	if words, ok := errorWords[status]; ok {
		return words.title
	}
	return "Something broke on our side"
}

// ErrorText is what an error page says of a status, in one or two sentences.
func ErrorText(status int) string {
	if words, ok := errorWords[status]; ok {
		return words.text
	}
	return "Your letters are safe."
}

// detail says what this case is about; of what is not there it is a sentence.
func (p ErrorPage) detail() string {
	text := line(p.Detail, 400)
	if rest, ok := strings.CutPrefix(text, "there is no "); ok && p.Status == 404 {
		return "There is no " + rest + "."
	}
	return text
}
