package web

import (
	"cmp"
	"errors"
	"net/http"
	"strings"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/web/view"
)

// tryRules handles POST /rules/try. It shows what would have become of stored letters under the
// rules in a text. It changes and stores nothing. It shows mistakes beside the text.
func (w *Web) tryRules(r *http.Request) (templ.Component, error) {
	if err := r.ParseForm(); err != nil {
		return nil, formError(err)
	}
	if w.Rules == nil {
		return nil, deadletter.ErrNotFound
	}
	p, err := w.rulesPage(r)
	if err != nil {
		return nil, err
	}
	// Forms send line breaks as CR LF.
	p.Try = view.TryForm{
		Text:  strings.ReplaceAll(r.PostFormValue("rules"), "\r\n", "\n"),
		Query: strings.TrimSpace(r.PostFormValue("q")),
	}
	err = w.tryText(r, &p)
	if err == nil || len(p.Try.Mistakes) > 0 || p.Mistakes["try-q"] != "" {
		return view.Rules(p), err
	}
	return nil, err
}

// tryText tries the rules that a person has written into the form on page p. It records mistakes by
// field.
func (w *Web) tryText(r *http.Request, p *view.RulesPage) error {
	set, notes, err := w.parseTriedRules(r.Context(), p.Try.Text)
	var mistakes *config.Error
	if errors.As(err, &mistakes) {
		p.Try.Mistakes = mistakesIn(p.Try.Text, mistakes)
	}
	if err != nil {
		return err
	}
	f, err := w.whatIf(r.Context(), principal(r), set, cmp.Or(p.Try.Query, whatIfQuery), view.WhatIfLetters)
	var wrong *query.Error
	if errors.As(err, &wrong) {
		p.Mistakes["try-q"] = sentence(err, statusOf(err))
	}
	if err != nil {
		return err
	}
	p.Try.Notes, p.Try.Tried, p.WhatIf = notes, true, &f
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
