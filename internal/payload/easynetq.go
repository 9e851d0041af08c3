package payload

import (
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
)

// easyNetQError is in the type property of what EasyNetQ puts into its error queues:
// "EasyNetQ.SystemMessages.Error, EasyNetQ".
const easyNetQError = "EasyNetQ.SystemMessages.Error"

// easyNetQ reads the envelope of EasyNetQ's error queues, SystemMessages/Error.cs of EasyNetQ: the
// body as it was published is Message, as text, or as base64 with Base64ErrorMessageSerializer;
// BasicProperties are the properties that it had. Queue came later than the other members. Ordinary
// messages of EasyNetQ have no envelope.
func (r *reading) easyNetQ(o object) (content, string) {
	if why := o.need('"', "RoutingKey", "Exchange", "Exception", "Message", "DateTime"); why != "" {
		return content{}, why
	}
	if why := o.need('{', "BasicProperties"); why != "" {
		return content{}, why
	}
	properties, why := readObject(o.value("BasicProperties"))
	if why != "" {
		return content{}, "BasicProperties: " + why
	}
	said := descriptor.WithoutAssembly(r.say("BasicProperties.Type", properties.text("Type")))
	in := content{
		member: o.members["Message"],
		layer:  Layer{Quoted: true},
		hints: Hints{
			ContentType: r.attribute("BasicProperties.ContentType", properties.text("ContentType")),
			Type:        r.attribute("BasicProperties.Type", properties.text("Type")),
		},
		message: said,
		failure: deadletter.Failure{
			By: "EasyNetQ", Queue: r.place("Queue", o), Exchange: r.place("Exchange", o), RoutingKey: r.place("RoutingKey", o), MessageType: said, FailedAt: dateTime(o.text("DateTime")),
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

// place is the name of a queue, an exchange or a routing key in the envelope. What is masked
// decides nothing: where a letter goes shows.
func (r *reading) place(name string, o object) string {
	text := r.attribute(name, o.text(name))
	if len(text) > 255 {
		return ""
	}
	return text
}

const maxException = 64 << 10 // bytes of an exception with its stack

// exception is the text of an exception, type and message first, then its stack: the only place of
// the error; and a note of its first line. The mask sees all of the text, or it would miss a value
// that the cut divides.
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

// dateTime reads a time as .NET writes it into JSON: RFC 3339, or without a zone, which is that of
// the consumer and taken for UTC. Zero when it is none.
func dateTime(text string) time.Time {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999"} {
		if at, err := time.Parse(layout, text); err == nil && at.Year() >= 1970 {
			return at.UTC()
		}
	}
	return time.Time{}
}
