package view

import (
	"slices"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// happening is one entry on the timeline of a letter.
type happening struct {
	At    time.Time
	Tone  string // "bad", "wait", "good" or ""
	Title string
	Text  []Span
	place time.Time // the time by which it is sorted
}

// entry returns an entry of a timeline. Its time is zero if it is unknown, or yet to come.
func entry(at time.Time, tone, title string, text ...Span) happening {
	return happening{At: at, Tone: tone, Title: title, Text: text}
}

func words(text string) Span { return Span{Text: text} }

func code(text string) Span { return Span{Text: text, Code: true} }

// timeline returns one list of the deaths that the broker reports and of the events that dlo
// recorded. The events say when the letter was published, arrived, was sent again and came back.
// The oldest entry comes first. The times of deaths are whole seconds, and each x-death entry
// contains only the time of its first death. Therefore entries in the same second keep their
// logical order.
func timeline(l deadletter.Letter, attempts []deadletter.Attempt) []happening {
	var out []happening
	first, _ := deadletter.ReadDeaths(l.Properties.Headers, deadletter.NoOrigin)
	if at := l.Properties.Timestamp; !at.IsZero() {
		text := []Span{{Text: "per its timestamp property"}}
		if l.Properties.AppID != "" {
			text = append(text, Span{Text: ", by "}, Span{Text: line(l.Properties.AppID, 80), Code: true})
		}
		out = append(out, happening{At: at, Title: "Published", Text: text})
	}
	for _, d := range slices.Backward(first) {
		out = append(out, deathEntry(d))
	}
	via := []Span{{Text: "stored from inbox "}, {Text: line(l.Inbox, 120), Code: true}}
	if l.ArrivedBy.Exchange != "" {
		via = append(via, Span{Text: ", through exchange "}, Span{Text: line(l.ArrivedBy.Exchange, 120), Code: true})
	}
	out = append(out, happening{At: l.ReceivedAt, Title: "Received", Text: via})
	p := LetterPage{Letter: l, Attempts: attempts}
	for i, a := range attempts {
		out = append(out, attemptEntries(a, p.waitedIn(i))...)
	}
	if l.State == deadletter.StateScheduled && !l.DueAt.IsZero() {
		next := happening{At: l.DueAt, Title: p.dueSentence(), Text: p.waitingPlace()}
		if l.Rule != "" {
			next.Text = append(next.Text, words(" Rule "), code(line(l.Rule, 60)), words("."))
		}
		out = append(out, next)
	}
	// If the time of an event is unknown, the event stays directly after the event before it in the
	// list.
	var last time.Time
	for i, h := range out {
		if !h.At.IsZero() {
			last = h.At.Truncate(time.Second)
		}
		out[i].place = last
	}
	slices.SortStableFunc(out, func(a, b happening) int { return a.place.Compare(b.place) })
	return out
}

func deathEntry(d deadletter.Death) happening {
	text := []Span{{Text: "reason "}, {Text: line(d.Reason, 60), Code: true}}
	if d.Exchange != "" {
		text = append(text, words(", published to exchange "), code(line(d.Exchange, 120)))
	} else {
		text = append(text, words(", published to the default exchange"))
	}
	for i, key := range d.RoutingKeys {
		if i == 3 {
			text = append(text, Span{Text: " and " + Count(len(d.RoutingKeys)-3) + " more"})
			break
		}
		join := ", key "
		if i > 0 {
			join = ", "
		}
		text = append(text, Span{Text: join}, Span{Text: line(key, 120), Code: true})
	}
	if d.Count > 1 {
		counted := Count(int(min(d.Count, 1<<40)))
		text = append(text, words(". The broker counts "+counted+" of these; this is the first"))
	}
	return happening{At: d.FirstAt, Tone: "bad", Title: deathWords(d.Reason) + queueName(d.Queue), Text: text}
}

// attemptEntries returns the entries of one attempt: when the letter was sent, where it waited, and
// how it came back.
func attemptEntries(a deadletter.Attempt, waited []Span) []happening {
	m := outcomeMark(a.Outcome)
	sent := entry(a.At, "wait", "Attempt "+Count(a.Number)+": to the tail of "+queueName(a.Queue))
	text := m.Word
	if a.Outcome == deadletter.OutcomeCameBack {
		text = outcomeMark(deadletter.OutcomeConfirmed).Word
	}
	if !a.ClosedAt.IsZero() && a.Outcome != deadletter.OutcomeCameBack {
		text += " after " + Duration(a.ClosedAt.Sub(a.At))
	}
	if a.Sends > 1 {
		text += ". Sent " + Count(a.Sends) + " times with the same token, because an answer was missing"
	}
	if a.Detail != "" {
		text += ". " + line(a.Detail, 200)
	}
	sent.Text = []Span{{Text: text}}
	if a.Operation != 0 {
		sent.Text = append(sent.Text, Span{Text: ", operation " + a.Operation.String()})
	}
	if len(waited) > 0 {
		sent.Text = append(append(sent.Text, Span{Text: ". "}), waited...)
	}
	if a.Outcome == deadletter.OutcomeReturned || a.Outcome == deadletter.OutcomeRefused {
		sent.Tone = "bad"
	}
	out := []happening{sent}
	if b := a.Back; b != nil {
		text := []Span{words("came back from attempt " + Count(a.Number) + ", reason "), code(line(b.Reason, 60))}
		if b.Copies > 0 {
			text = append(text, words(", and "+Number(b.Copies, "more copy", "more copies")+" with the same token"))
		}
		out = append(out, entry(b.At, "bad", deathWords(b.Reason)+queueName(b.Queue), text...))
	}
	return out
}

// timeBetween returns the time between the entry with index i and the previous entry, for example
// "+10.5 s". It returns "" if a time is unknown or if hardly any time passed.
func timeBetween(all []happening, i int) string {
	if i == 0 || all[i].At.IsZero() || all[i-1].At.IsZero() {
		return ""
	}
	if d := all[i].At.Sub(all[i-1].At); d >= 100*time.Millisecond {
		return "+" + Duration(d)
	}
	return ""
}
