package web

import (
	"errors"
	"net/http"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/web/view"
)

// addOverrideForm handles POST /rules/overrides. If the form has mistakes, it shows each one beside
// its field.
func (w *Web) addOverrideForm(r *http.Request) (string, error) {
	if err := r.ParseForm(); err != nil {
		return "", formError(err)
	}
	p, err := w.rulesPage(r)
	if err != nil {
		return "", err
	}
	field := func(name string) string { return strings.TrimSpace(r.PostFormValue(name)) }
	p.Form = view.OverrideForm{
		Place:  r.PostFormValue("place"),
		Queue:  field("queue"),
		To:     field("to"),
		Reason: field("reason"),
	}
	o := deadletter.Override{Queue: p.Form.Queue, To: p.Form.To, Reason: p.Form.Reason}
	for _, place := range p.Places {
		// Forms send line breaks as CR LF.
		if len(p.Places) == 1 || place.Value() == strings.ReplaceAll(p.Form.Place, "\r\n", "\n") {
			o.Broker, o.VHost, p.Form.Place = place.Broker, place.VHost, place.Value()
		}
	}
	if o.Broker == "" {
		p.Mistakes["place"] = "Choose the broker and vhost of the queue."
	}
	for name, queue := range map[string]string{"queue": o.Queue, "to": o.To} {
		switch {
		case queue == "":
			p.Mistakes[name] = "Name a queue."
		case len(queue) > 255:
			p.Mistakes[name] = "The name of a queue has at most 255 bytes."
		}
	}
	if o.To != "" && o.To == o.Queue {
		p.Mistakes["to"] = "That is the same queue."
	}
	if len(o.Reason) > maxReasonText {
		p.Mistakes["reason"] = "A reason has at most 500 bytes."
	}
	if len(p.Mistakes) > 0 {
		return "", againError{view.Rules(p), invalid("the form has a mistake")}
	}
	_, err = w.Desk.Redirect(r.Context(), principal(r.Context()), o)
	for refusal, name := range map[error]string{deadletter.ErrInvalid: "to", deadletter.ErrConflict: "queue"} {
		if errors.Is(err, refusal) {
			p.Mistakes[name] = sentence(err, statusOf(err))
			return "", againError{view.Rules(p), err}
		}
	}
	return "/rules", err
}

// removeOverrideForm handles POST /rules/overrides/{id}/remove.
func (w *Web) removeOverrideForm(r *http.Request) (string, error) {
	in := numberIn(r)
	_, err := w.removeOverride(r.Context(), &in)
	return "/rules", err
}
