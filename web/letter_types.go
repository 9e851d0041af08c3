package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/web/view"
)

// typeChoice returns the types that people have picked for a letter, and whether another type can
// be picked.
func (w *Web) typeChoice(ctx context.Context, l *deadletter.Letter, doc *payload.Document) (view.TypeChoice, error) {
	c := view.TypeChoice{Readable: doc.Reading().Readable()}
	all, err := w.Store.Picks(ctx)
	if err != nil {
		return c, err
	}
	c.Picks = picksFor(l, all)
	binary := doc.Kind == payload.Binary || doc.Kind == payload.Protobuf
	if w.Picker == nil || l.State == deadletter.StatePurged || !binary && len(c.Picks) == 0 {
		return c, nil
	}
	names := w.Decoder().Types.Types()
	c.May = len(names) > 0
	c.Names, c.Unnamed = view.NamesOffered(names)
	return c, nil
}

// picksFor returns the picks that apply to a letter, the strongest first: the pick for the letter
// itself, the pick for its group, and the first binding that matches.
func picksFor(l *deadletter.Letter, all []deadletter.Pick) []deadletter.Pick {
	var letter, group, binding []deadletter.Pick
	for _, p := range all {
		switch {
		case p.Letter != "":
			if p.Letter == l.ID {
				letter = append(letter, p)
			}
		case p.Group != 0:
			if p.Group == l.Group {
				group = append(group, p)
			}
		case len(binding) == 0 && (payload.Binding{Queue: p.Queue, Key: p.Key}).Fits(
			l.Origin.Queue, l.Origin.RoutingKey,
		):
			binding = append(binding, p)
		}
	}
	return append(append(letter, group...), binding...)
}

// pickTypeForm handles POST /letters/{id}/type {type, for, reason}. Mistakes are shown on the page
// of the letter.
func (w *Web) pickTypeForm(r *http.Request) (string, error) {
	l, err := w.readLetter(r.Context(), letterIn(r))
	if err != nil {
		return "", err
	}
	if err := r.ParseForm(); err != nil {
		return "", formError(err)
	}
	typ, whom, reason := strings.TrimSpace(r.PostFormValue("type")), r.PostFormValue("for"), strings.TrimSpace(r.PostFormValue("reason"))
	p, err := pickFor(&l, whom)
	if err == nil {
		p.Type, p.Reason = typ, reason
		_, err = w.pick(r.Context(), Matching{}, &l, p)
	}
	back := backTo(r, view.LetterURL(l.ID, "", ""))
	if errors.Is(err, deadletter.ErrInvalid) {
		form := url.Values{}
		if u, wrong := url.Parse(back); wrong == nil {
			form = u.Query()
		}
		page, broken := w.letterView(r, l, form, revealed{})
		if broken != nil {
			return "", err
		}
		page.Types.Typed, page.Types.For, page.Types.Reason, page.Types.Problem = typ, whom, reason, sentence(
			err, statusOf(err),
		)
		return "", againError{view.Letter(page), err}
	}
	return back, err
}
