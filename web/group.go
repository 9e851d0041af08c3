package web

import (
	"errors"
	"net/http"
	"slices"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/web/view"
)

const latestShown = 5

// groupPage handles GET /groups/{id}.
func (w *Web) groupPage(r *http.Request) (templ.Component, error) {
	g, err := w.group(r.Context(), groupIn(r))
	if err != nil {
		return nil, err
	}
	p := view.GroupPage{Shell: w.shell(r, g.ID.String()+" "+g.Title, view.SectionTriage)}
	if p.Done, err = w.justDecided(r); err != nil {
		return nil, err
	}
	if p.Group, err = w.groupView(r, g, r.URL.Query().Get("peek") == ""); err != nil {
		return nil, err
	}
	p.Group.Page = true
	p.Group.People, err = w.assignees(r)
	return view.Group(p), err
}

// assignees returns the names that are offered when a group is assigned: the current principal, and
// names that were used before.
func (w *Web) assignees(r *http.Request) ([]string, error) {
	names, err := w.Store.People(r.Context())
	if err != nil {
		return nil, err
	}
	if w.Users != nil && deadletter.ScopeOf(r.Context()).Everywhere() {
		users, err := w.Users.Users(r.Context())
		if err != nil {
			return nil, err
		}
		for _, u := range users {
			if !slices.Contains(names, u.Name) {
				names = append(names, u.Name)
			}
		}
	}
	me := principal(r.Context()).Name
	return append([]string{me}, slices.DeleteFunc(names, func(name string) bool { return name == me })...), err
}

// groupView returns what a page shows about a group. If "withDetails" is true, it also includes the
// newest letter, and the differences between the letters of the group and letters that did not die
// again.
func (w *Web) groupView(r *http.Request, g deadletter.Group, withDetails bool) (view.GroupView, error) {
	w.hideGroup(&g.GroupRow)
	v := view.GroupView{
		Group:     g,
		Whole:     withDetails,
		Morning:   w.nextDigest(w.Now()),
		Now:       w.Now(),
		QueueLink: view.LettersURL((query.Query{}).With(query.Queue, g.Queue).String(), "", ""),
	}
	var err error
	if v.Latest, _, _, err = w.Store.Letters(
		r.Context(), inGroup(g.ID), deadletter.Page{Limit: latestShown},
	); err != nil {
		return v, err
	}
	w.hideRows(v.Latest)
	if len(v.Latest) > 0 {
		v.Error = v.Latest[0].Error
		if withDetails {
			if v.Newest, err = w.newestLetter(r, v.Latest[0].ID); err != nil {
				return v, err
			}
		}
	}
	v.GroupValues, err = w.shared(r.Context(), &g, withDetails)
	return v, err
}

// newestLetter returns the decoded letter with the given id for the page of a group. It returns nil
// if the letter does not exist any more, or if the reader may not see it.
func (w *Web) newestLetter(r *http.Request, id deadletter.ID) (*view.LetterPage, error) {
	l, err := w.letterFor(r.Context(), principal(r.Context()), id)
	if errors.Is(err, deadletter.ErrNotFound) || errors.Is(err, deadletter.ErrForbidden) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	doc, err := w.decode(r.Context(), &l)
	if err != nil {
		return nil, err
	}
	w.hide(&l)
	p := &view.LetterPage{Letter: l, Query: inGroup(l.Group).String(), Decoded: decodedView(doc, &l, payload.Range{})}
	p.Decoded.Bytes = nil // only the page of the letter itself shows the bytes
	return p, nil
}
