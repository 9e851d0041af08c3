package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/danielgtaylor/huma/v2"

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

// annotationsIn is one annotation, or an array of them.
type annotationsIn struct {
	each []json.RawMessage
	many bool
}

// Schema describes the JSON. deadletter.ReadAnnotation ignores members that it does not know.
func (annotationsIn) Schema(r huma.Registry) *huma.Schema {
	one := r.Schema(reflect.TypeFor[api.Annotation](), true, "")
	return &huma.Schema{AnyOf: []*huma.Schema{one, {Type: huma.TypeArray, Items: one}}}
}

func (in *annotationsIn) UnmarshalJSON(body []byte) error {
	if in.many = body[0] == '['; !in.many {
		in.each = []json.RawMessage{slices.Clone(body)}
		return nil
	}
	switch err := json.Unmarshal(body, &in.each); {
	case err != nil:
		return err
	case len(in.each) == 0 || len(in.each) > annotationsMany:
		return fmt.Errorf("an array has 1 to %d annotations", annotationsMany)
	}
	return nil
}

// addAnnotations says why messages were rejected, as their consumers do beside the reject. One
// annotation, or an array of them: all are stored, or none. Each is joined to the letter of the
// death that it names by dlo_token, else message_id, else body_sha256, whichever comes first,
// within 15 minutes; queue, exchange and routing_key must fit too where they are said. One with a
// queue or a token is of one death, any other of every letter with that key. The same said again
// within the window is the same annotation, so a call that nobody knows the end of is sent again.
// Members that are not described are ignored; empty ones are not said. message is kept to 4 KiB,
// stack to 16 KiB. A queue of the broker takes the same (docs/consumers.md).
func (w *Web) addAnnotations(ctx context.Context, r *struct{ Body annotationsIn }) (*reply[deadletter.Annotated], error) {
	in := &r.Body
	list := make([]deadletter.Annotation, len(in.each))
	for i, one := range in.each {
		var err error
		if list[i], err = deadletter.ReadAnnotation(one); err == nil {
			err = w.annotationPlace(ctx, &list[i])
		}
		var refused deadletter.FieldErrors
		if errors.As(err, &refused) && in.many {
			for k := range refused {
				refused[k].Field = fmt.Sprintf("[%d].%s", i, refused[k].Field)
			}
			err = refused
		}
		if err == nil {
			err = deadletter.Allow(principal(ctx), deadletter.VerbAnnotate, deadletter.Origin{
				Broker: list[i].Broker,
				VHost:  list[i].VHost,
				Queue:  list[i].Queue,
			})
		}
		if err != nil {
			return nil, err
		}
	}
	return answer(w.Reports.Annotate(ctx, list))
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
