package web

import (
	"net/http"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/go-chi/chi/v5"
)

// needs maps the routes that change something, and routes that show more than the metadata of
// letters to readers, to what a request needs to reach its handler. Handlers then check their
// object with deadletter.Allow. A route for GET that is not listed needs VerbView. Any other route
// that is not listed is denied to everybody.
var needs = map[string]deadletter.Verb{
	"POST /theme":                       deadletter.VerbView,
	"POST /letters/confirm":             deadletter.VerbRequeue,
	"POST /letters/{id}/type":           deadletter.VerbTypes,
	"GET /letters/{id}/edit":            deadletter.VerbEdit,
	"POST /letters/{id}/edit":           deadletter.VerbEdit,
	"POST /letters/{id}/reveal":         deadletter.VerbReveal,
	"POST /operations":                  deadletter.VerbRequeue,
	"POST /operations/{id}/cancel":      deadletter.VerbCancel,
	"POST /operations/{id}/pause":       deadletter.VerbCancel,
	"POST /operations/{id}/resume":      deadletter.VerbCancel,
	"POST /operations/{id}/rate":        deadletter.VerbCancel,
	"POST /queues/pause":                deadletter.VerbGuard,
	"POST /queues/resume":               deadletter.VerbGuard,
	"POST /queues/adopt":                deadletter.VerbAdopt,
	"POST /queues/undo":                 deadletter.VerbAdopt,
	"POST /queues/leave":                deadletter.VerbAdopt,
	"POST /triage":                      deadletter.VerbTriage,
	"POST /triage/undo":                 deadletter.VerbTriage,
	"POST /triage/confirm":              deadletter.VerbTriage,
	"POST /triage/digest":               deadletter.VerbTell,
	"POST /groups/{id}/pause":           deadletter.VerbGuard,
	"POST /groups/{id}/resume":          deadletter.VerbGuard,
	"POST /schemas/bindings":            deadletter.VerbTypes,
	"POST /schemas/picks/{id}/remove":   deadletter.VerbTypes,
	"POST /schemas/upload":              deadletter.VerbTypes,
	"POST /schemas/upload/use":          deadletter.VerbTypes,
	"POST /schemas/remove/confirm":      deadletter.VerbTypes,
	"POST /schemas/remove":              deadletter.VerbTypes,
	"POST /rules/try":                   deadletter.VerbView,
	"POST /rules/apply/confirm":         deadletter.VerbReschedule,
	"POST /rules/apply":                 deadletter.VerbReschedule,
	"POST /rules/overrides":             deadletter.VerbRedirect,
	"POST /rules/overrides/{id}/remove": deadletter.VerbRedirect,
	"POST /brokers/connect":             deadletter.VerbConnect,
	"POST /trial":                       deadletter.VerbTry,
	"POST /store/accept":                deadletter.VerbStore,
	"POST /store/hold":                  deadletter.VerbStore,
	"POST /views":                       deadletter.VerbViews,
	"POST /views/{id}/remove":           deadletter.VerbViews,

	"POST /api/v1/letters/import":             deadletter.VerbImport,
	"POST /api/v1/letters/{id}/reveal":        deadletter.VerbReveal,
	"POST /api/v1/letters/{id}/type":          deadletter.VerbTypes,
	"POST /api/v1/letters/{id}/revisions":     deadletter.VerbEdit,
	"POST /api/v1/operations":                 deadletter.VerbRequeue,
	"PATCH /api/v1/operations/{id}":           deadletter.VerbCancel,
	"POST /api/v1/operations/{id}/pause":      deadletter.VerbCancel,
	"POST /api/v1/operations/{id}/resume":     deadletter.VerbCancel,
	"POST /api/v1/operations/{id}/cancel":     deadletter.VerbCancel,
	"POST /api/v1/views":                      deadletter.VerbViews,
	"DELETE /api/v1/views/{id}":               deadletter.VerbViews,
	"POST /api/v1/overrides":                  deadletter.VerbRedirect,
	"DELETE /api/v1/overrides/{id}":           deadletter.VerbRedirect,
	"POST /api/v1/bindings":                   deadletter.VerbTypes,
	"DELETE /api/v1/bindings/{id}":            deadletter.VerbTypes,
	"POST /api/v1/types":                      deadletter.VerbTypes,
	"DELETE /api/v1/types/{set}":              deadletter.VerbTypes,
	"POST /api/v1/types/match":                deadletter.VerbView,
	"POST /api/v1/rules/test":                 deadletter.VerbView,
	"POST /api/v1/rules/apply":                deadletter.VerbReschedule,
	"POST /api/v1/deploys":                    deadletter.VerbDeploy,
	"POST /api/v1/digest/send":                deadletter.VerbTell,
	"POST /api/v1/topology/plan":              deadletter.VerbView,
	"POST /api/v1/topology/apply":             deadletter.VerbAdopt,
	"POST /api/v1/topology/undo":              deadletter.VerbAdopt,
	"POST /api/v1/topology/leave":             deadletter.VerbAdopt,
	"POST /api/v1/brokers/{name}/connect":     deadletter.VerbConnect,
	"POST /api/v1/trial":                      deadletter.VerbTry,
	"POST /api/v1/queues/pause":               deadletter.VerbGuard,
	"POST /api/v1/queues/resume":              deadletter.VerbGuard,
	"POST /api/v1/groups/decisions":           deadletter.VerbTriage,
	"POST /api/v1/groups/decisions/{id}/undo": deadletter.VerbTriage,
	"PATCH /api/v1/groups/{id}":               deadletter.VerbTriage,
	"POST /api/v1/groups/{id}/merge":          deadletter.VerbTriage,
	"POST /api/v1/groups/{id}/split":          deadletter.VerbTriage,
	"POST /api/v1/groups/{id}/pause":          deadletter.VerbGuard,
	"POST /api/v1/groups/{id}/resume":         deadletter.VerbGuard,
	"POST /api/v1/queues/drain":               deadletter.VerbDrain,
	"POST /api/v1/queues/drains/{id}/stop":    deadletter.VerbDrain,
	"POST /api/v1/store/accept":               deadletter.VerbStore,
	"POST /api/v1/store/hold":                 deadletter.VerbStore,
	"POST /api/v1/annotations":                deadletter.VerbAnnotate,
	"POST /account/password":                  deadletter.VerbView,
	"POST /account/sessions/{id}/end":         deadletter.VerbView,
	"POST /signin/again":                      deadletter.VerbView,
	"GET /api/v1/users":                       deadletter.VerbAccess,
	"POST /api/v1/users":                      deadletter.VerbAccess,
	"POST /api/v1/users/{name}/reset":         deadletter.VerbAccess,
	"DELETE /api/v1/users/{name}":             deadletter.VerbAccess,
	"GET /api/v1/tokens":                      deadletter.VerbAccess,
	"POST /api/v1/tokens":                     deadletter.VerbAccess,
	"DELETE /api/v1/tokens/{name}":            deadletter.VerbAccess,
}

// neededBy returns what a request needs. ok is false for a request that no route takes, so that it
// gets its 404 or 405.
func (w *Web) neededBy(r *http.Request) (v deadletter.Verb, ok bool) {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	at := chi.NewRouteContext()
	if !w.router.Match(at, method, r.URL.Path) {
		return "", false
	}
	v, listed := needs[method+" "+at.RoutePattern()]
	if !listed && method == http.MethodGet {
		v = deadletter.VerbView
	}
	return v, true
}
