package web

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/deadletteroffice/dlo/internal/api"
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

// typedFields copies the properties and headers of a form to the page, and adds those that were
// changed to the edit. It returns the values that cannot be parsed.
func typedFields(
	form url.Values, p *view.EditPage, properties deadletter.Properties, in *api.RevisionRequest,
) (refused deadletter.FieldErrors) {
	in.Properties, in.Headers = map[string]string{}, map[string]json.RawMessage{}
	typed := map[string]string{}
	for i, name := range form["property"] {
		if values := form["property_value"]; i < len(values) {
			typed[name] = values[i]
		}
	}
	for i := range p.Properties {
		f := &p.Properties[i]
		value, ok := typed[f.Name]
		if ok && value != f.Was {
			f.Value, in.Properties[f.Name] = value, value
		}
	}
	set := func(name string, value any) {
		in.Headers[name], _ = json.Marshal(deadletter.Typed{Value: value}) // ParseHeader returns what can be encoded
	}
	typedWhole(form, p, properties, in, set)
	refuse := func(name, why string) {
		refused = append(refused, deadletter.FieldError{Field: "header " + deadletter.Visible(name), Why: why})
	}
	names, kinds, values := form["header"], form["header_kind"], form["header_value"]
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
			f.Removed = slices.Contains(form["header_remove"], name)
			switch {
			case f.Removed:
				in.Headers[name] = json.RawMessage("null")
			case values[i] != f.Was:
				f.Value = values[i]
				if v, err := deadletter.ParseHeader(f.Kind, values[i]); err != nil {
					refuse(name, err.Error())
				} else {
					set(name, v)
				}
			}
			continue
		}
		if name == "" && values[i] == "" || kinds[i] != "" {
			continue
		}
		switch {
		case name == "":
			refuse(name, "name the header")
		case known[name] != nil || properties.Headers[name] != nil:
			refuse(name, "there is already a header with that name")
		default:
			set(name, values[i])
		}
		fresh = append(fresh, view.EditField{Name: name, Value: values[i]})
	}
	if len(fresh) > 0 {
		p.Headers = append(p.Headers[:len(p.Headers)-newHeaders], append(fresh, view.EditField{})...)
	}
	if len(in.Headers) > 0 {
		delete(p.Mistakes, "headers") // it is about the headers as received; the edit reports mistakes that remain
	}
	return refused
}

// mistakeText returns what is wrong with a field, as a sentence.
func mistakeText(m deadletter.FieldError) string { return strings.ToUpper(m.Why[:1]) + m.Why[1:] + "." }

// fieldMistakes puts each mistake at its field. If two headers have its name, it is about the last.
func fieldMistakes(p *view.EditPage, refused deadletter.FieldErrors) {
	for _, m := range refused {
		text := mistakeText(m)
		header, isHeader := strings.CutPrefix(m.Field, "header ")
		var at *view.EditField
		for _, list := range [][]view.EditField{p.Properties, p.Headers} {
			for i := range list {
				if f := &list[i]; f.Name == m.Field && f.Label != "" ||
					isHeader && f.Label == "" && f.Name+f.Value != "" && deadletter.Visible(f.Name) == header {
					at = f
				}
			}
		}
		switch {
		case at != nil:
			at.Mistake = text
		case m.Field == "reason":
			p.Mistakes["reason"] = text
		default:
			p.Mistakes["headers"] = m.Field + ": " + text
		}
	}
}
