package view

import (
	"slices"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Broker contains what every page shows about one connection to RabbitMQ.
type Broker struct {
	Name, VHost string
	Label       Label
	Up          bool
	Reached     bool      // the broker was connected at least once since the store was created
	Met         bool      // the broker was connected at least once since dlo started
	Exchange    string    // the exchange that dlo declares, or ""
	Setting     string    // the setting that says how to reach the broker, or ""
	Since       time.Time // when the connection began or was lost; the start of dlo if Met is false
	NextTry     time.Time // when dlo next tries to connect; a zero time means unknown
	Inboxes     []string  // the queues in which letters wait while the broker is disconnected
	Detail      string    // why the broker is disconnected, or its product and version
}

// Label is a coloured word that people give a broker, such as production.
type Label struct {
	Text   string // "" if the broker has no label
	Colour deadletter.Colour
}

func (l Label) text() string { return line(l.Text, 36) }

// tone returns the CSS class of the label's colour.
func (l Label) tone() string {
	return map[deadletter.Colour]string{
		"red": "bad", "amber": "warn", "green": "good", "teal": "wait", "blue": "accent",
	}[l.Colour]
}

// labels returns the labels of all brokers, without repetition.
func (s Shell) labels() []Label {
	return s.labelsOf(func(string) bool { return true })
}

// labelsOf returns the labels of some brokers without repetition. The function "broker" chooses
// them: it returns true for the name of a broker whose label is wanted.
func (s Shell) labelsOf(broker func(name string) bool) []Label {
	var list []Label
	for _, b := range s.Brokers {
		if b.Label.Text != "" && broker(b.Name) && !slices.Contains(list, b.Label) {
			list = append(list, b.Label)
		}
	}
	return list
}

// fullTitle returns the page title, including the labels of the brokers.
func (s Shell) fullTitle() string {
	parts := []string{line(s.Title, 120)}
	for _, l := range s.labels() {
		parts = append(parts, l.text())
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
		if b.Up {
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

// downTitle returns the first sentence of the message about a disconnected broker.
func (b Broker) downTitle(now time.Time) string {
	name := line(b.Name, 60)
	switch {
	case !b.Reached:
		return "Never connected to " + name + ":"
	case !b.Met:
		return "Not connected to broker " + name + " since dlo started " + When(now, b.Since) + "."
	}
	return "Connection to broker " + name + " lost " + When(now, b.Since) + "."
}

// disconnection returns the known facts about a disconnected broker, and what happens to its dead
// letters.
func (b Broker) disconnection(now time.Time) []Span {
	var text []Span
	if b.Reached {
		text = append(b.waitingPlace(), Span{
			Text: " Retries and requeues resume when it is back. Error: " + line(b.Detail, 200) + ".",
		})
	} else {
		text = append(text, Span{
			Text: line(b.Detail, 200) + ". " + line(
				deadletter.CheckSetting(b.Setting), 200,
			) + " " + deadletter.UntilReached(b.Exchange),
		})
	}
	if b.NextTry.After(now) {
		text = append(text, Span{
			Text: " Retrying in " + Duration(max(b.NextTry.Sub(now).Round(time.Second), time.Second)) + ".",
		})
	}
	return text
}

// waitingPlace returns a sentence about a disconnected broker. It names the queues in which dead
// letters wait until the broker is connected again.
func (b Broker) waitingPlace() []Span {
	if len(b.Inboxes) == 0 {
		return []Span{{Text: "Nothing is lost: dead letters wait in RabbitMQ."}}
	}
	text := []Span{{Text: "Nothing is lost: dead letters wait in "}}
	for i, inbox := range b.Inboxes {
		if i > 0 {
			text = append(text, Span{Text: ", "})
		}
		text = append(text, Span{Text: line(inbox, 80), Code: true})
	}
	return append(text, Span{Text: "."})
}
