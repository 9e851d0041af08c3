package web

import (
	"net/http"
	"strconv"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/web/view"
)

const (
	typedShown = 20 // the maximum number of queues on one page
	addedShown = 8  // the maximum number of shown fields that types do not define
)

// schemasPage handles GET /schemas?from=&find=&type=&set=&bind=&key=&as=&bound=&used=. The
// parameters "bind", "key" and "as" fill in the form for a binding. After somebody has made a
// binding, the parameter "bound" is its id. After somebody has uploaded a set, the parameter "used"
// is its version.
func (w *Web) schemasPage(r *http.Request) (templ.Component, error) {
	form := r.URL.Query()
	p, err := w.schemasView(r, form.Get("from"))
	if err != nil {
		return nil, err
	}
	p.Said = boundWords(p.Picks, form.Get("bound"))
	p.Bind = view.BindForm{Queue: form.Get("bind"), Key: form.Get("key"), Type: form.Get("as")}
	if p.Find, err = w.findTypes(form.Get("find")); err != nil {
		return nil, err
	}
	if name := form.Get("set"); name != "" {
		p.Set = w.setDetail(name)
		if p.Set != nil && len(p.Set.Versions) > 0 && p.Set.Versions[0].Version == form.Get("used") {
			p.Said = view.UsedWords(name)
		}
	}
	if name := form.Get("type"); name != "" {
		if p.Type, err = w.typeSource(r.Context(), name); err != nil {
			return nil, err
		}
	}
	return view.Schemas(p), nil
}

// schemasView returns the page of schemas without the details that a reader can request.
func (w *Web) schemasView(r *http.Request, from string) (view.SchemasPage, error) {
	ctx, types := r.Context(), w.Decoder().Types
	p := view.SchemasPage{
		Shell:    w.shell(r, "Schemas", view.SectionSchemas),
		PageSize: typedShown,
	}
	names := types.Types()
	p.Types = len(names)
	p.Names, p.Unnamed = view.NamesOffered(names)
	readings, err := w.Store.Readings(ctx)
	if err != nil {
		return p, err
	}
	if p.Rereading, err = w.Store.RereadProgress(ctx); err != nil {
		return p, err
	}
	if p.Picks, err = w.Store.Picks(ctx); err != nil {
		return p, err
	}
	p.Bindings = w.Bindings
	queues := typedQueues(readings)
	p.Several, p.Total = severalPlaces(readings), len(queues)
	for _, q := range queues {
		p.All.Letters += q.Letters
		p.All.Unread += q.Unread
		p.All.Unmatched += q.Unmatched
		p.All.By = append(p.All.By, q.By...)
	}
	if p.Added, err = w.Store.AddedFields(ctx, addedShown); err != nil {
		return p, err
	}
	if n, err := strconv.Atoi(from); err == nil && n > 0 && n < len(queues) {
		p.From = n
	}
	p.Queues = queues[p.From:min(p.From+typedShown, len(queues))]
	for i := range p.Queues {
		boundTo(&p.Queues[i], p.Picks, p.Bindings)
	}
	return p, w.addSets(ctx, &p)
}

// severalPlaces reports whether letters come from more than one broker or vhost.
func severalPlaces(readings []deadletter.ReadCount) bool {
	places := map[[2]string]bool{}
	for _, c := range readings {
		if c.Queue != "" {
			places[[2]string{c.Broker, c.VHost}] = true
		}
	}
	return len(places) > 1
}
