package web

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/web/view"
)

// editedProperties lists the properties that people can edit on the page.
var editedProperties = []struct{ name, label string }{
	{"content_type", "content-type"},
	{"type", "type"},
	{"message_id", "message-id"},
	{"correlation_id", "correlation-id"},
	{"reply_to", "reply-to"},
	{"app_id", "app-id"},
	{"priority", "priority"},
	{"expiration", "expiration, milliseconds"},
}

const newHeaders = 2 // number of empty rows for new headers in the form

// editFields adds the properties that a person can edit to the page. It reports whether other
// people see any of them masked.
func (w *Web) editFields(p *view.EditPage, basis *deadletter.Letter) bool {
	sent, _ := asSent(basis)
	hidden := sent
	masked := w.hideProperties(&hidden)
	values := map[string]string{}
	for _, s := range sent.ShortStrings() {
		values[s.Name] = *s.Value
	}
	if sent.Priority > 0 {
		values["priority"] = strconv.Itoa(int(sent.Priority))
	}
	for _, f := range editedProperties {
		p.Properties = append(p.Properties, view.EditField{
			Name:  f.name,
			Label: f.label,
			Value: values[f.name],
			Was:   values[f.name],
		})
	}
	for _, name := range sent.EditableHeaders() {
		text, ok := oneLine(name, sent.Headers[name])
		if !ok {
			p.Whole = append(p.Whole, wholeHeader(name, sent.Headers[name]))
			continue
		}
		p.Headers = append(p.Headers, view.EditField{
			Name:  name,
			Value: text,
			Was:   text,
			Kind:  deadletter.HeaderKind(sent.Headers[name]),
		})
	}
	shortenHeaders(p)
	if err := deadletter.Publishable(sent); err != nil {
		p.Mistakes["headers"] = "The properties cannot be sent as they are: " + err.Error() + "."
	}
	for range newHeaders {
		p.Headers = append(p.Headers, view.EditField{})
	}
	return masked
}

// typedFields copies the properties and headers of a form to the page, and returns them as a change
// of properties. The second result is false if a value cannot be parsed.
func (w *Web) typedFields(
	r *http.Request, p *view.EditPage, properties deadletter.Properties,
) (e deadletter.PropertyEdit, valid bool) {
	e, valid = deadletter.PropertyEdit{
		Properties: map[string]string{},
		Headers:    map[string]any{},
		Revised:    p.Revision > 0,
	}, true
	typed := map[string]string{}
	for i, name := range r.PostForm["property"] {
		if values := r.PostForm["property_value"]; i < len(values) {
			typed[name] = values[i]
		}
	}
	for i := range p.Properties {
		f := &p.Properties[i]
		value, ok := typed[f.Name]
		if ok && value != f.Was {
			f.Value, e.Properties[f.Name] = value, value
		}
	}
	// this mistake was about the headers as received; the edit reports mistakes that remain
	delete(p.Mistakes, "headers")
	typedWhole(r, p, properties, &e)
	names, kinds, values := r.PostForm["header"], r.PostForm["header_kind"], r.PostForm["header_value"]
	known := map[string]*view.EditField{}
	var fresh []view.EditField
	for i := range p.Headers {
		if f := &p.Headers[i]; f.Kind != "" {
			known[f.Name] = f
		}
	}
	for i, name := range names {
		if i >= len(values) || i >= len(kinds) {
			break
		}
		if f := known[name]; f != nil && kinds[i] != "" {
			f.Removed = slices.Contains(r.PostForm["header_remove"], name)
			switch {
			case f.Removed:
				e.Headers[name] = deadletter.RemoveHeader
			case values[i] != f.Was:
				f.Value = values[i]
				v, err := deadletter.ParseHeader(f.Kind, values[i])
				if err != nil {
					f.Mistake, valid = err.Error()+".", false
				}
				e.Headers[name] = v
			}
			continue
		}
		if name == "" && values[i] == "" || kinds[i] != "" {
			continue
		}
		f := view.EditField{Name: name, Value: values[i]}
		switch {
		case name == "":
			f.Mistake, valid = "Name the header.", false
		case known[name] != nil || properties.Headers[name] != nil:
			f.Mistake, valid = "There is already a header with that name.", false
		default:
			e.Headers[name] = values[i]
		}
		fresh = append(fresh, f)
	}
	if len(fresh) > 0 {
		p.Headers = append(p.Headers[:len(p.Headers)-newHeaders], append(fresh, view.EditField{})...)
	}
	return e, valid
}

// mistakeText returns what is wrong with a field, as a sentence.
func mistakeText(m deadletter.FieldError) string { return strings.ToUpper(m.Why[:1]) + m.Why[1:] + "." }

// fieldMistakes puts each mistake at its field.
func fieldMistakes(p *view.EditPage, refused deadletter.FieldErrors) {
	for _, m := range refused {
		text := mistakeText(m)
		header, isHeader := strings.CutPrefix(m.Field, "header ")
		placed := false
		for _, list := range [][]view.EditField{p.Properties, p.Headers} {
			for i := range list {
				if f := &list[i]; f.Name == m.Field && f.Label != "" ||
					isHeader && f.Label == "" && deadletter.Visible(f.Name) == header {
					f.Mistake, placed = text, true
				}
			}
		}
		if !placed {
			p.Mistakes["headers"] = m.Field + ": " + text
		}
	}
}
