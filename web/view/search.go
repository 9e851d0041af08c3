package view

import (
	"cmp"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

// Word is one completion that the search box offers. Text is inserted into the box, and Label
// explains it.
type Word struct {
	Text  string `json:"text"`
	Label string `json:"label,omitempty"`
}

// Range is the part of a query that limits the time of receipt.
type Range struct {
	Preset   string    // one of Presets, or ""
	From, To time.Time // zero if there is no limit
}

// Preset is a named time range. Value is the text that follows "since:" in a query.
type Preset struct{ Value, Name string }

// Presets are the time ranges in the menu.
var Presets = []Preset{
	{"1h", "Last hour"},
	{"6h", "Last 6 hours"},
	{"24h", "Last 24 hours"},
	{"7d", "Last 7 days"},
	{"30d", "Last 30 days"},
}

// AllTime is the value in the menu that removes the time range.
const AllTime = "all"

func (r Range) name() string {
	for _, p := range Presets {
		if p.Value == r.Preset {
			return p.Name
		}
	}
	switch {
	case r.From.IsZero() && r.To.IsZero():
		return "All time"
	case r.To.IsZero():
		return "Since " + dayTime(r.From)
	case r.From.IsZero():
		return "Before " + dayTime(r.To)
	default:
		return dayTime(r.From) + " to " + dayTime(r.To)
	}
}

// MinuteLayout is the layout of times in forms. The times are in UTC.
const MinuteLayout = "2006-01-02T15:04"

func inMinutes(t time.Time) string {
	return unlessZero(t, MinuteLayout)
}

// splitAtMistake splits a query with a mistake into the text before the mistake, the mistake, and
// the text after it.
func splitAtMistake(e *query.Error, q string) (before, wrong, rest string) {
	at := min(max(e.Pos, 0), len(q))
	end := at
	for end < len(q) && q[end] != ' ' {
		end++
	}
	return deadletter.Visible(q[:at]), cmp.Or(line(q[at:end], 200), " "), line(q[end:], 400)
}

// maxLinked is the maximum number of bytes that the links for removing terms may take together. A
// query that needs more can only be edited as text.
const maxLinked = 30_000

func (p LettersPage) removable() bool { return len(p.Query)*len(p.Tokens) <= maxLinked }

func tokenWord(t Token) string {
	if t.Not {
		return "Remove the exclusion " + line(strings.TrimPrefix(t.Text, "-"), 100)
	}
	return "Remove " + line(t.Text, 100)
}

// tokenText returns an HTML attribute with the text of a term. The script puts this text back into
// the search box. If the text is very long or contains invisible characters, tokenText returns no
// attribute.
func tokenText(t Token) templ.Attributes {
	return attributeIf(isCopyable(t.Text) && len(t.Text) <= maxCarried, "data-token", t.Text)
}

// savedView returns the saved view with the query of the page, or nil.
func (p LettersPage) savedView() *deadletter.View {
	for i := range p.Views {
		if p.Views[i].Query == p.Query {
			return &p.Views[i]
		}
	}
	return nil
}
