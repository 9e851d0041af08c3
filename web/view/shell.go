package view

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/a-h/templ"
)

// attributeIf returns an HTML attribute if "on" is true. Otherwise, it returns no attribute.
func attributeIf(on bool, name string, value any) templ.Attributes {
	if !on {
		return nil
	}
	return templ.Attributes{name: value}
}

// themeAttribute returns the attribute data-theme of the root element. If the page follows the
// theme of the system, it returns no attribute.
func themeAttribute(t Theme) templ.Attributes {
	return attributeIf(t != ThemeSystem, "data-theme", string(t))
}

// events returns the attribute with the URL of the event stream of a live page. The stream begins
// after the changes that the page already shows.
func events(ctx context.Context, s Shell) templ.Attributes {
	return attributeIf(s.Live, "data-events", linkTo(ctx, "/events?since="+url.QueryEscape(s.Seen)))
}

// currentIf returns the attribute that marks the link to the current page, if the parameter is
// true.
func currentIf(on bool) templ.Attributes { return attributeIf(on, "aria-current", "page") }

// pressedIf returns the attribute that marks the button of the current choice, if the parameter is
// true.
func pressedIf(on bool) templ.Attributes { return attributeIf(on, "aria-pressed", "true") }

// openIf returns the attribute that opens a <details> element, if the parameter is true.
func openIf(on bool) templ.Attributes { return attributeIf(on, "open", true) }

// chosenIf returns the attribute that marks the chosen link, if the parameter is true.
func chosenIf(on bool) templ.Attributes { return attributeIf(on, "aria-current", "true") }

// initials returns at most two capital letters of a name, for the picture of a person.
func initials(name string) string {
	var out []rune
	for _, word := range strings.FieldsFunc(
		line(name, 60), func(r rune) bool { return r == ' ' || r == '(' || r == '.' || r == '@' || r == '-' },
	) {
		if out = append(out, []rune(strings.ToUpper(word))[0]); len(out) == 2 {
			break
		}
	}
	return string(out)
}

// scripts lists the files of static/js in the order in which they run. The file "dlo" contains the
// code that the others share.
var scripts = []string{"dlo", "choose", "list", "triage", "search", "times", "live", "edit"}

// Place is one page in the navigation, with its path and its key. The router, the keyboard
// shortcuts and the tests use it.
type Place struct {
	Section Section
	Path    string
	Key     string // the key that is pressed after g
	Name    string
	icon    string
	label   string // the heading above the entry, or ""
	first   bool   // the entry is also in the bar of small screens
	whole   bool   // the page concerns all queues, so only users who may see all queues have it
	// the document about the page, below docs
	document string
}

// Places lists the pages in the navigation in their order.
var Places = []Place{
	{SectionOverview, "/", "h", "Overview", "overview", "", true, false, "README.md"},
	{SectionTriage, "/triage", "t", "Triage", "triage", "", true, false, "triage.md"},
	{SectionLetters, "/letters", "l", "Letters", "letters", "", true, false, "letters.md"},
	{SectionOperations, "/operations", "o", "Operations", "operations", "", false, false, "operations.md"},
	{SectionQueues, "/queues", "q", "Queues", "queues", "Set-up", true, false, "topology.md"},
	{SectionSchemas, "/schemas", "s", "Schemas", "schemas", "", false, true, "protobuf.md"},
	{SectionRules, "/rules", "r", "Rules", "rules", "", false, true, "rules.md"},
	{SectionAudit, "/audit", "a", "Audit log", "audit", "", false, false, "audit.md"},
}

// places returns the pages in the navigation that the user may open.
func (s Shell) places() []Place {
	return slices.DeleteFunc(slices.Clone(Places), func(p Place) bool { return s.Bounded && p.whole })
}

// shortcut is a line in the dialog of keyboard shortcuts.
type shortcut struct {
	does string
	keys []string
}

// shortcuts returns the keyboard shortcuts that the dialog lists. js/dlo.js implements them.
func (s Shell) shortcuts() []shortcut {
	list := []shortcut{
		{"Next / previous row or letter", []string{"j", "k"}},
		{"Open / preview", []string{"Enter", "Space"}},
		{"Select row", []string{"x"}},
		{"Select range", []string{"⇧", "x"}},
		{"Requeue to the tail", []string{"r"}},
		{"Discard", []string{"d"}},
		{"Hold", []string{"h"}},
		{"Resolve a group", []string{"e"}},
		{"Snooze / assign / merge groups", []string{"s", "a", "m"}},
		{"Undo the last decision", []string{"z"}},
		{"Edit and requeue", []string{"i"}},
		{"Copy payload", []string{"c"}},
		{"Search or filter", []string{"/"}},
		{"Search or jump", []string{"Ctrl or ⌘", "K"}},
	}
	for _, p := range s.places() {
		list = append(list, shortcut{"Go to " + strings.ToLower(p.Name), []string{"g", p.Key}})
	}
	return append(list, shortcut{
		"Close, then clear the selection",
		[]string{"Esc"},
	}, shortcut{"This help", []string{"?"}})
}
