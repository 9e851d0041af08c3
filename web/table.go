package web

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"runtime"
	"strings"
	"time"

	"github.com/a-h/templ"
	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"github.com/go-chi/chi/v5"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// need says who may take a route: whoever may use the verb, in all queues, or in some of them if
// the route shows and changes only what is in the scope of the caller.
//
// This check does not know the letter. Therefore the handler then checks the affected letter or
// other object with deadletter.Allow. TestTwoTeams requests the scoped routes and searches the
// responses for bytes from outside the scope.
type need struct {
	verb   deadletter.Verb
	scoped bool
}

// everywhere is the need of a route that is open only to callers whose grants cover all queues.
func everywhere(v deadletter.Verb) need { return need{verb: v} }

// within is the need of a route that shows and changes only what is in the scope of the caller.
func within(v deadletter.Verb) need { return need{verb: v, scoped: true} }

// call is a row of the table: it adds its call of the API, and the forms of pages that do the same.
type call interface {
	mount(w *Web, doc huma.API, pages chi.Router)
}

// action is a call: a method, a path below the address of the API, who may make it, and its
// handler. The name of the handler is the id of the operation in the OpenAPI document, and its
// comment and those of its types are the texts there.
type action[In, Out any] struct {
	method, path string
	need         need
	name         string
	handler      func(context.Context, *In) (*Out, error)
	stream       http.HandlerFunc // in place of handler
	turn         bool             // see inTurn
	forms        []*form[In, Out]
}

// form is a form of a page that makes a call. Its fields have the names of the parameters and of
// the members of the body. A field "place" has several of them, encoded as in a URL: browsers
// change line ends in other fields.
type form[In, Out any] struct {
	path string
	need need // that of the call, unless the page of the form shows more
	// the page that is shown afterwards, unless the form names one in "return"
	back string
	read func(r *http.Request, in *In) error                      // what the names do not say; nil: nothing
	to   func(r *http.Request, out *Out) string                   // in place of back
	show func(r *http.Request, out *Out) (templ.Component, error) // in place of to
	// shows the form again if its call is refused (formMistake); nil: the page of an error
	again func(r *http.Request, err error) (templ.Component, error)
}

// row returns the row of a call.
func row[In, Out any](
	method, path string, need need, handler func(context.Context, *In) (*Out, error),
) action[In, Out] {
	return action[In, Out]{method: method, path: path, need: need, name: nameOf(handler), handler: handler}
}

// plain returns the row of a call whose handler reads or writes a stream. The types In and Out only
// describe it in the OpenAPI document.
func plain[In, Out any](method, path string, need need, handler http.HandlerFunc) action[In, Out] {
	return action[In, Out]{method: method, path: path, need: need, name: nameOf(handler), stream: handler}
}

// nameOf returns the name of a method.
func nameOf(handler any) string {
	full := runtime.FuncForPC(reflect.ValueOf(handler).Pointer()).Name()
	return strings.TrimSuffix(full[strings.LastIndexByte(full, '.')+1:], "-fm")
}

// inTurn returns a row whose handler reads many letters, so that it waits until few enough others
// are running.
func (a action[In, Out]) inTurn() action[In, Out] {
	a.turn = true
	return a
}

// form adds a form to a row. After the call, the browser goes back to the page that the form names,
// or to this one, in which {id} is that of the path.
func (a action[In, Out]) form(path, back string) action[In, Out] {
	a.forms = append(a.forms, &form[In, Out]{path: path, need: a.need, back: back})
	return a
}

// everywhere makes the last form need a grant for all queues.
func (a action[In, Out]) everywhere() action[In, Out] {
	a.forms[len(a.forms)-1].need.scoped = false
	return a
}

// reading sets what reads the last form in addition to the names of its fields.
func (a action[In, Out]) reading(read func(r *http.Request, in *In) error) action[In, Out] {
	a.forms[len(a.forms)-1].read = read
	return a
}

// going sets what returns the page after the last form.
func (a action[In, Out]) going(to func(r *http.Request, out *Out) string) action[In, Out] {
	a.forms[len(a.forms)-1].to = to
	return a
}

// showing sets what returns the page that is the response to the last form.
func (a action[In, Out]) showing(show func(r *http.Request, out *Out) (templ.Component, error)) action[In, Out] {
	a.forms[len(a.forms)-1].show = show
	return a
}

// orAgain sets what shows the last form again.
func (a action[In, Out]) orAgain(again func(r *http.Request, err error) (templ.Component, error)) action[In, Out] {
	a.forms[len(a.forms)-1].again = again
	return a
}

func (a action[In, Out]) mount(w *Web, doc huma.API, pages chi.Router) {
	op := huma.Operation{
		OperationID:      a.name,
		Method:           a.method,
		Path:             a.path,
		MaxBodyBytes:     -1, // limitBody has a limit
		BodyReadTimeout:  30 * time.Second,
		SkipValidateBody: true, // UnmarshalStrict and the handlers do it
	}
	if s, ok := any(new(Out)).(interface{ status() int }); ok {
		op.DefaultStatus = s.status()
	}
	op.Metadata = map[string]any{mountKey: mounted(func(op *huma.Operation, run func(huma.Context)) http.Handler {
		serve := a.stream
		if serve == nil {
			serve = w.handle(op, a.turn, run)
		}
		return w.actor(w.gate(a.need)(serve))
	})}
	huma.Register(doc, op, func(ctx context.Context, in *In) (*Out, error) {
		out, err := a.handler(ctx, in)
		if err != nil {
			failed(ctx, err)
			return nil, nil
		}
		return out, nil
	})
	for _, f := range a.forms {
		pages.With(w.actor, w.gate(f.need)).Post(f.path, w.page(func(r *http.Request) (templ.Component, error) {
			return submit(r, &a, f)
		}))
	}
}

// These are the forms of responses. A handler without one returns nothing, and its status is 204.
type (
	reply[T any] struct{ Body T }

	// created is the response for a new object, with the address of the object.
	created[T any] struct {
		Location string `header:"Location"`
		Body     T
	}

	// accepted is the response to a request that starts work which continues after the response,
	// with the address of the work.
	accepted[T any] struct {
		Location string `header:"Location"`
		Body     T
	}

	// tagged is a response with an entity tag. A client can send this tag in the If-Match header of
	// a later change.
	tagged[T any] struct {
		ETag string `header:"ETag"`
		Body T
	}

	none struct{}
)

func (created[T]) status() int  { return http.StatusCreated }
func (accepted[T]) status() int { return http.StatusAccepted }

// answer returns a response with a value. It passes the error of the function that made the value.
func answer[T any](v T, err error) (*reply[T], error) { return &reply[T]{v}, err }

// mount adds the calls to routers: those of the API, and those of the forms of pages. It returns
// the description of the API.
func (w *Web) mount(api, pages chi.Router) *huma.OpenAPI {
	doc := huma.NewAPI(huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI:  "3.1.0",
			Info:     &apiInfo,
			Servers:  []*huma.Server{{URL: apiPath}},
			Security: []map[string][]string{{"token": {}}, {}}, // a dlo without tokens needs none
			Components: &huma.Components{
				Schemas: newSchemas(),
				SecuritySchemes: map[string]*huma.SecurityScheme{
					"token": {Type: "http", Scheme: "bearer", Description: "a token of dlo, such as dlo_..."},
				},
			},
		},
		Formats: map[string]huma.Format{
			"application/json":         {Marshal: encodeJSON, Unmarshal: decodeJSON},
			"application/problem+json": {Marshal: func(io.Writer, any) error { return nil }}, // see failed
		},
		DefaultFormat:                "application/json",
		RejectUnknownQueryParameters: true,
	}, mounting{api})
	for _, c := range w.calls() {
		c.mount(w, doc, pages)
	}
	return doc.OpenAPI()
}

const mountKey = "mount"

// mounting is the adapter through which huma adds calls to a router.
type mounting struct{ chi.Router }

func (m mounting) Handle(op *huma.Operation, handler func(huma.Context)) {
	m.Method(op.Method, op.Path, op.Metadata[mountKey].(mounted)(op, handler))
}

type mounted func(op *huma.Operation, run func(huma.Context)) http.Handler

// handle serves a call with a handler of huma. No other code handles the errors of such calls.
func (w *Web) handle(op *huma.Operation, turn bool, handler func(huma.Context)) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		var failure error
		run := func(ctx context.Context) error {
			r := r.WithContext(context.WithValue(ctx, failureKey{}, &failure))
			handler(humachi.NewContext(op, r, &unlessFailed{rw, &failure}))
			return failure
		}
		err := wellFormed(op, r)
		switch {
		case err != nil:
		case turn:
			err = w.list(r.Context(), principal(r.Context()), run)
		default:
			err = run(r.Context())
		}
		if err != nil {
			w.fail(rw, r, err)
		}
	}
}

// wellFormed checks what huma does not: that the parameters can be read, and that a body is JSON.
func wellFormed(op *huma.Operation, r *http.Request) error {
	if _, err := url.ParseQuery(r.URL.RawQuery); err != nil {
		return invalid("the parameters cannot be read: a semicolon or a percent sign in a value must be escaped")
	}
	if op.RequestBody != nil {
		return isJSON(r)
	}
	return nil
}

// isJSON checks the media type of a body.
func isJSON(r *http.Request) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return statusError(http.StatusUnsupportedMediaType)
	}
	return nil
}

type failureKey struct{}

// failed notes the error of a call, in place of a response.
func failed(ctx context.Context, err error) { *ctx.Value(failureKey{}).(*error) = err }

// unlessFailed drops the response that huma writes for a call that has failed.
type unlessFailed struct {
	http.ResponseWriter
	failure *error
}

func (u *unlessFailed) WriteHeader(code int) {
	if *u.failure == nil {
		u.ResponseWriter.WriteHeader(code)
	}
}

func (u *unlessFailed) Write(b []byte) (int, error) {
	if *u.failure != nil {
		return len(b), nil
	}
	return u.ResponseWriter.Write(b)
}

func (u *unlessFailed) Unwrap() http.ResponseWriter { return u.ResponseWriter }

func decodeJSON(b []byte, into any) error { return api.UnmarshalStrict(b, into) }

func encodeJSON(to io.Writer, v any) error {
	text, err := api.Marshal(v)
	if err == nil {
		_, err = to.Write(append(text, '\n'))
	}
	return err
}

// problemOf is the type of errors in the OpenAPI document.
type problemOf struct{ api.Problem }

func (problemOf) Error() string             { return "" }
func (problemOf) GetStatus() int            { return 0 }
func (problemOf) ContentType(string) string { return "application/problem+json" }

// huma tells mistakes in parameters and bodies through these variables only.
func init() {
	huma.DefaultArrayNullable = false
	huma.NewError = func(int, string, ...error) huma.StatusError { return &problemOf{} }
	huma.NewErrorWithContext = func(ctx huma.Context, code int, text string, errs ...error) huma.StatusError {
		failed(ctx.Context(), refusalOf(code, text, errs))
		return &problemOf{}
	}
}

// refusalOf returns the error for a request that huma refuses.
func refusalOf(code int, text string, errs []error) error {
	for _, err := range errs {
		if statusOf(err) < http.StatusInternalServerError {
			return err
		}
		if detail, ok := errors.AsType[*huma.ErrorDetail](err); ok {
			where, name, _ := strings.Cut(detail.Location, ".")
			switch {
			case detail.Message == "unknown query parameter":
				return invalid("there is no parameter %q here", deadletter.Visible(deadletter.Cut(name, 40)))
			case where == "body":
				text = strings.TrimPrefix(detail.Message, deadletter.ErrInvalid.Error()+": ")
			default:
				text = name + ": " + detail.Message
			}
			break
		}
	}
	if code == http.StatusInternalServerError || code == http.StatusRequestTimeout {
		text = "the request broke off"
	}
	return invalid("%s", deadletter.Visible(deadletter.Cut(text, 300)))
}
