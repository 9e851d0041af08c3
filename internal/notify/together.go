package notify

import (
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Together combines several deliveries to one channel into one message. The message has one line
// for each delivery, in their order. The ID of the message depends on exactly these deliveries. If
// one more delivery is added, the ID is different.
func Together(o Office, ds []deadletter.Delivery) Message {
	m := Message{Event: Told, Severity: deadletter.SeverityDigest, URL: o.link("")}
	ids := make([]string, 0, len(ds))
	kinds := map[deadletter.NoticeKind]int{}
	for _, d := range ds {
		one := Compose(o, d)
		ids = append(ids, one.ID)
		kinds[one.Kind]++
		if louder(one.Severity, m.Severity) {
			m.Severity = one.Severity
		}
		if one.At.After(m.At) {
			m.At = one.At
		}
		if !one.Since.IsZero() && (m.Since.IsZero() || one.Since.Before(m.Since)) {
			m.Since = one.Since
		}
		m.Lines = append(m.Lines, Line{
			Title: one.Title,
			Text:  lineText(&one),
			URL:   one.URL,
			Group: one.Fact(factGroup),
			Count: one.Count,
			Last:  one.Last,
		})
	}
	m.ID = digestOf(ids...)
	m.Key = "dlo-" + digestOf(o.name())[:8] + "-together-" + m.ID
	m.Title = line(countOf(len(ds), "notice")+": "+tallyText(kinds), titleBytes)
	return m
}

// lineText returns the text after the title in one line of a message: the group, the reason, the
// type, the start and the owner.
func lineText(m *Message) string {
	var parts []string
	for _, name := range []string{factGroup, factReason, factType, factSince, factOwner} {
		if v := m.Fact(name); v != "" {
			if name == factSince || name == factOwner {
				v = name + " " + v
			}
			parts = append(parts, v)
		}
	}
	return line(strings.Join(parts, ", "), factBytes)
}

// tallyText returns the number of notices of each kind, as text.
func tallyText(kinds map[deadletter.NoticeKind]int) string {
	var parts []string
	other := 0
	for k, n := range kinds {
		if !strings.Contains(" opened regressed joined escalated updated quiet resolved ", " "+string(k)+" ") {
			other += n
		}
	}
	say := func(n int, one, many string) {
		if n == 1 {
			parts = append(parts, "1 "+one)
		} else if n > 1 {
			parts = append(parts, numberText(n)+" "+many)
		}
	}
	say(kinds[deadletter.NoticeOpened], "needs people", "need people")
	say(kinds[deadletter.NoticeRegressed], "came back", "came back")
	say(kinds[deadletter.NoticeEscalated], "grows faster", "grow faster")
	say(kinds[deadletter.NoticeUpdated], "has many more letters", "have many more letters")
	say(kinds[deadletter.NoticeJoined], "needs people too", "need people too")
	say(kinds[deadletter.NoticeQuiet], "no longer fails", "no longer fail")
	say(kinds[deadletter.NoticeResolved], "no longer needs anyone", "no longer need anyone")
	say(other, "other", "others")
	return strings.Join(parts, ", ")
}

// louder reports whether the severity a is higher than the severity b.
func louder(a, b deadletter.Severity) bool { return rank(a) > rank(b) }

func rank(s deadletter.Severity) int {
	switch s {
	case deadletter.SeverityPage:
		return 2
	case deadletter.SeverityNotify:
		return 1
	}
	return 0
}
