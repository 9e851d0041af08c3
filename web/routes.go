package web

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/a-h/templ"
	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/deadletteroffice/dlo/static"
	"github.com/deadletteroffice/dlo/web/view"
)

// routes returns the router with all routes. Every request first passes through handlers in this
// order: headers, recovery, host, cross-origin protection, size, actor, gate. The first four of
// them do not read the store.
func (w *Web) routes() chi.Router {
	r := chi.NewRouter()
	r.Use(w.setHeaders, w.recover, w.hostAllowed, w.sameOrigin, w.limitBody, middleware.GetHead)

	// Anybody may request the health probes. A request for metrics needs a known caller, because
	// metrics contain names of queues.
	r.Get("/healthz", w.healthz)
	r.Get("/readyz", w.readyz)
	if w.Metrics != nil {
		r.With(w.actor, w.gate).Method(http.MethodGet, "/metrics", w.Metrics)
	}
	r.HandleFunc(static.Prefix+"*", files)

	if w.Users != nil {
		r.Group(w.signInRoutes)
	}

	// These are the pages for people with a browser, with or without JavaScript.
	r.Group(func(r chi.Router) {
		r.Use(w.actor, w.gate)
		pages := w.placePages()
		for _, place := range view.Places {
			r.Get(place.Path, w.page(pages[place.Section]))
		}
		r.Get("/account", w.page(w.account))
		r.Get("/access", w.page(w.access))
		r.Post("/access/tokens", w.page(w.addTokenForm))
		r.Post("/access/tokens/revoke", w.act(w.revokeTokenForm))
		r.Post("/view-as", w.viewAs)
		r.Post("/view-as/stop", w.stopViewAs)
		if w.Users != nil {
			r.With(limitPasswordForm).Post("/account/password", w.changePassword)
			r.Post("/account/sessions/{id}/end", w.act(w.endSession))
			r.Post("/access/users", w.page(w.addUserForm))
			r.Post("/access/users/reset", w.page(w.resetUserForm))
			r.Post("/access/users/remove", w.act(w.removeUserForm))
			r.Get("/signin/again", w.page(w.againPage))
			r.With(limitPasswordForm).Post("/signin/again", w.confirmPassword)
		}
		r.Get("/jump", w.act(w.jump))
		r.Get("/palette", w.api(inTurn(w, w.palette)))
		r.Post("/theme", w.theme)
		r.Post("/letters/confirm", w.page(inTurn(w, w.confirm)))
		r.Get("/letters/complete", w.api(inTurn(w, w.complete)))
		r.Get("/letters/export", w.export)
		r.Get("/letters/{id}", w.page(w.letter))
		r.Get("/letters/{id}/body", w.body)
		r.Get("/letters/{id}/copy", w.page(w.byHand))
		r.Post("/letters/{id}/type", w.act(w.pickType))
		r.Get("/letters/{id}/edit", w.page(w.edit))
		r.Post("/letters/{id}/edit", w.page(w.sendEdit))
		r.Post("/letters/{id}/reveal", w.page(w.revealPage))
		r.Post("/operations", w.act(w.startOperation))
		r.Get("/operations/{id}", w.page(w.operation))
		r.Post("/operations/{id}/cancel", w.act(w.control(Control.Cancel)))
		r.Post("/operations/{id}/pause", w.act(w.control(Control.Pause)))
		r.Post("/operations/{id}/resume", w.act(w.control(Control.Resume)))
		r.Post("/operations/{id}/rate", w.act(w.rateOperation))
		r.Get("/audit/export", w.auditExport)
		r.Get("/audit/complete", w.api(w.completeAct))
		r.Get("/queues/one", w.page(w.queue))
		r.Post("/queues/pause", w.act(w.pauseQueue))
		r.Post("/queues/resume", w.act(w.resumeQueue))
		r.Post("/queues/adopt", w.act(w.adoptForm))
		r.Post("/queues/undo", w.act(w.undoPolicyForm))
		r.Post("/queues/leave", w.act(w.leaveForm))
		r.Post("/triage", w.act(w.decideForm))
		r.Post("/triage/undo", w.act(w.undoForm))
		r.Post("/triage/confirm", w.page(w.confirmGroups))
		r.Post("/triage/digest", w.act(w.sendDigestForm))
		r.Post("/channels/test", w.act(w.testChannelForm))
		r.Get("/groups/{id}", w.page(w.groupPage))
		r.Post("/groups/{id}/pause", w.act(w.pauseGroup))
		r.Post("/groups/{id}/resume", w.act(w.resumeGroup))
		r.Post("/schemas/bindings", w.act(w.addBinding))
		r.Post("/schemas/picks/{id}/remove", w.act(w.removePick))
		r.Post("/schemas/upload", w.previewUpload)
		r.Post("/schemas/upload/use", w.page(w.useUpload))
		r.Post("/schemas/remove/confirm", w.page(w.confirmRemoval))
		r.Post("/schemas/remove", w.act(w.removeSchemas))
		r.Post("/rules/try", w.page(w.tryRules))
		r.Post("/rules/apply/confirm", w.confirmApply)
		r.Post("/rules/apply", w.applyWaiting)
		r.Post("/rules/overrides", w.act(w.addOverride))
		r.Post("/rules/overrides/{id}/remove", w.act(w.removeOverride))
		r.Post("/brokers/connect", w.act(w.connectBroker))
		r.Post("/trial", w.act(w.tryForm))
		r.Post("/store/accept", w.act(w.storeForm(Desk.AcceptStore)))
		r.Post("/store/hold", w.act(w.storeForm(Desk.HoldCopy)))
		r.Post("/views", w.act(w.addView))
		r.Post("/views/{id}/remove", w.act(w.removeViewForm))
		r.Get(eventsPath, w.events)
	})

	// This is the API for scripts and the command line. openapi.yaml describes it, and a test
	// compares the description with these routes.
	r.Route("/api/v1", func(r chi.Router) {
		r = r.With(w.actor, w.gate)
		r.Get("/openapi.yaml", w.openAPI)
		r.Get("/letters", w.api(inTurn(w, w.apiLetters)))
		r.Get("/letters/count", w.api(inTurn(w, w.apiCount)))
		r.Get("/letters/facets", w.api(inTurn(w, w.apiFacets)))
		r.Get("/letters/histogram", w.api(inTurn(w, w.apiHistogram)))
		r.Get("/letters/export", w.export)
		r.Post("/letters/import", w.apiImportLetters)
		r.Get("/letters/{id}", w.api(w.apiLetter))
		r.Get("/letters/{id}/body", w.body)
		r.Post("/letters/{id}/reveal", w.api(withInput(w.apiReveal)))
		r.Get("/operations", w.api(w.apiOperations))
		r.Post("/operations", w.api(w.apiStartOperation))
		r.Get("/operations/{id}", w.api(w.apiOperation))
		r.Patch("/operations/{id}", w.api(withInput(w.apiRateOperation)))
		r.Post("/operations/{id}/pause", w.api(w.apiControl(Control.Pause)))
		r.Post("/operations/{id}/resume", w.api(w.apiControl(Control.Resume)))
		r.Post("/operations/{id}/cancel", w.api(w.apiControl(Control.Cancel)))
		r.Get("/views", w.api(withoutInput(w.apiViews)))
		r.Post("/views", w.api(withInput(w.apiAddView)))
		r.Delete("/views/{id}", w.api(w.apiRemoveView))
		r.Get("/overrides", w.api(withoutInput(w.apiOverrides)))
		r.Post("/overrides", w.api(withInput(w.apiAddOverride)))
		r.Delete("/overrides/{id}", w.api(w.apiRemoveOverride))
		r.Post("/letters/{id}/type", w.api(w.apiPickType))
		r.Post("/letters/{id}/revisions", w.api(withInput(w.apiRevise)))
		r.Get("/bindings", w.api(withoutInput(w.apiBindings)))
		r.Post("/bindings", w.api(withInput(w.apiAddBinding)))
		r.Delete("/bindings/{id}", w.api(w.apiRemoveBinding))
		r.Get("/types", w.api(w.apiTypes))
		r.Post("/types", w.apiUploadTypes)
		r.Delete("/types/{set}", w.api(w.apiRemoveTypes))
		r.Get("/types/proto", w.api(w.apiTypeSource))
		r.Post("/types/match", w.api(withoutInput(withInput(w.apiMatchTypes))))
		r.Get("/rules", w.api(withoutInput(w.apiRules)))
		r.Post("/rules/test", w.api(withInput(w.apiTestRules)))
		r.Post("/rules/apply", w.applyRules)
		r.Get("/deploys", w.api(withoutInput(w.apiDeploys)))
		r.Post("/deploys", w.api(withInput(w.apiAddDeploy)))
		r.Get("/digest", w.api(withoutInput(w.apiShowDigest)))
		r.Post("/digest/send", w.api(w.apiSendDigest))
		r.Post("/channels/test", w.api(w.apiTestChannel))
		r.Get("/audit", w.audit)
		r.Get("/brokers", w.api(withoutInput(w.apiBrokers)))
		r.Get("/topology/findings", w.api(withoutInput(w.apiFindings)))
		r.Post("/topology/plan", w.api(withoutInput(w.apiPlan)))
		r.Post("/topology/apply", w.api(withoutInput(withInput(w.apiApply))))
		r.Get("/topology/adopted", w.api(withoutInput(w.apiAdopted)))
		r.Post("/topology/undo", w.api(withoutInput(withInput(w.apiUndoPolicy))))
		r.Post("/topology/leave", w.api(withoutInput(withInput(w.apiLeave))))
		r.Post("/brokers/{name}/connect", w.api(withoutInput(w.apiConnectBroker)))
		r.Get("/trial", w.api(withoutInput(w.apiTrial)))
		r.Post("/trial", w.api(withoutInput(withInput(w.apiTry))))
		r.Get("/queues", w.api(withoutInput(w.apiQueues)))
		r.Post("/queues/pause", w.api(w.apiPauseQueue))
		r.Post("/queues/resume", w.api(w.apiResumeQueue))
		r.Get("/groups", w.api(w.apiGroups))
		r.Get("/groups/decisions", w.api(withoutInput(w.apiDecisions)))
		r.Post("/groups/decisions", w.api(withInput(w.apiDecideGroups)))
		r.Post("/groups/decisions/{id}/undo", w.api(w.apiUndo))
		r.Get("/groups/{id}", w.api(withoutInput(w.apiGroup)))
		r.Patch("/groups/{id}", w.api(w.apiChangeGroup))
		r.Post("/groups/{id}/merge", w.api(w.apiMergeGroups))
		r.Post("/groups/{id}/split", w.api(w.apiSplitGroup))
		r.Post("/groups/{id}/pause", w.api(w.apiPauseGroup))
		r.Post("/groups/{id}/resume", w.api(w.apiResumeGroup))
		r.Get("/queues/drains", w.api(withoutInput(w.apiDrains)))
		r.Post("/queues/drain", w.api(withInput(w.apiStartDrain)))
		r.Post("/queues/drains/{id}/stop", w.api(w.apiStopDrain))
		r.Post("/store/accept", w.api(w.apiStore(Desk.AcceptStore)))
		r.Post("/store/hold", w.api(w.apiStore(Desk.HoldCopy)))
		r.Get("/me", w.api(withoutInput(w.apiMe)))
		r.Get("/tokens", w.api(withoutInput(w.apiTokens)))
		r.Post("/tokens", w.api(withoutInput(withInput(w.apiAddToken))))
		r.Delete("/tokens/{name}", w.api(withoutInput(w.apiRevokeToken)))
		r.Get("/users", w.api(withoutInput(w.apiUsers)))
		r.Post("/users", w.api(withoutInput(withInput(w.apiAddUser))))
		r.Post("/users/{name}/reset", w.api(withoutInput(w.apiResetUser)))
		r.Delete("/users/{name}", w.api(withoutInput(w.apiRemoveUser)))
		r.Post("/annotations", w.api(withoutInput(w.apiAnnotate)))
		r.Get(eventsPath, w.events)
	})

	r.NotFound(w.answerKnown(func(r *http.Request) error { return noSuchAddress(r) }))
	r.MethodNotAllowed(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Allow", strings.Join(w.methods(cmp.Or(r.URL.RawPath, r.URL.Path)), ", "))
		w.answerKnown(func(*http.Request) error { return statusError(http.StatusMethodNotAllowed) })(rw, r)
	})
	return r
}

// answerKnown returns a handler that responds to known callers with the error that errorOf returns.
// Unknown callers get the usual response for unknown callers.
func (w *Web) answerKnown(errorOf func(*http.Request) error) http.HandlerFunc {
	return w.actor(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { w.fail(rw, r, errorOf(r)) })).ServeHTTP
}

// methods returns the HTTP methods that a path accepts.
func (w *Web) methods(path string) []string {
	var list []string
	for _, method := range []string{
		http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPatch, http.MethodDelete,
	} {
		asked := method
		if method == http.MethodHead {
			asked = http.MethodGet
		}
		if w.router.Match(chi.NewRouteContext(), asked, path) {
			list = append(list, method)
		}
	}
	return list
}

// forScripts reports whether errors for a request are sent as problem+json instead of a page.
func forScripts(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/api/") }

// placePages returns the handler of each section in the navigation.
func (w *Web) placePages() map[view.Section]func(*http.Request) (templ.Component, error) {
	return map[view.Section]func(*http.Request) (templ.Component, error){
		view.SectionOverview:   w.overview,
		view.SectionTriage:     w.triage,
		view.SectionLetters:    inTurn(w, w.letters),
		view.SectionOperations: w.operations,
		view.SectionQueues:     w.queues,
		view.SectionSchemas:    w.schemasPage,
		view.SectionRules:      w.rules,
		view.SectionAudit:      w.auditLog,
	}
}
