package web

import (
	"errors"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// submit makes the call of a form, and returns the page that is shown afterwards.
func submit[In, Out any](r *http.Request, a *action[In, Out], f *form[In, Out]) (string, error) {
	if err := r.ParseForm(); err != nil {
		return "", formError(err)
	}
	in := new(In)
	err := fill(reflect.ValueOf(in).Elem(), r)
	var out *Out
	if err == nil {
		out, err = a.handler(r.Context(), in)
	}
	if f.again != nil && (errors.Is(err, deadletter.ErrInvalid) || errors.Is(err, deadletter.ErrConflict)) {
		page, broken := f.again(r, in, err)
		if broken != nil {
			return "", broken
		}
		return "", againError{page, err}
	}
	if err != nil {
		return "", err
	}
	return f.to(r, in, out), nil
}

// fill sets the fields of a call from a form: those of its path, and those of its body by their
// names in JSON.
func fill(in reflect.Value, r *http.Request) error {
	for i := range in.NumField() {
		f := in.Type().Field(i)
		switch name := f.Tag.Get("path"); {
		case f.Name == "Body":
			text, err := api.Marshal(members(f.Type, r))
			if err == nil {
				err = api.UnmarshalStrict(text, in.Field(i).Addr().Interface())
			}
			if err != nil {
				return err
			}
		case name != "":
			value := chi.URLParam(r, name)
			if value == "" {
				value = r.PostFormValue(name)
			}
			in.Field(i).SetString(value)
		case f.Anonymous:
			if err := fill(in.Field(i), r); err != nil {
				return err
			}
		}
	}
	return nil
}

// members returns the members of a JSON object of the type t that a form has.
func members(t reflect.Type, r *http.Request) map[string]any {
	out := map[string]any{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || f.Anonymous || !r.PostForm.Has(name) {
			continue
		}
		text := strings.TrimSpace(strings.ReplaceAll(r.PostFormValue(name), "\r\n", "\n"))
		kind := f.Type
		if kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
		}
		switch kind.Kind() {
		case reflect.Bool:
			out[name] = text != "" && text != "0"
		case reflect.Slice:
			out[name] = strings.Fields(strings.Join(r.PostForm[name], " "))
		case reflect.Int, reflect.Int64, reflect.Float64:
			if n, err := strconv.ParseFloat(text, 64); err == nil {
				out[name] = n
			} else if text != "" {
				out[name] = text
			}
		default:
			out[name] = text
		}
	}
	return out
}
