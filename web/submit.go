package web

import (
	"cmp"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"time"

	"github.com/a-h/templ"
	"github.com/go-chi/chi/v5"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// submit makes the call of a form, and returns the page that is shown afterwards.
func submit[In, Out any](r *http.Request, a *action[In, Out], f *form[In, Out]) (templ.Component, error) {
	if err := readForm(r); err != nil {
		return nil, err
	}
	in := new(In)
	err := fill(reflect.ValueOf(in).Elem(), r)
	if err == nil && f.read != nil {
		err = f.read(r, in)
	}
	var out *Out
	if err == nil {
		out, err = a.handler(r.Context(), in)
	}
	switch {
	case err == nil && f.show != nil:
		return f.show(r, out)
	case err == nil && f.to != nil:
		return nil, movedError{f.to(r, out)}
	case err == nil:
		return nil, movedError{backTo(r, strings.ReplaceAll(f.back, "{id}", chi.URLParam(r, "id")))}
	case f.again != nil && formMistake(err):
		page, broken := f.again(r, err)
		if broken != nil {
			return nil, broken
		}
		return page, err
	}
	return nil, err
}

// backTo returns the local path in the form field "return". If the field is empty, it returns the
// given fallback.
func backTo(r *http.Request, fallback string) string {
	if to := localPath(r.PostFormValue("return")); to != "/" {
		return to
	}
	return fallback
}

// formMistake reports whether a form is shown again after an error.
func formMistake(err error) bool {
	return errors.Is(err, deadletter.ErrInvalid) || errors.Is(err, deadletter.ErrConflict) ||
		errors.Is(err, deadletter.ErrForbidden) && !errors.Is(err, deadletter.ErrDenied) ||
		errors.As(err, new(*http.MaxBytesError))
}

// readForm parses a form, with what its field "place" has.
func readForm(r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return formError(err)
	}
	place, err := url.ParseQuery(strings.Join(r.PostForm["place"], "&"))
	if err != nil {
		return invalid("the form does not say which queue is meant")
	}
	for name, list := range r.PostForm {
		for i := range list { // browsers send line breaks as CR LF
			r.PostForm[name][i] = strings.ReplaceAll(list[i], "\r\n", "\n")
		}
	}
	maps.Copy(r.PostForm, place)
	return nil
}

// fill sets the fields of a call from a form: those of its path, and those of its body by their
// names in JSON.
func fill(in reflect.Value, r *http.Request) error {
	for _, f := range reflect.VisibleFields(in.Type()) {
		into := in.FieldByIndex(f.Index)
		switch name := f.Tag.Get("path"); {
		case f.Name == "Body":
			return setMembers(into, r.PostForm)
		case name != "":
			into.SetString(cmp.Or(chi.URLParam(r, name), r.PostForm.Get(name)))
		}
	}
	return nil
}

// setMembers sets the members of a JSON object that a form has. The values stay as they are, also
// if they are not UTF-8. What is to be a number and is none is left out. So is what is unchanged,
// if the form says what a member was in a field such as was_owner: somebody else may have changed
// it meanwhile.
func setMembers(object reflect.Value, form url.Values) error {
	for _, f := range reflect.VisibleFields(object.Type()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		list := form[name]
		if was := form["was_"+name]; name == "" || len(list) == 0 || len(was) > 0 && was[0] == list[0] {
			continue
		}
		into := object.FieldByIndex(f.Index)
		n, err := number(list[0])
		if into.Kind() == reflect.Pointer {
			if into.Type().Elem().Kind() == reflect.Float64 && err != nil {
				continue
			}
			into.Set(reflect.New(into.Type().Elem()))
			into = into.Elem()
		}
		switch into.Interface().(type) {
		case bool:
			into.SetBool(list[0] != "")
		case []string:
			into.Set(reflect.ValueOf(list))
		case int, int64:
			into.SetInt(int64(n))
		case float64:
			into.SetFloat(n)
		case time.Time, time.Duration:
			text, _ := api.Marshal(list[0]) // a text can always be encoded
			if err = api.UnmarshalStrict(text, into.Addr().Interface()); err != nil {
				return invalid("%s: %s", name, err)
			}
		default:
			if into.Kind() == reflect.String {
				into.SetString(list[0])
			}
		}
	}
	return nil
}
