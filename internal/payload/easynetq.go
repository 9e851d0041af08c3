package payload

import (
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
)

// easyNetQError is the beginning of the type property of messages in EasyNetQ's error queues:
// "EasyNetQ.SystemMessages.Error, EasyNetQ".
const easyNetQError = "EasyNetQ.SystemMessages.Error"

// easyNetQ reads the envelope that EasyNetQ uses in its error queues (SystemMessages/Error.cs of
// EasyNetQ). The member Message is the body as it was published. It is text or, with
// Base64ErrorMessageSerializer, base64. The member BasicProperties contains the properties of the
// message. The member Queue is missing in older envelopes. Ordinary EasyNetQ messages have no
// envelope.
func (r *reading) easyNetQ(o object) (content, string) {
	if why := o.firstInvalid('"', "RoutingKey", "Exchange", "Exception", "Message", "DateTime"); why != "" {
		return content{}, why
	}
	if why := o.firstInvalid('{', "BasicProperties"); why != "" {
		return content{}, why
	}
	properties, why := readObject(o.value("BasicProperties"))
	if why != "" {
		return content{}, "BasicProperties: " + why
	}
	said := descriptor.WithoutAssembly(r.safeText("BasicProperties.Type", properties.text("Type")))
	in := content{
		member: o.members["Message"],
		layer:  Layer{Quoted: true},
		hints: Hints{
			ContentType: r.attribute("BasicProperties.ContentType", properties.text("ContentType")),
			Type:        r.attribute("BasicProperties.Type", properties.text("Type")),
		},
		message: said,
		failure: deadletter.Failure{
			By:          "EasyNetQ",
			Queue:       r.place("Queue", o),
			Exchange:    r.place("Exchange", o),
			RoutingKey:  r.place("RoutingKey", o),
			MessageType: said,
			FailedAt:    dateTime(o.text("DateTime")),
		},
	}
	in.failure.Stack, in.note = r.exception(o.value("Exception"))
	var ok bool
	if in.data, ok = r.textOf(o.value("Message")); !ok {
		return content{}, ""
	}
	if said != "" {
		in.layer.Detail = "type " + said
	}
	return in, ""
}

// place returns the name of a queue, an exchange or a routing key in the envelope. If a mask hides
// this name, place returns "", because pages would otherwise show the name as the destination of
// the letter.
func (r *reading) place(name string, o object) string {
	text := r.attribute(name, o.text(name))
	if len(text) > 255 {
		return ""
	}
	return text
}

const maxException = 64 << 10 // maximum number of bytes of an exception, including its stack

// exception returns the text of an exception, and a note with its first line. The text contains the
// type, the message and the stack; no other member of the envelope describes the error. The mask is
// applied before the text is cut. Otherwise the mask might miss a value that was cut off.
func (r *reading) exception(token []byte) (text, note string) {
	if r.budget.TakeMemory(6*int64(len(token))) != nil {
		return "", ""
	}
	text, _ = r.spotOf("Exception").apply(unquoteJSON(token))
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if line, _ = cut(visible(strings.TrimSpace(line), ""), 300); line != "" {
		note = "EasyNetQ wrote: " + line
	}
	return deadletter.Cut(text, maxException), note
}

// dateTime parses a time as .NET writes it in JSON, which is RFC 3339 with or without a zone. A
// time without a zone is in the zone of the consumer, but dlo treats it as UTC. dateTime returns
// the zero time if the text is not a time.
func dateTime(text string) time.Time {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999"} {
		if at, err := time.Parse(layout, text); err == nil && at.Year() >= 1970 {
			return at.UTC()
		}
	}
	return time.Time{}
}
