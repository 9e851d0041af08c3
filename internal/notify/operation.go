package notify

import (
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// operation sets all fields of a message about a finished operation. The message is for programs.
func (m *Message) operation(o Office, op *deadletter.Operation) {
	var parts []string
	for _, r := range deadletter.Results {
		if n := op.Counts[r]; n > 0 {
			word := string(r)
			if r == deadletter.ResultChanged {
				word = op.Action.Past()
			}
			parts = append(parts, numberText(n)+" "+word)
		}
	}
	m.Title = line(
		op.ID.String()+", "+string(op.Action)+" by "+op.By+", is "+string(op.State)+": "+strings.Join(parts, ", "),
		titleBytes,
	)
	m.URL = o.link("/operations/" + op.ID.String())
	m.Operation = op
}
