package web

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	"github.com/a-h/templ"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/web/view"
)

// typeChoice returns the types that people have picked for a letter, and whether another type can
// be picked.
func (w *Web) typeChoice(ctx context.Context, l *deadletter.Letter, doc *payload.Document) (view.TypeChoice, error) {
	c := view.TypeChoice{Readable: doc.Reading().Readable(), Inside: doc.Inside}
	if l.Queue != "" {
		c.Members = doc.Members[:min(len(doc.Members), 5)]
	}
	all, err := w.Store.Picks(ctx)
	if err != nil {
		return c, err
	}
	c.Picks = picksFor(l, all)
	binary := doc.Kind == payload.Binary || doc.Kind == payload.Protobuf
	if l.State == deadletter.StatePurged || !binary && len(c.Picks)+len(c.Members) == 0 {
		return c, nil
	}
	names := w.Decoder().Types.Types()
	c.May = len(names) > 0
	c.Names, c.Unnamed = view.NamesOffered(names)
	return c, nil
}

// picksFor returns the picks that apply to a letter, the strongest first: the pick for the letter
// itself, the pick for its group, and the first binding that matches its body and each member of
// it.
func picksFor(l *deadletter.Letter, all []deadletter.Pick) []deadletter.Pick {
	var letter, group, bindings []deadletter.Pick
	for _, p := range all {
		same := func(b deadletter.Pick) bool { return b.Path == p.Path }
		switch {
		case p.Letter != "":
			if p.Letter == l.ID {
				letter = append(letter, p)
			}
		case p.Group != 0:
			if p.Group == l.Group {
				group = append(group, p)
			}
		case p.Fits(l.Queue, l.RoutingKey) && !slices.ContainsFunc(bindings, same):
			bindings = append(bindings, p)
		}
	}
	return append(append(letter, group...), bindings...)
}

// pickAgain shows the page of a letter with the type that was refused.
func (w *Web) pickAgain(r *http.Request, err error) (templ.Component, error) {
	l, broken := w.readLetter(r.Context(), letterIn(r))
	if broken != nil {
		return nil, broken
	}
	form := url.Values{}
	if back, wrong := url.Parse(backTo(r, "")); wrong == nil {
		form = back.Query()
	}
	page, broken := w.letterView(r, l, form, revealed{})
	t := &page.Types
	t.Typed, t.For, t.Path, t.Reason = r.PostForm.Get("type"), r.PostForm.Get("for"), r.PostForm.Get("path"), r.PostForm.Get("reason")
	t.Problem = sentence(err, statusOf(err))
	return view.Letter(page), broken
}
