package view

import (
	"slices"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// labels returns the labels that people give the brokers, such as production, without repetition.
func (s Shell) labels() []mark {
	return s.labelsOf(func(string) bool { return true })
}

// labelsOf returns the labels of some brokers without repetition. The function "broker" chooses
// them: it returns true for the name of a broker whose label is wanted.
func (s Shell) labelsOf(broker func(name string) bool) []mark {
	var list []mark
	for _, b := range s.Brokers {
		label := mark{Word: line(b.Label, 36), Tone: labelTones[b.Colour]}
		if b.Label != "" && broker(b.Name) && !slices.Contains(list, label) {
			list = append(list, label)
		}
	}
	return list
}

// labelTones are the CSS classes of the colours of labels.
var labelTones = map[deadletter.Colour]string{
	"red": "bad", "amber": "warn", "green": "good", "teal": "wait", "blue": "accent",
}

// fullTitle returns the page title, including the labels of the brokers.
func (s Shell) fullTitle() string {
	parts := []string{line(s.Title, 120)}
	for _, l := range s.labels() {
		parts = append(parts, l.Word)
	}
	return strings.Join(append(parts[:min(len(parts), 1+labelsShown)], "Dead Letter Office"), " · ")
}

// labelsShown is the maximum number of labels where there is little room.
const labelsShown = 3

// maxName is the maximum length in bytes of a broker's name in a form.
const maxName = 255

// brokersUp returns the number of connected brokers.
func (s Shell) brokersUp() int {
	up := 0
	for _, b := range s.Brokers {
		if b.Connected {
			up++
		}
	}
	return up
}

func (s Shell) brokerTone() string {
	switch up := s.brokersUp(); {
	case len(s.Brokers) == 0:
		return "mute"
	case up == len(s.Brokers):
		return ""
	default:
		return "bad"
	}
}

func (s Shell) brokerLine() string {
	up := s.brokersUp()
	switch {
	case len(s.Brokers) == 0:
		return "Broker state unknown"
	case len(s.Brokers) == 1 && up == 1:
		return "Broker connected"
	case len(s.Brokers) == 1:
		return "Broker unreachable"
	}
	return Count(up) + " of " + Count(len(s.Brokers)) + " brokers connected"
}

// product returns the product and the version of a broker that is connected.
func product(b deadletter.BrokerStatus) string {
	return line(strings.TrimSpace("RabbitMQ "+b.Version), 80)
}

// downTitle returns the first sentence of the message about a disconnected broker.
func downTitle(b deadletter.BrokerStatus, now time.Time) string {
	name := line(b.Name, 60)
	switch {
	case !b.Reached:
		return "Never connected to " + name + ":"
	case b.Version == "":
		return "Not connected to broker " + name + " since dlo started " + When(now, b.Since) + "."
	}
	return "Connection to broker " + name + " lost " + When(now, b.Since) + "."
}

// disconnection returns the known facts about a disconnected broker, and what happens to its dead
// letters.
func disconnection(b deadletter.BrokerStatus, now time.Time) []Span {
	var text []Span
	if b.Reached {
		why := words(" Retries and requeues resume when it is back. Error: " + line(b.Reason, 200) + ".")
		text = append(waitingPlace(b.Inboxes), why)
	} else {
		check := line(deadletter.CheckSetting(b.Setting), 200)
		text = append(text, words(line(b.Reason, 200)+". "+check+" "+deadletter.UntilReached(b.Exchange)))
	}
	if b.NextTry.After(now) {
		in := max(b.NextTry.Sub(now).Round(time.Second), time.Second)
		text = append(text, words(" Retrying in "+Duration(in)+"."))
	}
	return text
}

// waitingPlace returns a sentence about a disconnected broker. It names the queues in which dead
// letters wait until the broker is connected again.
func waitingPlace(inboxes []deadletter.InboxStatus) []Span {
	if len(inboxes) == 0 {
		return []Span{{Text: "Nothing is lost: dead letters wait in RabbitMQ."}}
	}
	text := []Span{{Text: "Nothing is lost: dead letters wait in "}}
	for i, inbox := range inboxes {
		if i > 0 {
			text = append(text, Span{Text: ", "})
		}
		text = append(text, Span{Text: line(inbox.Queue, 80), Code: true})
	}
	return append(text, Span{Text: "."})
}
