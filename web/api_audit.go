package web

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Audit is the record of what people, and dlo by itself, did.
type Audit interface {
	// Audit returns a page, newest first, and the cursor of the next, "" at the end.
	Audit(ctx context.Context, f deadletter.AuditFilter) ([]deadletter.AuditEntry, string, error)
}

func apiAuditOf(e deadletter.AuditEntry) api.AuditEntry {
	return api.AuditEntry{ID: e.ID, At: e.At.UTC(), Kind: e.Kind, Actor: e.Actor, Through: e.Through, Operation: operationName(e.Operation), Total: e.Total, Query: e.Query, Detail: e.Detail}
}

// auditFilter reads the parameters that narrow the audit.
func auditFilter(form url.Values) (deadletter.AuditFilter, error) {
	f := deadletter.AuditFilter{Actor: form.Get("actor"), Kind: form.Get("kind"), Through: form.Get("through"), After: form.Get("after")}
	var err error
	if text := form.Get("operation"); text != "" {
		if f.Operation, err = deadletter.ParseOperationID(text); err != nil {
			return f, err
		}
	}
	if f.Since, err = instant(form, "since"); err != nil {
		return f, err
	}
	if f.Before, err = instant(form, "before"); err != nil {
		return f, err
	}
	f.Limit, err = limitOf(form)
	return f, err
}

// instant reads a parameter that is a time; zero when it is absent.
func instant(form url.Values, name string) (time.Time, error) {
	text := form.Get(name)
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, invalid("%s is a time such as 2026-11-20T14:00:00Z", name)
	}
	return at, nil
}

var auditParameters = []string{"actor", "kind", "through", "operation", "since", "before", "limit", "after", "format"}

// audit is GET /audit?actor=&kind=&through=&operation=&since=&before=&limit=&after=&format=: a page
// as JSON, or all of it as CSV.
func (w *Web) audit(rw http.ResponseWriter, r *http.Request) {
	form, err := parameters(r, auditParameters...)
	if err != nil {
		w.fail(rw, r, err)
		return
	}
	f, err := auditFilter(form)
	if err != nil {
		w.fail(rw, r, err)
		return
	}
	switch form.Get("format") {
	case "", "json":
		w.api(func(r *http.Request) (any, error) { return w.auditPage(r.Context(), f) })(rw, r)
	case "csv":
		w.auditCSV(rw, r, f)
	default:
		w.fail(rw, r, invalid("format is json or csv"))
	}
}

func (w *Web) auditPage(ctx context.Context, f deadletter.AuditFilter) (any, error) {
	list, next, err := w.Store.Audit(ctx, f)
	return api.Audit{Entries: each(list, apiAuditOf), Next: next}, err
}

// auditCSV writes every entry of a filter, page by page.
func (w *Web) auditCSV(rw http.ResponseWriter, r *http.Request, f deadletter.AuditFilter) {
	f.Limit = exportPage
	list, next, err := w.Store.Audit(r.Context(), f)
	if err != nil {
		w.fail(rw, r, err)
		return
	}
	out := startStream(rw, "text/csv; charset=utf-8; header=present", "audit.csv")
	table := newCSV(out)
	table.row("time", "what", "who", "through", "operation", "letters", "query", "detail")
	for {
		for _, e := range list {
			v := apiAuditOf(e)
			letters := ""
			if v.Operation != "" {
				letters = strconv.Itoa(v.Total)
			}
			table.row(v.At.Format(time.RFC3339), v.Kind, v.Actor, v.Through, v.Operation, letters, v.Query, v.Detail)
		}
		if err := table.flush(); err != nil || !out.flush() {
			return
		}
		if f.After = next; next == "" {
			return
		}
		if list, next, err = w.Store.Audit(r.Context(), f); err != nil {
			w.abort(r, err)
		}
	}
}
