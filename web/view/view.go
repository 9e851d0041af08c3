// Package view turns values into pages. It contains templ components, their view models, and the
// functions that format numbers, times and foreign text for people. It does no input or output and
// knows neither the store nor a broker. Each page is a function of one struct, which package web
// fills.
//
// Everything in a letter is treated as hostile. It passes through deadletter.Visible here, and
// templ escapes it. Nothing in this package marks text as safe.
package view

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Shell surrounds the content of every page.
type Shell struct {
	Title      string  // title of the page, without the product's name
	Section    Section // current entry of the navigation
	Theme      Theme
	Path       string // path and query of this page, to which the shell's forms return
	Actor      string // the signed-in user
	As         string // words of the grant under which an admin views the page; "" = their own
	Bounded    bool   // the user sees some queues only
	Groups     deadletter.GroupCounts
	Running    int  // running operations
	Schemaless int  // queues that need a schema
	SchemasBad bool // some schemas cannot be read
	Brokers    []Broker
	Problems   []Problem
	Live       bool   // the page receives events from /events
	Seen       string // position of the page in the events; later changes are sent immediately
	Now        time.Time
	Refresh    time.Duration // how often the page reloads without scripts; 0: never
}

// Section is an entry of the navigation.
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

// Theme is the theme that the reader chose. If it is empty, the page follows the system.
type Theme string

const (
	ThemeSystem Theme = ""
	ThemeLight  Theme = "light"
	ThemeDark   Theme = "dark"
)

// ParseTheme parses the theme in the cookie. An unknown value gives ThemeSystem.
func ParseTheme(s string) Theme {
	if t := Theme(s); t == ThemeLight || t == ThemeDark {
		return t
	}
	return ThemeSystem
}

// Next returns the theme after one press of the button without JavaScript: system, dark, light,
// system.
func (t Theme) Next() Theme {
	switch t {
	case ThemeSystem:
		return ThemeDark
	case ThemeDark:
		return ThemeLight
	}
	return ThemeSystem
}

func (t Theme) label() string {
	switch t {
	case ThemeDark:
		return "Theme: dark. Switch to light"
	case ThemeLight:
		return "Theme: light. Switch to the system's"
	}
	return "Theme: as the system. Switch to dark"
}

// Problem is shown on every page because it stops a part of dlo. A full disk is an example.
type Problem struct {
	Title, Text, Cure string
	Inbox             string // inbox that the problem is about; "" = none
	Unread            bool   // the inbox is not being read
	Pages             bool   // the problem has severity page
	Asks              bool   // people have to confirm that the store is current
	Query             string // query for the letters that the problem is about; "" = none
}

// said returns the known facts of a problem, and how to solve it.
func (p Problem) said() []Span {
	spans := []Span{{Text: line(p.Text, 500)}}
	if p.Cure != "" {
		spans = append(spans, Span{Text: " " + line(p.Cure, 500)})
	}
	return spans
}

// Span is a piece of a sentence. Code sets it in a fixed-width font.
type Span struct {
	Text string
	Code bool
	At   time.Time // the time that Text shows; zero: Text is not a time
	Link string    // URL that Text links to; "" = none
}

// clockSpan returns a clock time for a sentence.
func clockSpan(now, t time.Time) Span { return Span{Text: hourMinute(now, t), At: t} }

// line prepares foreign text for one line of a page. It escapes everything invisible. It then cuts
// the text to n bytes with an ellipsis.
func line(s string, n int) string {
	// An escape is never shorter than the text that it replaces. The first n bytes of the result
	// therefore need no more than n bytes of input.
	if len(s) > 2*n+16 {
		s = deadletter.Cut(s, 2*n+16)
	}
	return deadletter.Cut(deadletter.Visible(s), n)
}

// middle works like line, but it cuts in the middle, because names with a common beginning differ
// at the end.
func middle(s string, n int) string {
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
