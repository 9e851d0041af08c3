package web

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/web/view"
)

const uploadPath = "/schemas/upload"

// previewUpload handles POST /schemas/upload. It shows the changes that a file would make, without
// making them. The file is kept until useUpload uses it.
func (w *Web) previewUpload(rw http.ResponseWriter, r *http.Request) {
	w.page(func(r *http.Request) (templ.Component, error) {
		r.Body = io.NopCloser(patient{r.Body, http.NewResponseController(rw)})
		file, form, err := readUpload(r, url.Values{})
		if err != nil {
			return w.uploadAgain(r, form.Get("name"), err)
		}
		f := upload{by: principal(r.Context()).Name, name: form.Get("name"), fileName: form.Get("filename"), file: file}
		p, err := w.uploadPage(r, f)
		if err != nil {
			return w.uploadAgain(r, f.name, err)
		}
		if p.Known != "current" {
			f.was = p.Was
			p.Key = w.uploads.keep(f)
		}
		return view.SchemaUpload(p), nil
	})(rw, r)
}

// useUpload handles POST /schemas/upload/use, which the button on the preview page sends. If the
// set has changed since the preview, useUpload shows a new preview.
func (w *Web) useUpload(r *http.Request) (templ.Component, error) {
	key := r.PostFormValue("key")
	f, ok := w.uploads.fileOf(key, principal(r.Context()).Name)
	if !ok {
		return w.uploadAgain(r, "", errNotKept)
	}
	p, err := w.uploadPage(r, f)
	if err != nil {
		return w.uploadAgain(r, f.name, err)
	}
	if p.Was != f.was {
		f.was = p.Was
		w.uploads.forget(key)
		p.Key, p.Problem = w.uploads.keep(
			f,
		), "Nothing was changed: the set has another version now. Below is what the file would change in that version."
		return view.SchemaUpload(p), fmt.Errorf("%w: the set has changed", deadletter.ErrConflict)
	}
	done, err := w.loading.waitForPlace(r.Context())
	if err != nil {
		return nil, err
	}
	defer done()
	_, _, err = w.Schemas.Upload(r.Context(), principal(r.Context()), f.name, f.file, f.fileName, false)
	if err != nil {
		return w.uploadAgain(r, f.name, err)
	}
	w.uploads.forget(key)
	return nil, movedError{"/schemas?" + url.Values{"set": {p.Set}, "used": {p.Version}}.Encode()}
}

// errNotKept is the error for an uploaded file that dlo no longer has when a person wants to use
// it. dlo keeps a file only for a limited time after its preview.
var errNotKept = fmt.Errorf("%w: the file is no longer kept here; choose it again", deadletter.ErrConflict)

// uploadPage returns the page with the changes that a file would make.
func (w *Web) uploadPage(r *http.Request, f upload) (view.SchemaUploadPage, error) {
	done, err := w.loading.waitForPlace(r.Context())
	if err != nil {
		return view.SchemaUploadPage{}, err
	}
	defer done()
	c, e, err := w.Schemas.Upload(r.Context(), principal(r.Context()), f.name, f.file, f.fileName, true)
	if err != nil {
		return view.SchemaUploadPage{}, err
	}
	p := view.SchemaUploadPage{
		Shell:        w.shell(r, "Upload schemas", view.SectionSchemas),
		Change:       c,
		SchemaEffect: e,
	}
	if _, was := w.Decoder().Types.Current(c.Set); was.Name != "" {
		p.Was, p.WasAt = was.Version, was.CurrentAt
	}
	return p, nil
}

// uploadAgain returns the page of schemas with the mistake beside the form for the upload. If the
// error is internal, uploadAgain returns that error and no page.
func (w *Web) uploadAgain(r *http.Request, name string, wrong error) (templ.Component, error) {
	text := sentence(wrong, statusOf(wrong))
	var large *http.MaxBytesError
	if errors.As(wrong, &large) {
		text = "the file is above 64 MiB"
	}
	if text == "" {
		return nil, wrong
	}
	p, err := w.schemasView(r, "")
	if err != nil {
		return nil, err
	}
	p.Upload = view.UploadForm{Name: name, Problem: "Nothing was changed: " + text + "."}
	return view.Schemas(p), wrong
}

// previewRemoval makes a form say what the removal of a set would do, instead of removing it.
func previewRemoval(_ *http.Request, in *removalIn) error {
	in.DryRun = "1"
	return nil
}

// showRemoval returns the page that says how many letters the removal of a set would affect.
func (w *Web) showRemoval(r *http.Request, plan *reply[api.Removal]) (templ.Component, error) {
	return view.SchemaRemove(view.SchemaRemovePage{
		Shell:        w.shell(r, "Remove a set", view.SectionSchemas),
		Set:          plan.Body.Set,
		SchemaEffect: plan.Body.SchemaEffect,
	}), nil
}
