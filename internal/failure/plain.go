package failure

import (
	"cmp"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Plain is the name of the convention for failures in headers that belong to no particular
// framework.
const Plain = "headers"

// plainHeaders lists the headers in which consumers describe errors, the most specific first. The
// names are in the form of plainName.
var plainHeaders = struct {
	messages, types, stacks ranks
	attempts, objects       []string
}{
	messages: rank(append(
		ofErrors("message", "reason", "description", "details", "detail", "text", "msg"),
		"rejectreason", "rejectionreason", "failedreason", "deadletterreason", "errmsg",
		"lasterror", "lastexception", "error", "exception", "failure",
	)),
	types:    rank(ofErrors("class", "type", "name", "fqcn", "classname")),
	stacks:   rank(append(ofErrors(stackNames...), stackNames[:3]...)), // "trace" alone is often the id of a trace
	attempts: []string{"retrycount", "retryattempts", "retryattempt", "attemptcount"},
	objects:  []string{"error", "exception", "failure", "lasterror"},
}

var stackNames = []string{"stacktrace", "traceback", "backtrace", "stack", "trace"}

// ranks maps names to their positions in a list.
type ranks map[string]int

func rank(names []string) ranks {
	r := make(ranks, len(names))
	for i, name := range names {
		r[name] = i
	}
	return r
}

// ofErrors returns the names of headers that begin with a word for an error and end with one of the
// given words. The words of Kafka and of its Connect are bridged to RabbitMQ as they are.
func ofErrors(ends ...string) (names []string) {
	for _, end := range ends {
		for _, word := range []string{
			"error", "exception", "failure", "fault", "lasterror", "deadlettererror", "kafkadltexception",
			"connecterrorsexception",
		} {
			names = append(names, word+end)
		}
	}
	return names
}

// noErrors are values, in lower case, with which a header says that there is no error.
var noErrors = []string{"false", "true", "0", "1", "no", "yes", "none", "null", "nil", "{}", "[]"}

// plainName returns the plain form of a header's name, which must be in lower case: without x- and
// x-opt-, which annotations of AMQP 1.0 begin with, and without characters between the words.
// X-Error-Message, errorMessage and x_error.message are all errormessage.
func plainName(name string) string {
	for _, prefix := range []string{"x-", "x_", "opt-", "opt_"} {
		name = strings.TrimPrefix(name, prefix)
	}
	return betweenWords.Replace(name)
}

var betweenWords = strings.NewReplacer("-", "", "_", "", ".", "", ":", "", " ", "")

func (r *reading) plainFailure() (f deadletter.Failure, found bool) {
	message, typ := r.plainText(plainHeaders.messages), r.plainText(plainHeaders.types)
	stack := r.plainText(plainHeaders.stacks)
	if cmp.Or(message.text(), typ.text()) == "" || tableOf(message.value) != nil {
		if m, t, s := r.plainObject(); cmp.Or(m.text(), t.text()) != "" {
			message, typ, stack = m, t, s
		}
	}
	if cmp.Or(message.text(), typ.text(), stack.text()) == "" {
		return f, false
	}
	r.setError(&f, typ, message, stack)
	for _, name := range plainHeaders.attempts {
		f.Attempts = cmp.Or(f.Attempts, countOf(r.plain(name).value))
	}
	return f, true
}

// plainObject reads a header such as x-error that is a table or JSON with the parts of an error.
func (r *reading) plainObject() (message, typ, stack part) {
	for _, name := range plainHeaders.objects {
		table := r.plain(name)
		message, typ = table.at("message", "reason", "description", "detail"), table.at("type", "class", "name", "code")
		if cmp.Or(message.text(), typ.text()) != "" {
			return message, typ, table.at("stack_trace").or(table.at(stackNames...))
		}
	}
	return part{}, part{}, part{}
}

// plainText returns the text of the header whose plain name comes first in the given ranks, among
// the headers that have a text.
func (r *reading) plainText(names ranks) (best part) {
	first := len(names)
	for i := range r.named {
		n := &r.named[i]
		at, ok := names[n.plain]
		if ok && at < first && n.text() != "" && !slices.Contains(noErrors, strings.ToLower(n.text())) {
			best, first = n.part, at
		}
	}
	return best
}
