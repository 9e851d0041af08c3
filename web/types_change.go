package web

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
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
	v := api.Upload{
		Change:        c,
		SchemaEffect:  e,
		DryRun:        dryRun,
		AddedCount:    len(c.Added),
		ChangedCount:  len(c.Changed),
		RemovedCount:  len(c.Removed),
		ConflictCount: len(c.Conflicts),
	}
	v.Added, v.Removed = c.Added[:min(namedParts, len(c.Added))], c.Removed[:min(namedParts, len(c.Removed))]
	v.Changed = c.Changed[:min(namedParts, len(c.Changed))]
	v.Conflicts = c.Conflicts[:min(namedParts, len(c.Conflicts))]
	return v
}

type uploadIn struct {
	Name     string `query:"name" maxLength:"200"`
	FileName string `query:"filename"`
	DryRun   string `query:"dry_run" enum:"0,1"`
	file     []byte
}

// Resolve reads the file in a call of the API.
func (in *uploadIn) Resolve(ctx huma.Context) []error {
	r, _ := humachi.Unwrap(ctx)
	if err := in.read(r, r.URL.Query()); err != nil {
		return []error{err}
	}
	return nil
}

// read reads the file in a request, and the other fields of its form.
func (in *uploadIn) read(r *http.Request, form url.Values) (err error) {
	if in.file, err = readUpload(r, form); err != nil {
		return err
	}
	in.Name, in.FileName, in.DryRun = form.Get("name"), form.Get("filename"), form.Get("dry_run")
	if !slices.Contains([]string{"", "0", "false", "1", "true", "on"}, in.DryRun) {
		return invalid("dry_run is 1 or 0")
	}
	return nil
}

// uploaded is the response to a file with schemas: 201, or 200 if it was a dry run or changed
// nothing. The other fields are for the page that shows what the file would change.
type uploaded struct {
	Status   int
	Location string `header:"Location"`
	Body     api.Upload
	change   descriptor.Change
	in       uploadIn
}

func (uploaded) status() int { return http.StatusCreated }

// addTypes takes in a set of schemas. The body is the file, or a form with the same parameters and
// the file as the part file. name is that of the set; else it is the file's, without what stands
// behind its dot. With dry_run, it only says what the file would change. The answer is 200 for a
// dry run, or if the content is already the newest version.
func (w *Web) addTypes(ctx context.Context, in *uploadIn) (*uploaded, error) {
	done, err := w.loading.waitForPlace(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	dryRun := in.DryRun != "" && in.DryRun != "0" && in.DryRun != "false"
	c, e, err := w.Schemas.Upload(ctx, principal(ctx), in.Name, in.file, in.FileName, dryRun)
	out := &uploaded{http.StatusCreated, typesPath, uploadOf(c, e, dryRun), c, *in}
	if dryRun || c.Known == descriptor.KnownCurrent {
		out.Status, out.Location = http.StatusOK, ""
	}
	return out, err
}

// readUpload reads the file in a request. It adds the other fields of its form to those given.
func readUpload(r *http.Request, form url.Values) ([]byte, error) {
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case err != nil && r.Header.Get("Content-Type") != "", kind == "application/json":
		return nil, statusError(http.StatusUnsupportedMediaType)
	case kind != "multipart/form-data":
		return readFile(r.Body)
	case params["boundary"] == "":
		return nil, invalid("the form has no boundary")
	}
	parts, err := r.MultipartReader()
	if err != nil {
		return nil, invalid("the form cannot be read")
	}
	var file []byte
	for n := 0; ; n++ {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, invalidUnlessTooLarge(err, "the form breaks off")
		}
		switch name := part.FormName(); {
		case n > 10:
			return nil, invalid("the form has more than 10 parts")
		case name == "file":
			if file != nil {
				return nil, invalid("one file at a time; put several into a zip file")
			}
			if file, err = readFile(part); err != nil {
				return nil, err
			}
			if form.Get("filename") == "" {
				form.Set("filename", part.FileName())
			}
		case name == "name" || name == "filename" || name == "dry_run":
			value, err := io.ReadAll(io.LimitReader(part, 2000))
			if err != nil {
				return nil, invalidUnlessTooLarge(err, "the form breaks off")
			}
			form.Set(name, string(value))
		default:
			return nil, invalid("there is no field %q here", deadletter.Visible(deadletter.Cut(name, 40)))
		}
	}
	if file == nil {
		return nil, invalid("the form has no file")
	}
	return file, nil
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

type removalIn struct {
	Set    string `path:"set"`
	DryRun string `query:"dry_run" enum:"0,1"`
}

// removeTypes takes an uploaded set with all its versions out of use. A set of the directory or of
// a server is not removed so: delete the file, or the server from the configuration. Letters of its
// types are read again. With dry_run, it only says how many letters that concerns.
func (w *Web) removeTypes(ctx context.Context, in *removalIn) (*reply[api.Removal], error) {
	dryRun := in.DryRun == "1"
	e, err := w.Schemas.Remove(ctx, principal(ctx), in.Set, dryRun)
	return answer(api.Removal{Set: in.Set, DryRun: dryRun, SchemaEffect: e}, err)
}
