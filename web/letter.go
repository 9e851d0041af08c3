package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/a-h/templ"
	"github.com/go-chi/chi/v5"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/web/view"
)

// Details is what a letter's page needs of the store.
type Details interface {
	Letter(ctx context.Context, id deadletter.ID) (deadletter.Letter, error) // with body and properties
	// Neighbours returns the letters next to id among those that q selects; "" at the ends.
	Neighbours(ctx context.Context, q query.Query, id deadletter.ID) (newer, older deadletter.ID, err error)
	Attempts(ctx context.Context, id deadletter.ID) ([]deadletter.Attempt, error) // oldest first
	History(ctx context.Context, id deadletter.ID) ([]deadletter.Event, error)    // oldest first
	// Siblings returns copies of the same message that died in other queues.
	Siblings(ctx context.Context, l *deadletter.Letter) ([]deadletter.Row, error)
	GroupTitle(ctx context.Context, id deadletter.GroupID) (string, error)
}

// pathID reads the letter's id in the path. What is no id is not found: ids tell nothing by the shape of a refusal.
func pathID(r *http.Request) (deadletter.ID, error) {
	id, err := deadletter.ParseID(chi.URLParam(r, "id"))
	if err != nil {
		return "", deadletter.ErrNotFound
	}
	return id, nil
}

// readLetter reads the letter of a request that its principal may see.
func (w *Web) readLetter(r *http.Request) (deadletter.Letter, error) {
	id, err := pathID(r)
	if err != nil {
		return deadletter.Letter{}, err
	}
	l, err := w.Store.Letter(r.Context(), id)
	if err != nil {
		return deadletter.Letter{}, err
	}
	return l, deadletter.Allow(principal(r), deadletter.VerbView, l.Origin)
}

// letter is GET /letters/{id}?q=&tab=&layer=; q is the list that it was opened from.
func (w *Web) letter(r *http.Request) (templ.Component, error) {
	l, err := w.readLetter(r)
	if err != nil {
		return nil, err
	}
	ctx, form := r.Context(), r.URL.Query()
	p := view.LetterPage{Shell: w.shell(r, "Letter "+l.ID.Short(), view.SectionLetters), Query: form.Get("q"), Tab: view.ParseTab(form.Get("tab"))}
	q, err := query.Parse(p.Query, w.queryOptions())
	if err != nil {
		q, p.Query = query.Query{}, ""
	}
	if p.Newer, p.Older, err = w.Store.Neighbours(ctx, q, l.ID); err != nil {
		return nil, err
	}
	if p.Attempts, err = w.Store.Attempts(ctx, l.ID); err != nil {
		return nil, err
	}
	if l.Group != 0 {
		if p.GroupTitle, err = w.Store.GroupTitle(ctx, l.Group); err != nil && !errors.Is(err, deadletter.ErrNotFound) {
			return nil, err
		}
		if w.Header != nil {
			p.GroupTitle, _ = w.Header("", p.GroupTitle)
		}
	}
	if p.Siblings, err = w.Store.Siblings(ctx, &l); err != nil {
		return nil, err
	}
	if p.Tab == view.TabHistory {
		if p.History, err = w.Store.History(ctx, l.ID); err != nil {
			return nil, err
		}
	}
	doc, err := w.decode(ctx, &l)
	if err != nil {
		return nil, err
	}
	w.hide(&l)
	p.Letter, p.ErrorFrom = l, errorFrom(&l)
	p.Layers, p.Candidates = layerSpans(doc), candidates(doc)
	switch p.Tab {
	case view.TabDecoded:
		p.Decoded = decoded(doc, &l)
	case view.TabJSON:
		p.JSON = jsonOf(doc)
	case view.TabRaw:
		p.Raw = raw(doc, &l, p.Query, form.Get("layer") == "0")
	}
	return view.Letter(p), nil
}

// errMaskedBody is the answer to who asks for the bytes of a letter with masked fields: in this version nobody has the right to reveal them.
var errMaskedBody = fmt.Errorf("%w: the body holds masked values, so its bytes are not given out; the page and the JSON of the letter show the rest", deadletter.ErrForbidden)

// body is GET /letters/{id}/body: the stored bytes, as a file that no browser shows.
func (w *Web) body(rw http.ResponseWriter, r *http.Request) {
	l, err := w.readLetter(r)
	if err != nil {
		w.fail(rw, r, err)
		return
	}
	if doc, err := w.decode(r.Context(), &l); err != nil || w.bytesMasked(doc) {
		if err == nil {
			err = errMaskedBody
		}
		w.fail(rw, r, err)
		return
	}
	h := rw.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", `attachment; filename="letter-`+l.ID.Short()+`.bin"`)
	h.Set("Content-Security-Policy", bodyCSP)
	h.Set("Content-Length", strconv.Itoa(len(l.Body)))
	rw.Write(l.Body) // a client that goes away is no news
}
