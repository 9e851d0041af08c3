package web

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
	"github.com/deadletteroffice/dlo/web/view"
)

const uploadPath = "/schemas/upload"

// previewUpload reads a form with a file, whose changes are shown without making them.
func previewUpload(r *http.Request, in *uploadIn) error {
	err := in.read(r, r.PostForm)
	in.DryRun = "1"
	return err
}

// showUpload returns the page with the changes that a file would make. The file is kept until
// somebody uses it.
func (w *Web) showUpload(r *http.Request, out *uploaded) (templ.Component, error) {
	return view.SchemaUpload(w.uploadPage(r, out)), nil
}

// readKept reads the form that the button on the preview page sends. If the set has changed since
// the preview, it returns errSetChanged.
func (w *Web) readKept(r *http.Request, in *uploadIn) error {
	f, ok := w.uploads.fileOf(r.PostForm.Get("key"), principal(r.Context()).Name)
	if !ok {
		return errNotKept
	}
	*in = f.in
	in.DryRun = ""
	r.PostForm.Set("name", in.Name)
	if _, now := w.Decoder().Types.Current(f.set); now.Version != f.was {
		return errSetChanged
	}
	return nil
}

// afterUpload returns the page of a set whose new version is in use.
func (w *Web) afterUpload(r *http.Request, out *uploaded) string {
	w.uploads.forget(r.PostForm.Get("key"))
	return "/schemas?" + url.Values{"set": {out.change.Set}, "used": {out.change.Version}}.Encode()
}

// useAgain shows a new preview if the set has changed since the last one.
func (w *Web) useAgain(r *http.Request, wrong error) (templ.Component, error) {
	if !errors.Is(wrong, errSetChanged) {
		return w.uploadAgain(r, wrong)
	}
	key := r.PostForm.Get("key")
	f, _ := w.uploads.fileOf(key, principal(r.Context()).Name)
	out, err := w.addTypes(r.Context(), &f.in)
	if err != nil {
		return nil, err
	}
	w.uploads.forget(key)
	p := w.uploadPage(r, out)
	p.Problem = "Nothing was changed: the set has another version now. " +
		"Below is what the file would change in that version."
	return view.SchemaUpload(p), nil
}

var errSetChanged = fmt.Errorf("%w: the set has changed", deadletter.ErrConflict)

// errNotKept is the error for an uploaded file that dlo no longer has when a person wants to use
// it. dlo keeps a file only for a limited time after its preview.
var errNotKept = fmt.Errorf("%w: the file is no longer kept here; choose it again", deadletter.ErrConflict)

// uploadPage returns the page with the changes that a file would make. Unless the file is in use
// already, it keeps the file.
func (w *Web) uploadPage(r *http.Request, out *uploaded) view.SchemaUploadPage {
	p := view.SchemaUploadPage{
		Shell:        w.shell(r, "Upload schemas", view.SectionSchemas),
		Change:       out.change,
		SchemaEffect: out.Body.SchemaEffect,
	}
	if _, was := w.Decoder().Types.Current(p.Set); was.Name != "" {
		p.Was, p.WasAt = was.Version, was.CurrentAt
	}
	if p.Known != descriptor.KnownCurrent {
		p.Key = w.uploads.keep(upload{by: principal(r.Context()).Name, in: out.in, set: p.Set, was: p.Was})
	}
	return p
}

// uploadAgain returns the page of schemas with the mistake beside the form for the upload.
func (w *Web) uploadAgain(r *http.Request, wrong error) (templ.Component, error) {
	text := sentence(wrong, statusOf(wrong))
	var large *http.MaxBytesError
	if errors.As(wrong, &large) {
		text = "the file is above 64 MiB"
	}
	p, err := w.schemasView(r, "")
	p.Upload = view.UploadForm{Name: r.PostForm.Get("name"), Problem: "Nothing was changed: " + text + "."}
	return view.Schemas(p), err
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
