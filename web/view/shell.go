package view

import (
	"net/url"
	"strings"

	"github.com/a-h/templ"
)

// themeAttribute is data-theme on the root element; nothing while the system decides.
func themeAttribute(t Theme) templ.Attributes {
	if t == ThemeSystem {
		return nil
	}
	return templ.Attributes{"data-theme": string(t)}
}

// events names where a live page listens, from what it has seen on.
func events(s Shell) templ.Attributes {
	if !s.Live {
		return nil
	}
	return templ.Attributes{"data-events": "/events?since=" + url.QueryEscape(s.Seen)}
}

// current marks the link of the page that is shown.
func current(on bool) templ.Attributes {
	if !on {
		return nil
	}
	return templ.Attributes{"aria-current": "page"}
}

// pressed marks the button of the choice that holds.
func pressed(on bool) templ.Attributes {
	if !on {
		return nil
	}
	return templ.Attributes{"aria-pressed": "true"}
}

// opened opens a <details>.
func opened(on bool) templ.Attributes {
	if !on {
		return nil
	}
	return templ.Attributes{"open": true}
}

// on marks what is chosen among links.
func on(on bool) templ.Attributes {
	if !on {
		return nil
	}
	return templ.Attributes{"aria-current": "true"}
}

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

// scripts are the files of static/js in the order in which they run: dlo holds what the others share.
var scripts = []string{"dlo", "list", "triage", "search", "live", "edit"}

// place is an entry of the navigation.
type place struct {
	section          Section
	link, icon, name string
	label            string // heading above the entry; "" = none
	first            bool   // it stands in the bar of small screens
}

var places = []place{
	{SectionOverview, "/", "overview", "Overview", "", true},
	{SectionTriage, "/triage", "triage", "Triage", "", true},
	{SectionLetters, "/letters", "letters", "Letters", "", true},
	{SectionOperations, "/operations", "operations", "Operations", "", false},
	{SectionQueues, "/queues", "queues", "Queues", "Set-up", true},
	{SectionSchemas, "/schemas", "schemas", "Schemas", "", false},
	{SectionRules, "/rules", "rules", "Rules", "", false},
	{SectionAudit, "/audit", "audit", "Audit log", "", false},
}

// shortcuts is what the keyboard dialog lists, and what js/dlo.js obeys.
var shortcuts = []struct {
	does string
	keys []string
}{
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
	{"Go to overview", []string{"g", "h"}},
	{"Go to triage", []string{"g", "t"}},
	{"Go to letters", []string{"g", "l"}},
	{"Go to operations", []string{"g", "o"}},
	{"Go to queues", []string{"g", "q"}},
	{"Go to schemas", []string{"g", "s"}},
	{"Go to rules", []string{"g", "r"}},
	{"Go to audit log", []string{"g", "a"}},
	{"Close, then clear the selection", []string{"Esc"}},
	{"This help", []string{"?"}},
}
