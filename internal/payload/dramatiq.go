package payload

import (
	"strconv"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// dramatiq reads the message of a Dramatiq actor. After the last retry, the broker dead-letters it
// from the queue NAME, or from its delay queue NAME.DQ, to NAME.XQ. The member options contains the
// number of retries and the traceback of the last one. Source: dramatiq/message.py and
// middleware/retries.py of Dramatiq 1.17.
func (r *reading) dramatiq() {
	d := r.doc
	actor, queue, id := d.word("actor_name"), d.word("queue_name"), d.word("message_id")
	if actor == "" || queue == "" || id == "" || len(queue) > 255 || d.Failure.By != "" {
		return
	}
	d.Failure = deadletter.Failure{
		By: deadletter.Dramatiq, MessageType: deadletter.Cut(actor, 300), ID: deadletter.Cut(id, 300),
		Queue: strings.TrimSuffix(queue, ".DQ"), Stack: r.wholeText("options", "traceback"),
	}
	if n := d.scalarAt("options.retries"); n != nil && n.Kind == Number && !n.Masked {
		retries, _ := strconv.Atoi(n.text)
		d.Failure.Attempts = min(max(retries, 0), 1_000_000)
	}
}

// wholeText returns the text in a member of an object at the top level of a JSON body, masked and
// then cut to the size of a stack. The tree has only the beginning of long texts, and a traceback
// of Python has the error at its end.
func (r *reading) wholeText(object, name string) string {
	path := object + "." + name
	n := r.doc.scalarAt(path)
	if n == nil || n.Kind != String || n.text == Masked {
		return ""
	}
	outer, _ := readObject(r.doc.Body)
	inner, _ := readObject(outer.value(object))
	token := inner.value(name)
	if len(token) < 2 || r.budget.TakeMemory(6*int64(len(token))) != nil {
		return ""
	}
	text, _ := r.spotOf(path).apply(unquoteJSON(token))
	return deadletter.Cut(text, maxException)
}
