package view

import (
	"net/url"
	"slices"
	"strings"

	"github.com/a-h/templ"
)

// attribute returns the given attribute if the argument "there" is true, and no attribute
// otherwise.
func attribute(there bool, name string, value any) templ.Attributes {
	if !there {
		return nil
	}
	return templ.Attributes{name: value}
}

// themeAttribute sets data-theme on the root element, unless the theme follows the system.
func themeAttribute(t Theme) templ.Attributes {
	return attribute(t != ThemeSystem, "data-theme", string(t))
}

// events returns the address of the event stream of a live page. The stream starts at the position
// that the page has seen.
func events(s Shell) templ.Attributes {
	return attribute(s.Live, "data-events", "/events?since="+url.QueryEscape(s.Seen))
}

// current returns the attribute that marks the link to the current page.
func current(on bool) templ.Attributes { return attribute(on, "aria-current", "page") }

// pressed returns the attribute that marks the button of the current choice.
func pressed(on bool) templ.Attributes { return attribute(on, "aria-pressed", "true") }

// opened returns the attribute that opens a <details>.
func opened(on bool) templ.Attributes { return attribute(on, "open", true) }

// on returns the attribute that marks the chosen link.
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

// scripts lists the files of static/js in execution order. The file dlo contains the code that the
// others share.
var scripts = []string{"dlo", "choose", "list", "triage", "search", "times", "live", "edit"}

// Place is an entry of the navigation: a page with its path and its key. The router, the keyboard
// shortcuts and the tests use it.
type Place struct {
	Section Section
	Path    string
	Key     string // pressed after g
	Name    string
	icon    string
	label   string // heading above the entry; "" = none
	first   bool   // the entry is shown in the bar of small screens
	whole   bool   // the page concerns all queues: only for users who see all of them
}

// Places lists the pages of the navigation in order.
var Places = []Place{
	{SectionOverview, "/", "h", "Overview", "overview", "", true, false},
	{SectionTriage, "/triage", "t", "Triage", "triage", "", true, false},
	{SectionLetters, "/letters", "l", "Letters", "letters", "", true, false},
	{SectionOperations, "/operations", "o", "Operations", "operations", "", false, false},
	{SectionQueues, "/queues", "q", "Queues", "queues", "Set-up", true, false},
	{SectionSchemas, "/schemas", "s", "Schemas", "schemas", "", false, true},
	{SectionRules, "/rules", "r", "Rules", "rules", "", false, true},
	{SectionAudit, "/audit", "a", "Audit log", "audit", "", false, false},
}

// places returns the pages of the navigation that the user may open.
func (s Shell) places() []Place {
	return slices.DeleteFunc(slices.Clone(Places), func(p Place) bool { return s.Bounded && p.whole })
}

// shortcut is a line in the dialog of keyboard shortcuts.
type shortcut struct {
	does string
	keys []string
}

// shortcuts returns the shortcuts in the keyboard dialog, which js/dlo.js implements.
func (s Shell) shortcuts() []shortcut {
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
	for _, p := range s.places() {
		list = append(list, shortcut{"Go to " + strings.ToLower(p.Name), []string{"g", p.Key}})
	}
	return append(list, shortcut{"Close, then clear the selection", []string{"Esc"}}, shortcut{"This help", []string{"?"}})
}
