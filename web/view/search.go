package view

import (
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Word is a completion for a query. Text is inserted into the box, and Label explains the
// completion.
type Word struct {
	Text  string `json:"text"`
	Label string `json:"label,omitempty"`
}

// Range is the part of a query that restricts the time of receipt.
type Range struct {
	Preset   string    // one of Presets; "" = none of them
	From, To time.Time // zero: open
}

// Preset is a named time range. Value is the text after "since:" in a query.
type Preset struct{ Value, Name string }

// Presets are the time ranges in the menu.
var Presets = []Preset{{"1h", "Last hour"}, {"6h", "Last 6 hours"}, {"24h", "Last 24 hours"}, {"7d", "Last 7 days"}, {"30d", "Last 30 days"}}

// AllTime is the value of the menu entry that removes a time range.
const AllTime = "all"

func (r Range) name() string {
	for _, p := range Presets {
		if p.Value == r.Preset {
			return p.Name
		}
	}
	switch short := func(t time.Time) string { return t.UTC().Format("2 Jan 15:04") }; {
	case r.From.IsZero() && r.To.IsZero():
		return "All time"
	case r.To.IsZero():
		return "Since " + short(r.From)
	case r.From.IsZero():
		return "Before " + short(r.To)
	default:
		return short(r.From) + " to " + short(r.To)
	}
}

// MinuteLayout is the layout of a time in a form, in UTC.
const MinuteLayout = "2006-01-02T15:04"

func inMinutes(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(MinuteLayout)
}

// around splits a wrong query into the text before the mistake, the mistake, and the rest.
func (e QueryError) around(q string) (before, wrong, rest string) {
	at := min(max(e.Pos, 0), len(q))
	end := at
	for end < len(q) && q[end] != ' ' {
		end++
	}
	wrong = line(q[at:end], 200)
	if wrong == "" {
		wrong = " "
	}
	return deadletter.Visible(q[:at]), wrong, line(q[end:], 400)
}

// maxLinked is the maximum number of bytes that the remove links of all tokens take. If a query
// needs more, it can only be edited as text.
const maxLinked = 30_000

func (p LettersPage) removable() bool { return len(p.Query)*len(p.Tokens) <= maxLinked }

func tokenWord(t Token) string {
	if t.Not {
		return "Remove the exclusion " + line(strings.TrimPrefix(t.Text, "-"), 100)
	}
	return "Remove " + line(t.Text, 100)
}

// tokenText is the text that the script puts back into the box. It is left out if the text is very
// long or contains invisible characters.
func tokenText(t Token) templ.Attributes {
	return attribute(safe(t.Text) && len(t.Text) <= maxCarried, "data-token", t.Text)
}

// named returns the saved view with this query, or nil if there is none.
func (p LettersPage) named() *deadletter.View {
	for i := range p.Views {
		if p.Views[i].Query == p.Query {
			return &p.Views[i]
		}
	}
	return nil
}
