package web

import (
	"fmt"
	"net/http"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/web/view"
)

// byHand handles GET /letters/{id}/copy?as=&q=&reveal=. It returns a letter as text, for people who
// have to handle it by hand.
func (w *Web) byHand(r *http.Request) (templ.Component, error) {
	form := r.URL.Query()
	reveal, err := parseReveal(form.Get("reveal"))
	if err != nil {
		return nil, err
	}
	l, err := w.readableLetter(r)
	if err != nil {
		return nil, err
	}
	p := view.ByHandPage{
		Shell:    w.shell(r, "Copy letter "+l.ID.Short(), view.SectionLetters),
		Letter:   l.ID,
		Query:    form.Get("q"),
		Form:     view.ParseForm(form.Get("as")),
		Revealed: reveal,
	}
	p.MayReveal = canReveal(principal(r.Context()), l.Origin()) && l.State != deadletter.StatePurged
	if p.Form == view.FormJSON {
		whole, err := w.wholeLetter(r.Context(), l, reveal)
		if err != nil {
			return nil, err
		}
		if p.Copy, err = view.JSONCopy(whole); err != nil {
			return nil, err
		}
		p.Masked = whole.Masked
		return view.ByHand(p), nil
	}
	if l.State == deadletter.StatePurged {
		p.Copy.Why = "The letter is purged: nothing of it is left that could be sent."
		return view.ByHand(p), nil
	}
	doc, err := w.decode(r.Context(), &l)
	if err != nil {
		return nil, err
	}
	properties, body := asSent(&l)
	hidden := properties
	p.Masked = w.hideProperties(&hidden) || w.bytesMasked(doc)
	if p.Masked && !reveal {
		return view.ByHand(p), nil
	}
	if p.Masked {
		if err := w.record(r.Context(), &l, fmt.Sprintf("the whole letter, as %s", p.Form)); err != nil {
			return nil, err
		}
	}
	write := view.Curl
	if p.Form == view.FormAdmin {
		write = view.Admin
	}
	p.Copy = write(l.Origin(), properties, body)
	return view.ByHand(p), nil
}

// asSent returns the properties and the body that a requeue of a letter would send, without the
// headers that each attempt adds.
func asSent(l *deadletter.Letter) (deadletter.Properties, []byte) {
	properties, body := l.Current()
	clean := deadletter.Sanitise
	if l.Revised != nil {
		clean = deadletter.Resent
	}
	properties, _ = clean(properties)
	return properties, body
}
