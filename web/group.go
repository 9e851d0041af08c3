package web

import (
	"net/http"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/web/view"
)

const latestShown = 5

// groupPage is GET /groups/{id}.
func (w *Web) groupPage(r *http.Request) (templ.Component, error) {
	g, err := w.group(r)
	if err != nil {
		return nil, err
	}
	p := view.GroupPage{Shell: w.shell(r, g.ID.String()+" "+g.Title, view.SectionTriage)}
	if p.Done, err = w.done(r); err != nil {
		return nil, err
	}
	p.Group, err = w.groupView(r, g)
	p.Group.Page = true
	return view.Group(p), err
}

// groupView fills in what is said of a group.
func (w *Web) groupView(r *http.Request, g deadletter.Group) (view.GroupView, error) {
	w.hideGroup(&g.GroupRow)
	v := view.GroupView{Group: g, Now: w.Now(), QueueLink: view.LettersURL((query.Query{}).With(query.Queue, g.Queue).String(), "", "")}
	q := (query.Query{}).With(query.Group, g.ID.String()).With(query.State, string(deadletter.StateDead), string(deadletter.StateHeld))
	var err error
	if v.Latest, _, _, err = w.Store.Letters(r.Context(), q, deadletter.Page{Limit: latestShown}); err != nil {
		return v, err
	}
	w.hideRows(v.Latest)
	if len(v.Latest) > 0 {
		v.Error = v.Latest[0].Error
	}
	v.Shared, v.Sampled, err = w.shared(r, g.ID)
	return v, err
}
