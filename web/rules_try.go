package web

import (
	"errors"
	"net/http"
	"strings"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/web/view"
)

// tryRules handles POST /rules/try. It shows what would have become of stored letters under the
// rules in a text, or under those in use if the text is empty. It changes and stores nothing. It
// shows mistakes beside the text.
func (w *Web) tryRules(r *http.Request) (templ.Component, error) {
	if err := r.ParseForm(); err != nil {
		return nil, formError(err)
	}
	p, err := w.rulesPage(r)
	if err != nil {
		return nil, err
	}
	p.Try.Query = strings.TrimSpace(r.PostFormValue("q"))
	var text *string
	if written := r.PostFormValue("rules"); strings.TrimSpace(written) != "" {
		p.Try.Text, p.Try.Unshown = strings.ReplaceAll(written, "\r\n", "\n"), 0 // forms send line breaks as CR LF
		text = &p.Try.Text
	}
	err = w.tryText(r, &p, text)
	if err == nil || len(p.Try.Mistakes) > 0 || p.Mistakes["try-q"] != "" {
		return view.Rules(p), err
	}
	return nil, err
}

// tryText tries the rules in a text from the form on page p, or those in use if the text is nil. It
// records mistakes by field.
func (w *Web) tryText(r *http.Request, p *view.RulesPage, text *string) error {
	set, notes, err := w.triedRules(r.Context(), text)
	var mistakes *config.Error
	if errors.As(err, &mistakes) {
		p.Try.Mistakes = mistakesIn(p.Try.Text, mistakes)
	}
	if err != nil {
		return err
	}
	f, err := w.whatIf(r.Context(), principal(r.Context()), set, p.Try.Query, view.WhatIfLetters)
	var wrong *query.Error
	if errors.As(err, &wrong) {
		p.Mistakes["try-q"] = sentence(err, statusOf(err))
	}
	if err != nil {
		return err
	}
	f.Notes, p.WhatIf = notes, &f
	return nil
}

// mistakesIn returns the mistakes in a text. Each mistake contains the line of text in which it is.
func mistakesIn(text string, wrong *config.Error) []view.RuleMistake {
	lines := strings.Split(text, "\n")
	return each(wrong.Mistakes, func(m config.Mistake) view.RuleMistake {
		shown := view.RuleMistake{Line: m.Line, Column: m.Column, Text: m.Text}
		if m.Line >= 1 && m.Line <= len(lines) {
			shown.In = strings.TrimSpace(lines[m.Line-1])
		}
		return shown
	})
}
