package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
)

// revealIn says which value of a letter a person wants to see unmasked: a field of the body by its
// path, or a header or a property by its name. A page names a field by its position in the tree.
type revealIn struct {
	LetterPath
	Body  api.RevealRequest
	node  string
	bytes bool // the bytes of the body
}

// revealed is one masked value of a letter that dlo shows unmasked, on the page of the letter or in
// a response of the API.
type revealed struct {
	node   *payload.Node // the field of the body, or nil for a header
	at     payload.Position
	header string // the name of the header as the letter has it
	bytes  bool   // all bytes of the body
	value  string
}

// record stores in the audit that somebody sees a masked value. It must be called before the value
// is shown. If it returns an error, the value must not be shown.
func (w *Web) record(ctx context.Context, l *deadletter.Letter, what string) error {
	if err := deadletter.Allow(principal(ctx), deadletter.VerbReveal, l.Place()); err != nil {
		return err
	}
	target := deadletter.Target{Kind: deadletter.TargetLetter, Name: string(l.ID)}
	return w.Store.Record(
		ctx, deadletter.Once(deadletter.ActRevealed, principal(ctx).Name, deadletter.Cut(what, 300), target),
	)
}

// reveal finds a masked value in a letter. It records in the audit that the value is shown.
func (w *Web) reveal(ctx context.Context, l *deadletter.Letter, in *revealIn) (revealed, error) {
	if err := deadletter.Allow(principal(ctx), deadletter.VerbReveal, l.Place()); err != nil {
		return revealed{}, err
	}
	if l.State == deadletter.StatePurged {
		return revealed{}, fmt.Errorf("%w: the letter is purged; nothing of it is left", deadletter.ErrConflict)
	}
	switch fields := in.Body.Field != "" || in.node != ""; {
	case in.bytes:
		return revealed{bytes: true}, w.record(ctx, l, "the whole body")
	case fields == (in.Body.Header != ""):
		return revealed{}, invalid("say what to reveal: give either field or header")
	case fields:
		return w.revealField(ctx, l, in)
	}
	return w.revealHeader(ctx, l, in.Body.Header)
}

func (w *Web) revealField(ctx context.Context, l *deadletter.Letter, in *revealIn) (revealed, error) {
	doc, err := w.decode(ctx, l)
	if err != nil {
		return revealed{}, err
	}
	at := doc.Find(in.Body.Field)
	if in.node != "" {
		var ok bool
		if at, ok = payload.ParsePosition(in.node); !ok {
			return revealed{}, invalid("node is not a place in the tree")
		}
	}
	masked, path := doc.At(at)
	if masked == nil || !masked.Masked {
		return revealed{}, invalid(
			"no field %s of this letter is masked; if the body has no fields, get the body with reveal=1",
			deadletter.Visible(deadletter.Cut(in.Body.Field+in.node, 200)),
		)
	}
	plain, err := w.decodeBy(ctx, w.Decoder().Revealed(), l)
	if err != nil {
		return revealed{}, err
	}
	n, _ := plain.At(at)
	if n == nil {
		return revealed{}, fmt.Errorf(
			"%w: the body is so large that this value is not decoded; get the whole body with reveal=1",
			deadletter.ErrConflict,
		)
	}
	if err := w.record(ctx, l, "field "+path); err != nil {
		return revealed{}, err
	}
	return revealed{node: n, at: at, value: n.Text()}, nil
}

func (w *Web) revealHeader(ctx context.Context, l *deadletter.Letter, name string) (revealed, error) {
	for _, h := range w.maskedHeaders(l) {
		// if the name is masked, only a request for the whole letter shows the header
		if _, named := w.Header("", h.name); h.kind == "header" && named || !strings.EqualFold(h.name, name) {
			continue
		}
		shown, ok := h.value.(string)
		if !ok {
			b, err := json.Marshal(deadletter.Typed{Value: h.value})
			if err != nil {
				return revealed{}, err
			}
			shown = string(b)
		}
		return revealed{header: h.name, value: shown}, w.record(ctx, l, h.kind+" "+h.name)
	}
	return revealed{}, invalid(
		"no header or property %s of this letter is masked", deadletter.Visible(deadletter.Cut(name, 100)),
	)
}

func (w *Web) maskedText(name, value string) (string, bool) {
	if value == "" {
		return value, false
	}
	return w.Header(name, value)
}

// maskedHeader is a header or a property with its value, of which at least a part is masked.
type maskedHeader struct {
	kind, name string // kind is "header" or "property"
	value      any
}

// maskedHeaders returns the headers and properties of a letter that have masked values.
func (w *Web) maskedHeaders(l *deadletter.Letter) (list []maskedHeader) {
	for _, p := range []*deadletter.Properties{&l.Properties, &l.Arrived} {
		for _, text := range p.ShortStrings() {
			if _, hidden := w.maskedText(text.Dashed(), *text.Value); hidden {
				list = append(list, maskedHeader{"property", text.Dashed(), *text.Value})
			}
		}
		for name, value := range p.Headers {
			if _, hidden := w.hideTable(deadletter.Table{name: value}, ""); hidden {
				list = append(list, maskedHeader{"header", name, value})
			}
		}
	}
	return list
}

// showHeader puts one unmasked header back into the masked letter l. The parameter "unmasked" is
// the same letter without masks.
func (v revealed) showHeader(l, unmasked *deadletter.Letter) {
	for _, p := range []struct{ hidden, plain *deadletter.Properties }{
		{&l.Properties, &unmasked.Properties},
		{&l.Arrived, &unmasked.Arrived},
	} {
		was := p.plain.ShortStrings()
		for i, text := range p.hidden.ShortStrings() {
			if text.Dashed() == v.header {
				*text.Value = *was[i].Value
			}
		}
		if value, ok := p.plain.Headers[v.header]; ok && v.header != "" {
			p.hidden.Headers[v.header] = value
		}
	}
}

// revealValue returns one masked value. Needs the right to reveal. The field or header is noted in
// the history of the letter and in the audit, its value is not. Of a value with fields below it the
// answer is their JSON as text; of a long one what the page shows, and all of it is had with
// reveal=1 of the letter.
func (w *Web) revealValue(ctx context.Context, in *revealIn) (*revealOut, error) {
	l, err := w.readLetter(ctx, in.LetterPath)
	if err != nil {
		return nil, err
	}
	v, err := w.reveal(ctx, &l, in)
	return &revealOut{api.Revealed{Value: v.value}, l, v}, err
}

// revealOut is an unmasked value, and the letter for the page on which it is shown.
type revealOut struct {
	Body   api.Revealed
	letter deadletter.Letter
	shown  revealed
}

// readReveal reads what only the page of a letter can reveal.
func readReveal(r *http.Request, in *revealIn) error {
	in.node, in.bytes = r.PostForm.Get("node"), r.PostForm.Get("bytes") == "1"
	return nil
}

// showRevealed returns the page of a letter with one masked value shown, or with the bytes of a
// body that has masked values.
func (w *Web) showRevealed(r *http.Request, out *revealOut) (templ.Component, error) {
	return w.letterPage(r, out.letter, r.PostForm, out.shown)
}

// parseReveal parses the parameter "reveal" of a GET request. Only programs and dlo's own pages may
// set it, because each such request is recorded in the audit. The handler sameOrigin has already
// rejected requests from other sites.
func parseReveal(text string) (bool, error) {
	switch text {
	case "", "0":
		return false, nil
	case "1":
		return true, nil
	}
	return false, invalid("reveal is 1, or absent")
}

// showField puts one unmasked field into the masked document, and returns its position.
func (v revealed) showField(doc *payload.Document) string {
	if v.node == nil {
		return ""
	}
	if n, _ := doc.At(v.at); n != nil {
		*n = *v.node
	}
	return v.at.String()
}

// canReveal reports whether a person may see masked values. The result is also true for a person
// who first has to enter the password again.
func canReveal(p deadletter.Principal, o deadletter.Origin) bool {
	err := deadletter.Allow(p, deadletter.VerbReveal, o)
	return err == nil || errors.Is(err, deadletter.ErrAgain)
}
