package failure

import (
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Plain is the name of the convention for failures in headers that belong to no particular
// framework.
const Plain = "headers"

// plainHeaders lists the headers in which consumers describe errors, the most specific first. The
// names are in the form of plainName.
var plainHeaders = struct{ messages, types, stacks, attempts, objects []string }{
	messages: []string{
		"errormessage", "exceptionmessage", "errorreason", "errordescription", "errordetails", "errordetail",
		"errortext",
		"failuremessage", "failurereason", "faultmessage", "faultreason", "rejectreason", "rejectionreason",
		"lasterrormessage", "lasterror", "lastexception", "deadlettererrordescription", "deadletterreason",
		"failedreason", "kafkadltexceptionmessage", "connecterrorsexceptionmessage", "errormsg", "errmsg", "error",
		"exception", "failure",
	},
	types: []string{
		"errorclass", "errortype", "errorname", "exceptiontype", "exceptionclass", "exceptionname", "exceptionfqcn",
		"exceptionclassname", "errorclassname", "failuretype", "faulttype", "kafkadltexceptionfqcn",
		"connecterrorsexceptionclassname",
	},
	stacks: []string{
		"errorstack", "errorstacktrace", "errortrace", "errortraceback", "errorbacktrace", "exceptionstack",
		"exceptionstacktrace", "exceptiontrace", "exceptiontraceback", "exceptionbacktrace", "failurestack",
		"failurestacktrace", "stacktrace", "traceback", "backtrace", "kafkadltexceptionstacktrace",
		"connecterrorsexceptionstacktrace",
	},
	attempts: []string{"retrycount", "retryattempts", "retryattempt", "attemptcount"},
	objects:  []string{"error", "exception", "failure", "lasterror"},
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
	return strings.Map(func(c rune) rune {
		if strings.ContainsRune("-_.: ", c) {
			return -1
		}
		return c
	}, name)
}

func (r *reading) plainFailure() (f deadletter.Failure, found bool) {
	message, typ, stack := r.firstText(plainHeaders.messages), r.firstText(plainHeaders.types), r.firstText(
		plainHeaders.stacks,
	)
	if message.text == "" && typ.text == "" || tableOf(message.text) != nil {
		if m, t, s := r.plainObject(); m.text != "" || t.text != "" {
			message, typ, stack = m, t, s
		}
	}
	if message.text == "" && typ.text == "" && stack.text == "" {
		return f, false
	}
	r.setError(&f, typ, message, stack)
	f.Attempts = countOf(r.Headers[r.firstName(plainHeaders.attempts)])
	return f, true
}

// plainObject reads a header such as x-error that is a table or JSON with the parts of an error.
func (r *reading) plainObject() (message, typ, stack part) {
	for _, form := range plainHeaders.objects {
		header := r.firstName([]string{form})
		table := tableOf(r.Headers[header])
		first := func(names ...string) part {
			for _, name := range names {
				if name, ok := nameIn(table, name); ok && textOf(table[name]) != "" {
					return part{header, textOf(table[name]), []string{name}}
				}
			}
			return part{}
		}
		message, typ = first("message", "reason", "description", "detail"), first("type", "class", "name", "code")
		if message.text != "" || typ.text != "" {
			return message, typ, first("stack", "stacktrace", "stack_trace", "trace", "traceback", "backtrace")
		}
	}
	return part{}, part{}, part{}
}

// firstText looks at the headers with the given plain names in order, and returns the text of the
// first one that has a text.
func (r *reading) firstText(names []string) part {
	for _, name := range names {
		if header, ok := r.plain[name]; ok {
			if p := r.header(header); p.text != "" && !slices.Contains(noErrors, strings.ToLower(p.text)) {
				return p
			}
		}
	}
	return part{}
}

// firstName returns the first header that exists under one of the given plain names, or "".
func (r *reading) firstName(names []string) string {
	for _, name := range names {
		if header, ok := r.plain[name]; ok {
			return header
		}
	}
	return ""
}
