package web

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/web/view"
)

// auditKinds are the kinds that the filter offers; one that a link names and that is not here is
// asked for all the same.
var auditKinds = []string{"requeue", "discard", "restore", "hold", "release", "purge", "cancelled", "paused", "resumed", "stopped", "done", "rate", "redirect", "redirect removed", "rules applied", "revealed", "retention"}

// auditForm reads the filter of a page; mistakes names the fields that cannot be read.
func auditForm(r *http.Request) (typed view.AuditForm, filter deadletter.AuditFilter, mistakes map[string]string) {
	form := r.URL.Query()
	typed = view.AuditForm{
		Actor: strings.TrimSpace(form.Get("actor")), Kind: form.Get("kind"), Through: form.Get("through"), Since: form.Get("since"), Before: form.Get("before"), After: form.Get("after"),
	}
	mistakes = map[string]string{}
	filter = deadletter.AuditFilter{Actor: typed.Actor, Kind: typed.Kind, Through: typed.Through, After: typed.After, Limit: pageRows}
	for name, field := range map[string]struct {
		text string
		into *time.Time
	}{"since": {typed.Since, &filter.Since}, "before": {typed.Before, &filter.Before}} {
		if *field.into = moment(field.text); field.text != "" && field.into.IsZero() {
			mistakes[name] = "A time is written 2026-11-20T09:00."
		}
	}
	return typed, filter, mistakes
}

// auditLog is GET /audit?actor=&kind=&through=&since=&before=&after=.
func (w *Web) auditLog(r *http.Request) (templ.Component, error) {
	f, filter, mistakes := auditForm(r)
	p := view.AuditPage{Shell: w.shell(r, "Audit log", view.SectionAudit), Filter: f, Kinds: auditKinds, Mistakes: mistakes, Restore: restorable(w.Restore)}
	if f.Kind != "" && !slices.Contains(p.Kinds, f.Kind) {
		p.Kinds = append(slices.Clone(p.Kinds), f.Kind)
	}
	if len(p.Mistakes) > 0 {
		return view.Audit(p), invalid("the filter has a mistake")
	}
	var err error
	if p.Entries, p.Next, err = w.Store.Audit(r.Context(), filter); err != nil {
		return nil, err
	}
	return view.Audit(p), nil
}

// auditExport is GET /audit/export with the filter of the page: all its entries as CSV.
func (w *Web) auditExport(rw http.ResponseWriter, r *http.Request) {
	_, filter, mistakes := auditForm(r)
	if len(mistakes) > 0 {
		w.fail(rw, r, invalid("a time of the filter cannot be read"))
		return
	}
	filter.After = ""
	w.auditCSV(rw, r, filter)
}
