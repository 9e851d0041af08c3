package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/a-h/templ"
	"github.com/go-chi/chi/v5"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/failure"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/web/view"
)

// pathAs parses the id in the path of a request. If the id is not valid, the error says that there
// is no such object. It thus does not disclose which ids are valid.
func pathAs[ID any](text, kind string, parse func(string) (ID, error)) (ID, error) {
	id, err := parse(text)
	if err != nil {
		err = noSuch(kind, text)
	}
	return id, err
}

// LetterPath is the id of a letter in the path of a request.
type LetterPath struct {
	ID string `path:"id"`
}

// readLetter reads the letter whose id is in the path. It returns an error if the principal may not
// see the letter.
func (w *Web) readLetter(ctx context.Context, in LetterPath) (deadletter.Letter, error) {
	id, err := pathAs(in.ID, "letter", deadletter.ParseID)
	if err != nil {
		return deadletter.Letter{}, err
	}
	return w.letterFor(ctx, principal(ctx), id)
}

// letterIn returns the path of a form or a page.
func letterIn(r *http.Request) LetterPath { return LetterPath{chi.URLParam(r, "id")} }

// letterFor reads a letter. It returns an error if the given reader may not see the letter.
func (w *Web) letterFor(ctx context.Context, reader deadletter.Principal, id deadletter.ID) (deadletter.Letter, error) {
	l, err := w.Store.Letter(ctx, id)
	if err != nil {
		return deadletter.Letter{}, err
	}
	return l, deadletter.Allow(reader, deadletter.VerbView, l.Place())
}

// readableLetter reads the letter whose id is in the path of a request. It is for requests that
// show the content of the letter. If the principal may not read the content, it returns an error.
func (w *Web) readableLetter(r *http.Request) (deadletter.Letter, error) {
	l, err := w.readLetter(r.Context(), letterIn(r))
	if err == nil && l.Withheld {
		err = deadletter.Allow(principal(r.Context()), deadletter.VerbRead, l.Place())
	}
	return l, err
}

// letter handles GET /letters/{id}?q=&tab=&layer=&at=. The parameter q is the query of the list
// from which the letter was opened.
func (w *Web) letter(r *http.Request) (templ.Component, error) {
	l, err := w.readLetter(r.Context(), letterIn(r))
	if err != nil {
		return nil, err
	}
	return w.letterPage(r, l, r.URL.Query(), revealed{})
}

// letterPage returns the page of a letter. If the parameter "unmasked" contains a value, the page
// shows this value without its mask.
func (w *Web) letterPage(
	r *http.Request, l deadletter.Letter, form url.Values, unmasked revealed,
) (templ.Component, error) {
	p, err := w.letterView(r, l, form, unmasked)
	if err != nil {
		return nil, err
	}
	if form.Get("peek") != "" {
		return view.LetterPeek(p), nil
	}
	return view.Letter(p), nil
}

func (w *Web) letterView(
	r *http.Request, l deadletter.Letter, form url.Values, shown revealed,
) (view.LetterPage, error) {
	ctx := r.Context()
	p := view.LetterPage{
		Shell: w.shell(r, "Letter "+l.ID.Short(), view.SectionLetters),
		Query: form.Get("q"),
		Tab:   view.ParseTab(form.Get("tab")),
	}
	q, err := query.Parse(p.Query, w.lookOptions())
	if err != nil {
		q, p.Query = query.Query{}, ""
	}
	p.MayReveal = canReveal(principal(r.Context()), l.Origin()) && l.State != deadletter.StatePurged
	if _, looked := q.Split(w.indexedPath); len(looked) == 0 { // otherwise, the neighbours are not known
		if p.Newer, p.Older, err = w.Store.Neighbours(ctx, q, l.ID, orderOf(q)); err != nil {
			return p, err
		}
		if err := w.addPosition(ctx, q, &p, l.ID); err != nil {
			return p, err
		}
	}
	if p.Attempts, err = w.Store.Attempts(ctx, l.ID); err != nil {
		return p, err
	}
	if l.Group != 0 {
		if p.GroupTitle, err = w.Store.GroupTitle(ctx, l.Group); err != nil && !errors.Is(err, deadletter.ErrNotFound) {
			return p, err
		}
		p.GroupTitle, _ = w.Header("", p.GroupTitle)
	}
	if p.Siblings, err = w.Store.Siblings(ctx, &l); err != nil {
		return p, err
	}
	p.Explained = w.explained(ctx, &l)
	if p.Tab == view.TabHistory {
		if p.History, err = w.Store.History(ctx, l.ID); err != nil {
			return p, err
		}
		if err := w.runHeavy(ctx, func() { p.EditDiff = fitDiff(w.Decoder().EditDiff(&l), diffOfMany) }); err != nil {
			return p, err
		}
		if p.Steps, err = w.letterSteps(ctx, &l); err != nil {
			return p, err
		}
	}
	doc, err := w.decode(ctx, &l)
	if err != nil {
		return p, err
	}
	p.MaskedBody, p.MaskedHeaders = w.bytesMasked(doc), map[string]bool{}
	for _, h := range w.maskedHeaders(&l) {
		p.MaskedHeaders[h.name] = true
	}
	p.Said = failure.Join(failure.Read(l.Arrived, l.Inbox, l.ArrivedBy, w.FailureHeaders, w.Header), doc.Failure)
	plain := l
	w.hide(&l)
	p.Links = w.linksOf(&l)
	shown.showHeader(&l, &plain)
	p.Revealed = shown.header
	p.Letter, p.ErrorFrom = l, errorFrom(&l)
	p.Layers, p.Candidates, p.Chosen, p.Tied = layerSpans(doc), candidates(doc), doc.Type, doc.Ranking.Tied
	if p.Types, err = w.typeChoice(ctx, &plain, doc); err != nil {
		return p, err
	}
	switch p.Tab {
	case view.TabDecoded:
		p.Decoded = decodedView(doc, &l, windowOf(form.Get("at")))
		p.RevealedNode = shown.showField(doc)
	case view.TabJSON:
		p.JSON = jsonOf(doc)
	case view.TabRaw:
		p.Raw = raw(doc, &l, p.Query, form.Get("layer"), windowOf(form.Get("at")), p.MaskedBody)
		if shown.bytes {
			if doc, err = w.decodeBy(ctx, w.Decoder().Revealed(), &plain); err != nil {
				return p, err
			}
			p.Raw.Hex = *hexAt(doc, payload.Range{})
		}
	}
	return p, nil
}

const aheadTo = 1000 // maximum number of letters before this one that are counted

// addPosition adds the position of a letter in the list from which it was opened. It adds nothing
// if there was no list, or if very many letters come before the letter.
func (w *Web) addPosition(ctx context.Context, q query.Query, p *view.LetterPage, id deadletter.ID) error {
	if p.Query == "" {
		return nil
	}
	ahead, listed, err := w.Store.Ahead(ctx, q, id, orderOf(q), aheadTo)
	if err != nil {
		return err
	}
	p.Left = !listed
	if listed && ahead < aheadTo {
		p.Position = ahead + 1
		p.Of, p.OfExact, err = w.Store.Count(ctx, q, countedTo)
	}
	return err
}

// errMaskedBody is the error for a request for the bytes of a letter in which values are masked, or
// may be masked. The request then needs the parameter "reveal".
var errMaskedBody = fmt.Errorf(
	"%w: the body has masked values, or it is unknown whether it does; reveal=1 gives its bytes to people who may reveal, and is audited",
	deadletter.ErrForbidden,
)

type bodyIn struct {
	LetterPath
	Reveal string `query:"reveal" enum:"0,1"`
}

// getBody returns the stored bytes. The bytes are those that the consumer got, as a download that
// browsers do not display. A body with masked values is refused unless reveal=1.
func (w *Web) getBody(rw http.ResponseWriter, r *http.Request) {
	l, err := w.readableLetter(r)
	if err == nil {
		err = w.mayHaveBody(r, &l)
	}
	if err != nil {
		w.fail(rw, r, err)
		return
	}
	h := rw.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", `attachment; filename="letter-`+l.ID.Short()+`.bin"`)
	h.Set("Content-Security-Policy", bodyCSP)
	h.Set("Content-Length", strconv.Itoa(len(l.Body)))
	rw.Write(l.Body) // a client that has disconnected needs no report
}

// mayHaveBody returns an error if the request may not get the bytes of a letter. If values in the
// bytes are masked, the request must set the parameter "reveal", and mayHaveBody records the
// reveal.
func (w *Web) mayHaveBody(r *http.Request, l *deadletter.Letter) error {
	form, err := parameters(r, "reveal")
	if err != nil {
		return err
	}
	reveal, err := parseReveal(form.Get("reveal"))
	if err != nil {
		return err
	}
	doc, err := w.decode(r.Context(), l)
	if err != nil || !w.bytesMasked(doc) {
		return err
	}
	if !reveal {
		return errMaskedBody
	}
	return w.record(r.Context(), l, "the whole body")
}

// getLetter returns one letter, all of it. It has the body, decoded where its type is known, the
// attempts, the history, and the result of every rule. Masked values are hidden unless reveal=1.
func (w *Web) getLetter(ctx context.Context, in *struct {
	LetterPath
	Reveal string `query:"reveal" enum:"0,1"`
},
) (*reply[api.Letter], error) {
	l, err := w.readLetter(ctx, in.LetterPath)
	if err != nil {
		return nil, err
	}
	return answer(w.wholeLetter(ctx, l, in.Reveal == "1"))
}

// wholeLetter returns the complete letter. If the parameter "reveal" is true, it includes masked
// values and records the access.
func (w *Web) wholeLetter(ctx context.Context, l deadletter.Letter, reveal bool) (out api.Letter, err error) {
	attempts, err := w.Store.Attempts(ctx, l.ID)
	if err != nil {
		return out, err
	}
	history, err := w.Store.History(ctx, l.ID)
	if err != nil {
		return out, err
	}
	doc, err := w.decode(ctx, &l)
	if err != nil {
		return out, err
	}
	revisions, err := w.Store.Revisions(ctx, l.ID)
	if err != nil {
		return out, err
	}
	siblings, err := w.Store.Siblings(ctx, &l)
	if err != nil {
		return out, err
	}
	steps, err := w.letterSteps(ctx, &l)
	if err != nil {
		return out, err
	}
	plain := l
	masked := w.hide(&l) || w.bytesMasked(doc)
	if reveal && masked {
		if err := w.record(ctx, &l, "the whole letter"); err != nil {
			return out, err
		}
		l.Properties, l.Arrived, l.Annotation = plain.Properties, plain.Arrived, plain.Annotation
		if doc, err = w.decodeBy(ctx, w.Decoder().Revealed(), &plain); err != nil {
			return out, err
		}
	}
	deaths, _ := deadletter.ReadDeaths(l.Arrived.Headers, deadletter.NoOrigin)
	out = api.Letter{
		Letter:       l,
		AttemptsUsed: l.Attempts,
		Properties:   l.Properties,
		Headers:      typed(l.Properties.Headers),
		Arrived:      api.Arrived{Properties: l.Arrived, Headers: typed(l.Arrived.Headers)},
		Body:         &l.Body,
		Decoded:      decodedOf(doc),
		Failure:      l.Annotation,
		Revisions:    each(revisions, api.NewRevision),
		Siblings:     each(siblings, func(s deadletter.Row) deadletter.ID { return s.ID }),
		Candidates:   doc.Ranking.Matches,
		Tied:         doc.Ranking.Tied,
		NotCompared:  doc.Ranking.Left,
		History:      history,
		Attempts:     attempts,
		Deaths:       deaths,
	}
	if steps != nil {
		out.Rules = &steps
	}
	if out.Masked = masked; l.Withheld || !reveal && w.bytesMasked(doc) {
		out.Body = nil
	}
	for _, m := range doc.Ranking.Matches {
		if m.Type == doc.Type {
			out.Decoded.Score = m.Score
		}
	}
	return out, nil
}

func typed(t deadletter.Table) map[string]deadletter.Typed {
	out := make(map[string]deadletter.Typed, len(t))
	for name, value := range t {
		out[name] = deadletter.Typed{Value: value}
	}
	return out
}
