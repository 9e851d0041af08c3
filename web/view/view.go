// Package view turns values into pages: templ components, their view models, and the functions that
// write numbers, times and foreign text for people. It does no input or output and knows neither
// the store nor a broker: each page is a function of one struct, filled by package web.
//
// Whatever comes out of a letter is hostile. It passes deadletter.Visible here, and templ escapes
// it; nothing in this package marks text as safe.
package view

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Shell is what surrounds the content of every page.
type Shell struct {
	Title      string  // of the page; the product's name follows
	Section    Section // which entry of the navigation is current
	Theme      Theme
	Path       string // path and query of this page: where the forms of the shell come back to
	Actor      string // who is signed in
	Groups     deadletter.GroupCounts
	Running    int  // operations that are running
	Schemaless int  // queues that need a schema
	SchemasBad bool // some schemas cannot be read
	Brokers    []Broker
	Problems   []Problem
	Live       bool   // the page listens to /events
	Seen       string // how far the page has seen: what changed since then is told at once
	Now        time.Time
	Refresh    time.Duration // how often the page loads itself again without scripts; 0: never
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

// Theme is what the reader chose; empty: as the system says.
type Theme string

const (
	ThemeSystem Theme = ""
	ThemeLight  Theme = "light"
	ThemeDark   Theme = "dark"
)

// ParseTheme reads a theme as the cookie carries it; anything else is ThemeSystem.
func ParseTheme(s string) Theme {
	if t := Theme(s); t == ThemeLight || t == ThemeDark {
		return t
	}
	return ThemeSystem
}

// Next returns the theme that one press of the button without JavaScript leads to: system, dark,
// light, system.
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

// Problem is something that stops a part of dlo and that every page has to say, such as a full
// disk.
type Problem struct {
	Title, Text, Cure string
	Inbox             string // that it is about; "" = none
	Unread            bool   // the inbox is not read
	Pages             bool   // it is worth a page
	Asks              bool   // people have to say whether the store is current
	Query             string // of the letters that it is about; "" = of none
}

// said is what is known of a problem, and what to do about it.
func (p Problem) said() []Span {
	spans := []Span{{Text: line(p.Text, 500)}}
	if p.Cure != "" {
		spans = append(spans, Span{Text: " " + line(p.Cure, 500)})
	}
	return spans
}

// Span is a piece of a sentence; Code sets it in the fixed-width face.
type Span struct {
	Text string
	Code bool
	At   time.Time // that Text is the clock time of; zero: it is none
	Link string    // where Text leads; "" = nowhere
}

// clockSpan is the clock time of a moment within a sentence.
func clockSpan(now, t time.Time) Span { return Span{Text: hourMinute(now, t), At: t} }

// line prepares foreign text for one line of a page: everything invisible becomes an escape, then
// it is cut to n bytes with an ellipsis.
func line(s string, n int) string {
	// An escape is at most 10 bytes for one of the input, so nothing beyond n bytes can be shown.
	if len(s) > 2*n+16 {
		s = deadletter.Cut(s, 2*n+16)
	}
	return deadletter.Cut(deadletter.Visible(s), n)
}

// middle is line with the cut in the middle: names that begin alike end differently.
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
