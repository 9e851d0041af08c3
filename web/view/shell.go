package view

import (
	"net/url"
	"strings"

	"github.com/a-h/templ"
)

// attribute is one attribute, where it is to be there.
func attribute(there bool, name string, value any) templ.Attributes {
	if !there {
		return nil
	}
	return templ.Attributes{name: value}
}

// themeAttribute is data-theme on the root element; nothing while the system decides.
func themeAttribute(t Theme) templ.Attributes {
	return attribute(t != ThemeSystem, "data-theme", string(t))
}

// events names where a live page listens, from what it has seen on.
func events(s Shell) templ.Attributes {
	return attribute(s.Live, "data-events", "/events?since="+url.QueryEscape(s.Seen))
}

// current marks the link of the page that is shown.
func current(on bool) templ.Attributes { return attribute(on, "aria-current", "page") }

// pressed marks the button of the choice that holds.
func pressed(on bool) templ.Attributes { return attribute(on, "aria-pressed", "true") }

// opened opens a <details>.
func opened(on bool) templ.Attributes { return attribute(on, "open", true) }

// on marks what is chosen among links.
func on(on bool) templ.Attributes { return attribute(on, "aria-current", "true") }

// initials returns at most two capitals for the avatar of name.
func initials(name string) string {
	var out []rune
	for _, word := range strings.FieldsFunc(line(name, 60), func(r rune) bool { return r == ' ' || r == '.' || r == '@' || r == '-' }) {
		if out = append(out, []rune(strings.ToUpper(word))[0]); len(out) == 2 {
			break
		}
	}
	return string(out)
}

// scripts are the files of static/js in the order in which they run: dlo holds what the others
// share.
var scripts = []string{"dlo", "choose", "list", "triage", "search", "times", "live", "edit"}

// Place is an entry of the navigation: a page, its address and its key. The router, the keyboard
// and the tests read it here.
type Place struct {
	Section Section
	Path    string
	Key     string // after g, on the keyboard
	Name    string
	icon    string
	label   string // heading above the entry; "" = none
	first   bool   // it stands in the bar of small screens
}

// Places are the pages of the navigation, in its order.
var Places = []Place{
	{SectionOverview, "/", "h", "Overview", "overview", "", true},
	{SectionTriage, "/triage", "t", "Triage", "triage", "", true},
	{SectionLetters, "/letters", "l", "Letters", "letters", "", true},
	{SectionOperations, "/operations", "o", "Operations", "operations", "", false},
	{SectionQueues, "/queues", "q", "Queues", "queues", "Set-up", true},
	{SectionSchemas, "/schemas", "s", "Schemas", "schemas", "", false},
	{SectionRules, "/rules", "r", "Rules", "rules", "", false},
	{SectionAudit, "/audit", "a", "Audit log", "audit", "", false},
}

// shortcut is a line of the keyboard dialog.
type shortcut struct {
	does string
	keys []string
}

// shortcuts is what the keyboard dialog lists, and what js/dlo.js obeys.
func shortcuts() []shortcut {
	list := []shortcut{
		{"Next / previous row or letter", []string{"j", "k"}},
		{"Open", []string{"Enter"}},
		{"Select row", []string{"x"}},
		{"Select range", []string{"⇧", "x"}},
		{"Requeue to the tail", []string{"r"}},
		{"Resolve a group", []string{"e"}},
		{"Snooze a group", []string{"s"}},
		{"Assign a group", []string{"a"}},
		{"Undo the last decision", []string{"z"}},
		{"Edit and requeue", []string{"i"}},
		{"Copy payload", []string{"c"}},
		{"Search or filter", []string{"/"}},
		{"Search or jump", []string{"⌘", "K"}},
	}
	for _, p := range Places {
		list = append(list, shortcut{"Go to " + strings.ToLower(p.Name), []string{"g", p.Key}})
	}
	return append(list, shortcut{"Close, then clear the selection", []string{"Esc"}}, shortcut{"This help", []string{"?"}})
}
