package web

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
)

const (
	typesPath  = "/api/v1/types"
	matchPath  = "/api/v1/types/match"
	maxUpload  = 64 << 20
	namedParts = 500 // maximum number of entries in each list of a response; the numbers in it count all of them
)

func uploadOf(c descriptor.Change, e deadletter.SchemaEffect, dryRun bool) api.Upload {
	return api.Upload{
		Set:           c.Set,
		Version:       c.Version,
		DryRun:        dryRun,
		Known:         c.Known,
		TypeCount:     e.Types,
		Files:         e.Files,
		Letters:       e.Letters,
		Sampled:       e.Sampled,
		Readable:      e.Readable,
		AddedCount:    len(c.Added),
		ChangedCount:  len(c.Changed),
		RemovedCount:  len(c.Removed),
		ConflictCount: len(c.Conflicts),
		Added:         append([]string{}, c.Added[:min(namedParts, len(c.Added))]...),
		Removed:       append([]string{}, c.Removed[:min(namedParts, len(c.Removed))]...),
		Changed: each(c.Changed[:min(namedParts, len(c.Changed))], func(t descriptor.TypeChange) api.TypeChange {
			return api.TypeChange{Type: t.Type, Differences: t.Differences, More: t.More}
		}),
		Conflicts: each(c.Conflicts[:min(namedParts, len(c.Conflicts))], func(t descriptor.Conflict) api.TypeChange {
			return api.TypeChange{Type: t.Type, Set: t.Set, Differences: t.Differences, More: t.More}
		}),
	}
}

// apiUploadTypes handles POST /types?name=&filename=&dry_run=1. The body is the file, or a form
// with the same parameters and the file as the part "file". The response is 201 with the changes.
// It is 200 for a dry run, or if the content is already the newest version.
func (w *Web) apiUploadTypes(rw http.ResponseWriter, r *http.Request) {
	w.api(func(r *http.Request) (any, error) {
		form, err := parameters(r, "name", "filename", "dry_run")
		if err != nil {
			return nil, err
		}
		schemas, err := w.schemas()
		if err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(patient{r.Body, http.NewResponseController(rw)})
		file, form, err := readUpload(r, form)
		if err != nil {
			return nil, err
		}
		dryRun, err := dryRunOf(form)
		switch {
		case err != nil:
			return nil, err
		case w.draining() && !dryRun:
			return nil, errStopping
		}
		done, err := w.loading.waitForPlace(r.Context())
		if err != nil {
			return nil, err
		}
		defer done()
		c, e, err := schemas.Upload(r.Context(), principal(r), form.Get("name"), file, form.Get("filename"), dryRun)
		if err != nil {
			return nil, err
		}
		out := uploadOf(c, e, dryRun)
		if dryRun || c.Known == descriptor.KnownCurrent {
			return out, nil
		}
		return created{out, typesPath}, nil
	})(rw, r)
}

// readUpload reads the file in a request. It adds the parameters of the form to those of the URL.
func readUpload(r *http.Request, form url.Values) ([]byte, url.Values, error) {
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case err != nil && r.Header.Get("Content-Type") != "", kind == "application/json":
		return nil, nil, statusError(http.StatusUnsupportedMediaType)
	case kind != "multipart/form-data":
		file, err := readFile(r.Body)
		return file, form, err
	case params["boundary"] == "":
		return nil, nil, invalid("the form has no boundary")
	}
	parts, err := r.MultipartReader()
	if err != nil {
		return nil, nil, invalid("the form cannot be read")
	}
	var file []byte
	for n := 0; ; n++ {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, invalidUnlessTooLarge(err, "the form breaks off")
		}
		switch name := part.FormName(); {
		case n > 10:
			return nil, nil, invalid("the form has more than 10 parts")
		case name == "file":
			if file != nil {
				return nil, nil, invalid("one file at a time; put several into a zip file")
			}
			if file, err = readFile(part); err != nil {
				return nil, nil, err
			}
			if form.Get("filename") == "" {
				form.Set("filename", part.FileName())
			}
		case name == "name" || name == "filename" || name == "dry_run":
			value, err := io.ReadAll(io.LimitReader(part, 2000))
			if err != nil {
				return nil, nil, invalidUnlessTooLarge(err, "the form breaks off")
			}
			form.Set(name, string(value))
		default:
			return nil, nil, invalid("there is no field %q here", deadletter.Visible(deadletter.Cut(name, 40)))
		}
	}
	if file == nil {
		return nil, nil, invalid("the form has no file")
	}
	return file, form, nil
}

// readFile reads a file. The caller has limited the size of the file.
func readFile(from io.Reader) ([]byte, error) {
	b, err := io.ReadAll(from)
	if err != nil {
		return nil, invalidUnlessTooLarge(err, "the file breaks off")
	}
	return b, nil
}

// invalidUnlessTooLarge returns err unchanged if err says that a body is too large. Otherwise, it
// returns the given text as the error of an invalid request.
func invalidUnlessTooLarge(err error, text string) error {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return err
	}
	return invalid("%s", text)
}

func dryRunOf(form url.Values) (bool, error) {
	switch form.Get("dry_run") {
	case "", "0", "false":
		return false, nil
	case "1", "true", "on":
		return true, nil
	}
	return false, invalid("dry_run is 1 or 0")
}

// apiRemoveTypes handles DELETE /types/{set}?dry_run=1.
func (w *Web) apiRemoveTypes(r *http.Request) (any, error) {
	form, err := parameters(r, "dry_run")
	if err != nil {
		return nil, err
	}
	dryRun, err := dryRunOf(form)
	if err != nil {
		return nil, err
	}
	name := pathName(r, "set")
	schemas, err := w.schemas()
	switch {
	case err != nil:
		return nil, err
	case w.draining() && !dryRun:
		return nil, errStopping
	}
	e, err := schemas.Remove(r.Context(), principal(r), name, dryRun)
	return api.Removal{Set: name, DryRun: dryRun, TypeCount: e.Types, Letters: e.Letters}, err
}
