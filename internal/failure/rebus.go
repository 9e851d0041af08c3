package failure

import (
	"cmp"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// rebus reads the headers of messages that Rebus moves to its error queue. The whole error is one
// text, cut at a configurable length, in one of three forms:
//
//	5 unhandled exceptions: 11/20/2026 10:11:12 +00:00: System.X: boom ...
//	System.AggregateException: 5 unhandled exceptions (boom) ... ---> System.X: boom ...
//	5 unhandled exceptions (boom) ...: System.AggregateException: ... ---> System.X: boom ...
//
// In the first of these forms, the text lists each attempt. The third form comes from version 8 of
// Rebus. If there were several attempts, rebus returns the error of the first attempt.
func (r *reading) rebus() (f deadletter.Failure, found bool) {
	const details, source, typ = "rbs2-error-details", "rbs2-source-queue", "rbs2-msg-type"
	f.MessageType = r.unmasked(part{[]string{typ}, withoutAssembly(r.text(typ))})
	if !r.hasHeader(details) && !r.hasHeader(source) {
		return f, f.MessageType != ""
	}
	f.Stack, _ = r.maskPart(r.header(details))
	f.Type, f.Message = rebusHead(f.Stack)
	cutError(&f)
	f.Queue, f.ID = r.place(source), r.label("rbs2-msg-id")
	f.Attempts = cmp.Or(r.number("rbs2-delivery-count"), r.number("rbs2-defer-count"))
	return f, true
}

// rebusHead returns the type and the message of the error of the first attempt.
func rebusHead(details string) (typ, message string) {
	if _, inner, ok := strings.Cut(details, "---> "); ok {
		if typ, message = head(inner); typ != "" {
			return typ, strings.TrimSuffix(message, "<---")
		}
	}
	line, _, _ := strings.Cut(strings.TrimSpace(details), "\n")
	line = strings.TrimSpace(line)
	for rest := line; rest != ""; { // a count and a time, which contain colons, come before the type
		if typ, message = head(rest); typ != "" {
			return typ, message
		}
		_, next, ok := strings.Cut(rest, ": ")
		if !ok {
			break
		}
		rest = next
	}
	return "", line
}
