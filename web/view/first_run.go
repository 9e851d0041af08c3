package view

import (
	"slices"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// FirstRun guides people to their first letter. The page shows it until the store contains a letter
// that is not a test letter.
type FirstRun struct {
	Setup
	Types  int               // the number of registered protobuf types
	Unable string            // why the configuration allows no trial, or "" if it allows one
	Trial  *deadletter.Trial // the newest trial, or nil if none was started
}

// Setup contains the names for the example of the first run: the broker, its dead-letter exchange,
// the first inbox, and their vhost. Exchange is "" if dlo declares no exchange.
type Setup struct{ Broker, Exchange, Inbox, VHost string }

// Running reports whether a trial is running.
func (f *FirstRun) Running() bool {
	return f != nil && f.Trial != nil && f.Trial.State == deadletter.TrialRunning
}

// connected reports whether dlo is connected to the broker in the example that the pages show at
// the first run.
func (s Shell) connected(f FirstRun) bool {
	return slices.ContainsFunc(s.Brokers, func(b deadletter.BrokerStatus) bool {
		return b.Name == f.Broker && b.Connected
	})
}

// connection describes whether dlo is connected to the broker in the example that the pages show at
// the first run.
func (s Shell) connection(f FirstRun) string {
	for _, b := range s.Brokers {
		if b.Name == f.Broker && b.Connected {
			return "done: " + product(b) + "."
		}
	}
	return "not yet."
}

func typesLine(n int) string {
	if n == 0 {
		return "Payloads show field numbers and bytes until then."
	}
	return Number(n, "type is", "types are") + " known."
}

// command returns a rabbitmqctl command that sets the dead-letter exchange with a policy. The
// policy has the priority 10, which is higher than the default priority 0.
func (f FirstRun) command() string {
	return "rabbitmqctl set_policy -p " + deadletter.ShellWord(line(f.VHost, 255)) +
		" --priority 10 --apply-to queues dlo '^(orders|emails)$' " +
		deadletter.ShellWord(`{"dead-letter-exchange":"`+line(f.Exchange, 200)+`"}`)
}

// trialStep is one of the four steps of a trial, in which dlo sends a test letter through the
// broker.
type trialStep struct {
	name string
	at   time.Time // zero if the step has not happened yet
	text []Span
	link string // the page that shows the result of the step, or ""
	word string // the text of the link
}

// trialSteps returns those steps of a trial that the page shows, in order.
func trialSteps(t *deadletter.Trial) []trialStep {
	arrived := trialStep{
		name: "Arrived",
		at:   t.ArrivedAt,
		text: []Span{words("once the consumer of "), code(deadletter.TrialQueue), words(" rejects its message")},
	}
	decoded := trialStep{name: "Decoded", at: t.DecodedAt, text: []Span{{Text: "its body is a protobuf message"}}}
	requeued := trialStep{
		name: "Requeued",
		at:   t.RequeuedAt,
		text: []Span{{Text: "by its rule, to the tail of "}, {Text: deadletter.TrialQueue, Code: true}},
	}
	quiet := trialStep{
		name: "Quiet",
		at:   t.QuietAt,
		text: []Span{{Text: "once it has not come back for some seconds"}},
	}
	if !t.RejectedAt.IsZero() {
		arrived.text = []Span{{Text: "its consumer rejected the message after " + sinceStart(t, t.RejectedAt)}}
	}
	if !t.DecodedAt.IsZero() {
		arrived.text = append(arrived.text, Span{Text: ", and it is letter"})
		arrived.link, arrived.word = LetterURL(t.Letter, "", ""), t.Letter.Short()
		decoded.text = []Span{{Text: deadletter.TrialType, Code: true}, {Text: " " + line(t.Summary, 120)}}
	}
	if !t.AcceptedAt.IsZero() {
		quiet.text = []Span{{Text: "its consumer accepted it after " + sinceStart(t, t.AcceptedAt)}}
	}
	return []trialStep{arrived, decoded, requeued, quiet}
}

// sinceStart returns the time between the start of a trial and an event as text.
func sinceStart(t *deadletter.Trial, at time.Time) string {
	return Duration(max(at.Sub(t.StartedAt), 0))
}

// trialTitle describes the state of a trial in one sentence.
func trialTitle(t *deadletter.Trial) string {
	switch t.State {
	case deadletter.TrialRunning:
		return "A test letter is on its way."
	case deadletter.TrialDone:
		return "It went the whole way."
	}
	return "It did not get all the way: " + line(t.Problem, 400) + "."
}
