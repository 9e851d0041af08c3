// Package view turns values into pages. It contains the templ components, the structs that they
// show, and the functions that format numbers, times and foreign text for people. It does no input
// or output, and it does not use the store or a broker. Each page is a function of one struct,
// which package web fills.
//
// Everything in a letter is treated as hostile. The functions of this package pass it through
// deadletter.Visible, and templ escapes it. Nothing in this package marks text as safe.
package view

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Shell contains what surrounds the content of every page.
type Shell struct {
	Title      string  // the title of the page without the name of the product
	Section    Section // the current page in the navigation
	Theme      Theme
	Build      string // the version of dlo
	Path       string // the path and query of this page, to which the forms of the shell return
	Actor      string // the user who is signed in
	As         string // describes the role with which an admin views the page; "" if it is the admin's own
	Bounded    bool   // the user may see only some queues
	Observing  string // queues whose letters dlo only observes, in words; "" = none
	Groups     deadletter.GroupCounts
	Running    int  // the number of running operations
	Schemaless int  // the number of queues that need a schema
	SchemasBad bool // some schemas cannot be read
	Brokers    []deadletter.BrokerStatus
	Problems   []deadletter.Problem
	Live       bool   // the page receives events from /events
	Seen       string // the position up to which the page shows all events; later ones are sent at once
	Now        time.Time
	Refresh    time.Duration // how often the page reloads without scripts; 0 is never
}

// Section is one page in the navigation.
type Section string

const (
	SectionOverview   Section = "overview"
	SectionTriage     Section = "triage"
	SectionLetters    Section = "letters"
	SectionOperations Section = "operations"
	SectionQueues     Section = "queues"
	SectionSchemas    Section = "schemas"
	SectionRules      Section = "rules"
	SectionAudit      Section = "audit"
)

// Theme is the theme that the reader chose. If it is "", the page follows the system.
type Theme string

const (
	ThemeSystem Theme = ""
	ThemeLight  Theme = "light"
	ThemeDark   Theme = "dark"
)

// ParseTheme parses the theme in a cookie. It returns ThemeSystem for an unknown theme.
func ParseTheme(s string) Theme {
	if t := Theme(s); t == ThemeLight || t == ThemeDark {
		return t
	}
	return ThemeSystem
}

// themes contains, for each theme, the theme to which the button changes without JavaScript, and
// the label of the button.
var themes = map[Theme]struct {
	next  Theme
	label string
}{
	ThemeSystem: {ThemeDark, "Theme: as the system. Switch to dark"},
	ThemeDark:   {ThemeLight, "Theme: dark. Switch to light"},
	ThemeLight:  {ThemeSystem, "Theme: light. Switch to the system's"},
}

// explanation returns what is known about a problem, and how to solve it.
func explanation(p deadletter.Problem) []Span {
	spans := []Span{{Text: line(p.Text, 500)}}
	if p.Cure != "" {
		spans = append(spans, Span{Text: " " + line(p.Cure, 500)})
	}
	return spans
}

// Span is a piece of a sentence. If Code is true, it is set in a fixed-width font.
type Span struct {
	Text string
	Code bool
	At   time.Time // the time that Text shows; zero if Text is not a time
	Link string    // the URL to which Text links, or ""
}

// clockSpan returns a time of day as a part of a sentence.
func clockSpan(now, t time.Time) Span { return Span{Text: hourMinute(now, t), At: t} }

// line prepares foreign text for one line of a page. It first escapes everything invisible. Then it
// cuts the text to n bytes and ends it with an ellipsis if it is longer.
func line(s string, n int) string {
	// An escape is never shorter than the text that it replaces. So the first n bytes of the result
	// need at most n bytes of input.
	if len(s) > 2*n+16 {
		s = deadletter.Cut(s, 2*n+16)
	}
	return deadletter.Cut(deadletter.Visible(s), n)
}

// cutMiddle returns visible text on one line. If the text is too long, it leaves out the middle. It
// is used for names that begin alike and differ at the end.
func cutMiddle(s string, n int) string {
	if s = line(s, 10*n); len(s) <= n {
		return s
	}
	const gap = "…"
	head := deadletter.Cut(s, (n-len(gap))/2+len(gap))
	head = strings.TrimSuffix(head, gap)
	tail := s[len(s)-(n-len(gap)-len(head)):]
	for tail != "" && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
	}
	return head + gap + tail
}
