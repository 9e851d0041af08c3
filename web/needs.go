package web

import (
	"net/http"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/go-chi/chi/v5"
)

// needs contains, for each route, the verb that a caller must be allowed to use. The map contains
// every route that changes something, and every route that shows more of a letter than its
// metadata. A GET route that is not in the map needs VerbView. Any other route that is not in the
// map is denied to everybody.
//
// This check does not know the letter. Therefore the handler then checks the affected letter or
// other object with deadletter.Allow.
var needs = map[string]deadletter.Verb{
	"POST /theme":                       deadletter.VerbView,
	"POST /view-as":                     deadletter.VerbAccess,
	"POST /view-as/stop":                deadletter.VerbView,
	"GET /letters/{id}/body":            deadletter.VerbRead,
	"GET /letters/{id}/copy":            deadletter.VerbRead,
	"GET /letters/export":               deadletter.VerbRead,
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
	"POST /channels/test":               deadletter.VerbTell,
	"POST /groups/{id}/pause":           deadletter.VerbGuard,
	"POST /groups/{id}/resume":          deadletter.VerbGuard,
	"POST /schemas/bindings":            deadletter.VerbTypes,
	"POST /schemas/picks/{id}/remove":   deadletter.VerbTypes,
	"POST /schemas/upload":              deadletter.VerbTypes,
	"POST /schemas/upload/use":          deadletter.VerbTypes,
	"POST /schemas/remove/confirm":      deadletter.VerbTypes,
	"POST /schemas/remove":              deadletter.VerbTypes,
	"POST /rules/try":                   deadletter.VerbRead,
	"POST /rules/apply/confirm":         deadletter.VerbReschedule,
	"POST /rules/apply":                 deadletter.VerbReschedule,
	"POST /rules/overrides":             deadletter.VerbRedirect,
	"POST /rules/overrides/{id}/remove": deadletter.VerbRedirect,
	"POST /brokers/connect":             deadletter.VerbConnect,
	"POST /trial":                       deadletter.VerbTry,
	"POST /store/accept":                deadletter.VerbStore,
	"POST /store/hold":                  deadletter.VerbStore,
	"POST /views":                       deadletter.VerbOwnViews,
	"POST /views/{id}/remove":           deadletter.VerbOwnViews,

	"GET /api/v1/letters/{id}/body":           deadletter.VerbRead,
	"GET /api/v1/letters/export":              deadletter.VerbRead,
	"POST /api/v1/letters/import":             deadletter.VerbImport,
	"POST /api/v1/letters/{id}/reveal":        deadletter.VerbReveal,
	"POST /api/v1/letters/{id}/type":          deadletter.VerbTypes,
	"POST /api/v1/letters/{id}/revisions":     deadletter.VerbEdit,
	"POST /api/v1/operations":                 deadletter.VerbRequeue,
	"PATCH /api/v1/operations/{id}":           deadletter.VerbCancel,
	"POST /api/v1/operations/{id}/pause":      deadletter.VerbCancel,
	"POST /api/v1/operations/{id}/resume":     deadletter.VerbCancel,
	"POST /api/v1/operations/{id}/cancel":     deadletter.VerbCancel,
	"POST /api/v1/views":                      deadletter.VerbOwnViews,
	"DELETE /api/v1/views/{id}":               deadletter.VerbOwnViews,
	"POST /api/v1/overrides":                  deadletter.VerbRedirect,
	"DELETE /api/v1/overrides/{id}":           deadletter.VerbRedirect,
	"POST /api/v1/bindings":                   deadletter.VerbTypes,
	"DELETE /api/v1/bindings/{id}":            deadletter.VerbTypes,
	"POST /api/v1/types":                      deadletter.VerbTypes,
	"DELETE /api/v1/types/{set}":              deadletter.VerbTypes,
	"POST /api/v1/types/match":                deadletter.VerbRead,
	"POST /api/v1/rules/test":                 deadletter.VerbRead,
	"POST /api/v1/rules/apply":                deadletter.VerbReschedule,
	"POST /api/v1/deploys":                    deadletter.VerbDeploy,
	"POST /api/v1/digest/send":                deadletter.VerbTell,
	"POST /api/v1/channels/test":              deadletter.VerbTell,
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
	"GET /access":                             deadletter.VerbAccess,
	"POST /access/users":                      deadletter.VerbAccess,
	"POST /access/users/reset":                deadletter.VerbAccess,
	"POST /access/users/remove":               deadletter.VerbAccess,
	"POST /access/tokens":                     deadletter.VerbAccess,
	"POST /access/tokens/revoke":              deadletter.VerbAccess,
	"GET /api/v1/users":                       deadletter.VerbAccess,
	"POST /api/v1/users":                      deadletter.VerbAccess,
	"POST /api/v1/users/{name}/reset":         deadletter.VerbAccess,
	"DELETE /api/v1/users/{name}":             deadletter.VerbAccess,
	"GET /api/v1/tokens":                      deadletter.VerbAccess,
	"POST /api/v1/tokens":                     deadletter.VerbAccess,
	"DELETE /api/v1/tokens/{name}":            deadletter.VerbAccess,
}

// scoped contains the routes that show and change only what is within the scope of the caller. All
// other routes are open only to callers whose permissions cover all queues. A new route therefore
// discloses nothing to other callers until somebody has examined it and added it here.
//
// TestTwoTeams requests the routes in "scoped" and searches the responses for bytes from outside
// the scope. The route that imports letters is not in "scoped", because its response could disclose
// that a letter outside the scope has the same id.
var scoped = map[string]bool{
	"GET /": true, "GET /triage": true, "GET /letters": true, "GET /operations": true, "GET /queues": true,
	"GET /audit":   true,
	"GET /account": true, "POST /account/password": true, "POST /account/sessions/{id}/end": true,
	"GET /signin/again": true, "POST /signin/again": true,
	"GET /jump": true, "GET /palette": true, "POST /theme": true, "POST /view-as/stop": true, "GET /events": true,
	"POST /views": true, "POST /views/{id}/remove": true,
	"POST /letters/confirm": true, "GET /letters/complete": true, "GET /letters/export": true,
	"GET /letters/{id}":      true,
	"GET /letters/{id}/body": true, "GET /letters/{id}/copy": true, "GET /letters/{id}/edit": true,
	"POST /letters/{id}/edit": true, "POST /letters/{id}/reveal": true,
	"POST /operations": true, "GET /operations/{id}": true, "POST /operations/{id}/cancel": true,
	"POST /operations/{id}/pause": true, "POST /operations/{id}/resume": true, "POST /operations/{id}/rate": true,
	"GET /audit/export": true, "GET /audit/complete": true, "GET /queues/one": true, "POST /queues/pause": true,
	"POST /queues/resume": true,
	"POST /triage":        true, "POST /triage/undo": true, "POST /triage/confirm": true, "GET /groups/{id}": true,
	"POST /groups/{id}/pause": true, "POST /groups/{id}/resume": true,

	"GET /api/v1/openapi.yaml": true, "GET /api/v1/me": true, "GET /api/v1/events": true, "GET /api/v1/brokers": true,
	"GET /api/v1/letters": true, "GET /api/v1/letters/count": true, "GET /api/v1/letters/facets": true,
	"GET /api/v1/letters/histogram": true, "GET /api/v1/letters/export": true,
	"GET /api/v1/letters/{id}": true, "GET /api/v1/letters/{id}/body": true, "POST /api/v1/letters/{id}/reveal": true,
	"POST /api/v1/letters/{id}/revisions": true,
	"GET /api/v1/operations":              true, "POST /api/v1/operations": true, "GET /api/v1/operations/{id}": true,
	"PATCH /api/v1/operations/{id}":      true,
	"POST /api/v1/operations/{id}/pause": true, "POST /api/v1/operations/{id}/resume": true,
	"POST /api/v1/operations/{id}/cancel": true,
	"GET /api/v1/views":                   true, "POST /api/v1/views": true, "DELETE /api/v1/views/{id}": true,
	"GET /api/v1/overrides": true, "POST /api/v1/overrides": true, "DELETE /api/v1/overrides/{id}": true,
	"GET /api/v1/digest": true, "GET /api/v1/audit": true, "GET /api/v1/topology/findings": true,
	"GET /api/v1/queues": true, "POST /api/v1/queues/pause": true, "POST /api/v1/queues/resume": true,
	"GET /api/v1/groups": true, "GET /api/v1/groups/decisions": true, "POST /api/v1/groups/decisions": true,
	"POST /api/v1/groups/decisions/{id}/undo": true, "GET /api/v1/groups/{id}": true,
	"PATCH /api/v1/groups/{id}": true, "POST /api/v1/groups/{id}/merge": true, "POST /api/v1/groups/{id}/split": true,
	"POST /api/v1/groups/{id}/pause": true, "POST /api/v1/groups/{id}/resume": true,
	"POST /api/v1/annotations": true,
}

// neededBy returns the verb that the caller needs for the route of a request. The result "scope"
// reports whether the route shows and changes only what belongs to the queues that the caller may
// see.
func neededBy(r *http.Request) (v deadletter.Verb, scope bool) {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	route := method + " " + chi.RouteContext(r.Context()).RoutePattern()
	v, listed := needs[route]
	if !listed && method == http.MethodGet {
		v = deadletter.VerbView
	}
	return v, scoped[route]
}
