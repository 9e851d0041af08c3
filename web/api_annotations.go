package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Annotator accepts annotations. In these, consumers report why they rejected messages.
type Annotator interface {
	Annotate(ctx context.Context, list []deadletter.Annotation) (deadletter.Annotated, error)
}

const (
	annotationsPath = "/api/v1/annotations"
	maxAnnotations  = 16 << 20 // maximum number of bytes of one request
	annotationsMany = 1000     // maximum number of annotations in one request
)

// apiAnnotate handles POST /annotations with one object or an array of them. It stores either all
// annotations or none. If an element of an array is not valid, the error contains the index of the
// element. An annotation that repeats a recent one is not stored again.
func (w *Web) apiAnnotate(r *http.Request) (any, error) {
	raw, err := rawAnnotations(r)
	if err != nil {
		return nil, err
	}
	list := make([]deadletter.Annotation, len(raw.each))
	for i, one := range raw.each {
		if list[i], err = deadletter.ReadAnnotation(one); err == nil {
			err = w.annotationPlace(r.Context(), &list[i])
		}
		var refused deadletter.FieldErrors
		if errors.As(err, &refused) && raw.many {
			for k := range refused {
				refused[k].Field = fmt.Sprintf("[%d].%s", i, refused[k].Field)
			}
			err = refused
		}
		if err == nil {
			err = deadletter.Allow(principal(r), deadletter.VerbAnnotate, deadletter.Origin{
				Broker: list[i].Broker,
				VHost:  list[i].VHost,
				Queue:  list[i].Queue,
			})
		}
		if err != nil {
			return nil, err
		}
	}
	switch {
	case w.draining():
		return nil, errStopping
	case w.Reports == nil:
		return nil, invalid("this server takes no annotations")
	}
	sum, err := w.Reports.Annotate(r.Context(), list)
	return api.Annotated{New: sum.New, Again: sum.Again, Joined: sum.Joined}, err
}

// annotationsRead is the JSON body of a request that sends annotations: one annotation or an array.
type annotationsRead struct {
	each []json.RawMessage
	many bool
}

func rawAnnotations(r *http.Request) (annotationsRead, error) {
	var out annotationsRead
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return out, statusError(http.StatusUnsupportedMediaType)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return out, invalidUnlessTooLarge(err, "the request broke off")
	}
	body = bytes.TrimSpace(body)
	if out.many = len(body) > 0 && body[0] == '['; !out.many {
		out.each = []json.RawMessage{body}
		return out, nil
	}
	switch err := json.Unmarshal(body, &out.each); {
	case err != nil:
		return out, invalid("the JSON cannot be read")
	case len(out.each) == 0 || len(out.each) > annotationsMany:
		return out, invalid("an array has 1 to %d annotations", annotationsMany)
	}
	return out, nil
}

// annotationPlace sets the broker and the vhost of an annotation if they are missing. It uses the
// first configured broker that matches the given values.
func (w *Web) annotationPlace(ctx context.Context, a *deadletter.Annotation) error {
	for _, b := range w.brokers(ctx) {
		if (a.Broker == "" || a.Broker == b.Name) && (a.VHost == "" || a.VHost == b.VHost) {
			a.Broker, a.VHost = b.Name, b.VHost
			return nil
		}
	}
	if a.Broker != "" {
		return deadletter.FieldErrors{
			{Field: "broker", Why: "there is no such broker in the configuration, or not with this vhost"},
		}
	}
	return deadletter.FieldErrors{{Field: "vhost", Why: "no broker of the configuration has such a vhost"}}
}

func failureOf(f *deadletter.Failure) *api.Failure {
	if f == nil {
		return nil
	}
	return &api.Failure{
		By:      f.By,
		Type:    f.Type,
		Message: f.Message,
		Stack:   f.Stack,
		Service: f.Service,
		Version: f.Version,
	}
}

// hideFailure masks the values in the annotation of a letter. It reports whether anything was
// masked.
func (w *Web) hideFailure(l *deadletter.Letter) bool {
	if l.Annotation == nil {
		return false
	}
	f, masked := *l.Annotation, false
	for _, text := range []*string{&f.Type, &f.Message, &f.Stack, &f.Service, &f.Version} {
		shown, hidden := w.Header("", *text)
		*text, masked = shown, masked || hidden
	}
	l.Annotation = &f
	return masked
}
