package web

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
)

// triedRules parses the text of rules that a person wants to try. It also returns notes about
// settings that the text does not contain. It waits for its turn until ctx ends, because a hostile
// text can take a second to parse. If the text is nil, it returns the rules in use.
func (w *Web) triedRules(ctx context.Context, text *string) (*rules.Set, []string, error) {
	notes := []string{}
	if text == nil {
		return w.Rules.Set(), notes, nil
	}
	done, err := w.waitForPlace(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	p, err := config.ReadRules(*text, w.Rules.Set())
	if err != nil {
		return nil, nil, writtenError{err}
	}
	for _, part := range p.Kept {
		notes = append(notes, map[string]string{
			"rules":   "The text has no rules: those in use are tried.",
			"default": "The text has no default; the one in use applies.",
		}[part])
	}
	if text := leftOut(w.Rules.Set().Rules, p.Rules.Rules); text != "" {
		notes = append(notes, text)
	}
	if len(p.Other) > 0 {
		notes = append(
			notes, "Only rules and default are tried. These settings were not read: "+strings.Join(p.Other, ", ")+".",
		)
	}
	return &p.Rules, notes, nil
}

// leftOut returns the names of the current rules that a text does not contain. These rules would be
// lost, because the text would replace all rules.
func leftOut(inUse, written []rules.Rule) string {
	const named = 5
	var names []string
	for _, r := range inUse {
		if !slices.ContainsFunc(written, func(o rules.Rule) bool { return o.Name == r.Name }) {
			names = append(names, deadletter.Visible(r.Name))
		}
	}
	if len(names) == 0 {
		return ""
	}
	text := "The text replaces all rules. It leaves out " +
		deadletter.Plural(len(names), "rule that is in use", "rules that are in use") + ": "
	if more := len(names) - named; more > 0 {
		names = append(names[:named], deadletter.Plural(more, "more", "more"))
	}
	return text + strings.Join(names, ", ") + "."
}

// writtenError contains mistakes in the text of rules that a person wants to try. Only the author
// of the text sees them. They are not logged, because the text may contain anything.
type writtenError struct{ error }

func (e writtenError) Unwrap() []error { return []error{deadletter.ErrInvalid, e.error} }

// LogValue returns the text that the log contains instead of the mistakes.
func (e writtenError) LogValue() slog.Value {
	return slog.StringValue("mistakes in rules that were to be tried")
}
