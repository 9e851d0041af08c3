package web

import (
	"net/http"

	"github.com/a-h/templ"
	"github.com/go-chi/chi/v5"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/web/view"
)

// pages adds the pages and forms for people with a browser, with or without JavaScript.
func (w *Web) pages(r chi.Router) {
	get := func(path string, n need, h http.HandlerFunc) { r.With(w.actor, w.gate(n)).Get(path, h) }
	post := func(path string, n need, h http.HandlerFunc) { r.With(w.actor, w.gate(n)).Post(path, h) }
	pages := w.placePages()
	for _, place := range view.Places {
		page := pages[place.Section]
		get(place.Path, page.need, w.page(page.handler))
	}
	get("/account", within(deadletter.VerbView), w.page(w.account))
	get("/access", everywhere(deadletter.VerbAccess), w.page(w.access))
	post("/view-as", everywhere(deadletter.VerbAccess), w.page(w.viewAs))
	post("/view-as/stop", within(deadletter.VerbView), w.page(w.stopViewAs))
	password := func(f func(*http.Request) (templ.Component, error)) http.HandlerFunc {
		return limitPasswordForm(w.page(parsed(f))).ServeHTTP
	}
	if w.Users != nil {
		post("/account/password", within(deadletter.VerbView), password(w.changePassword))
		post("/account/sessions/{id}/end", within(deadletter.VerbView), w.page(w.endSession))
		get("/signin/again", within(deadletter.VerbView), w.page(w.againPage))
		post("/signin/again", within(deadletter.VerbView), password(w.confirmPassword))
	}
	get("/settings", everywhere(deadletter.VerbRead), w.page(w.settings))
	get("/glossary", within(deadletter.VerbView), w.page(w.glossary))
	get("/jump", within(deadletter.VerbView), w.page(w.jump))
	get("/palette", within(deadletter.VerbView), w.json(inTurn(w, w.palette)))
	post("/theme", within(deadletter.VerbView), w.page(parsed(w.theme)))
	post("/letters/confirm", within(deadletter.VerbRequeue), w.page(inTurn(w, w.confirm)))
	get("/letters/complete", within(deadletter.VerbView), w.json(inTurn(w, w.complete)))
	get("/letters/export", within(deadletter.VerbRead), w.exportLetters)
	get("/letters/{id}", within(deadletter.VerbView), w.page(w.letter))
	get("/letters/{id}/body", within(deadletter.VerbRead), w.getBody)
	get("/letters/{id}/copy", within(deadletter.VerbRead), w.page(w.byHand))
	get("/letters/{id}/edit", within(deadletter.VerbEdit), w.page(w.edit))
	get("/operations/{id}", within(deadletter.VerbView), w.page(w.operation))
	get("/audit/export", within(deadletter.VerbView), w.auditExport)
	get("/audit/complete", within(deadletter.VerbView), w.json(w.completeAct))
	get("/connection", everywhere(deadletter.VerbView), w.page(w.connection))
	get("/queues/one", within(deadletter.VerbView), w.page(w.queue))
	post("/triage/confirm", within(deadletter.VerbTriage), w.page(parsed(w.confirmGroups)))
	get("/groups/{id}", within(deadletter.VerbView), w.page(w.groupPage))
	get(eventsPath, within(deadletter.VerbView), w.watchEvents)
}

// placePages returns the page of each section in the navigation.
func (w *Web) placePages() map[view.Section]place {
	some, all := within(deadletter.VerbView), everywhere(deadletter.VerbView)
	return map[view.Section]place{
		view.SectionOverview:   {some, w.overview},
		view.SectionTriage:     {some, w.triage},
		view.SectionLetters:    {some, inTurn(w, w.letters)},
		view.SectionOperations: {some, w.operations},
		view.SectionQueues:     {some, w.queues},
		view.SectionSchemas:    {all, w.schemasPage},
		view.SectionRules:      {all, w.rules},
		view.SectionAudit:      {some, w.auditLog},
	}
}

type place struct {
	need    need
	handler func(*http.Request) (templ.Component, error)
}
