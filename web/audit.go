package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/web/view"
)

// auditParameters lists the URL parameters that filter the audit. Each of them adds one term to the
// query.
var auditParameters = []struct {
	name  string
	field query.Field
}{
	{"actor", query.Who},
	{"kind", query.Action},
	{"through", query.Via},
	{"operation", query.Target},
	{"since", query.Since},
	{"before", query.Until},
}

// auditText returns the audit query that a URL contains. The query consists of one term for each
// parameter, followed by the parameter "q".
func auditText(form url.Values) string {
	var terms []string
	for _, p := range auditParameters {
		if value := strings.TrimSpace(form.Get(p.name)); value != "" {
			if id, err := deadletter.ParseOperationID(value); err == nil && p.name == "operation" {
				value = id.String()
			}
			terms = append(terms, (query.Query{}).With(p.field, value).String())
		}
	}
	return strings.TrimSpace(strings.Join(append(terms, strings.TrimSpace(form.Get("q"))), " "))
}

func (w *Web) auditQuery(text string) (query.Query, error) {
	return query.Parse(text, query.Options{Fields: query.ActFields, Now: w.Now()})
}

// auditLog handles GET /audit?q=&after=.
func (w *Web) auditLog(r *http.Request) (templ.Component, error) {
	form := r.URL.Query()
	p := view.AuditPage{
		Shell: w.shell(r, "Audit log", view.SectionAudit),
		Query: auditText(form),
		After: form.Get("after"),
	}
	q, err := w.auditQuery(p.Query)
	if errors.As(err, &p.QueryError) {
		return view.Audit(p), err
	}
	list, next, err := w.Store.Audit(r.Context(), q, p.After, pageRows)
	if err != nil {
		return nil, err
	}
	p.Entries, p.Next = each(w.hideActs(list), auditRow), next
	for i := range p.Entries {
		if p.Entries[i].Restorable, err = w.canRestore(r.Context(), p.Entries[i].Act); err != nil {
			return nil, err
		}
	}
	return view.Audit(p), nil
}

// canRestore reports whether some of the letters that an action discarded can still be restored.
func (w *Web) canRestore(ctx context.Context, a deadletter.Act) (bool, error) {
	if a.Kind != string(deadletter.VerbDiscard) || a.Operation == 0 || a.Done == 0 {
		return false, nil
	}
	n, _, err := w.undoable(ctx, a.Operation, deadletter.VerbDiscard, 1)
	return n > 0, err
}

// auditRow returns an action together with links to its targets.
func auditRow(a deadletter.Act) view.AuditRow {
	return view.AuditRow{Act: a, Links: each(a.Targets, targetURL)}
}

// targetURL returns the URL of the page that shows a target. It returns "" if there is no such
// page.
func targetURL(t deadletter.Target) string {
	switch t.Kind {
	case deadletter.TargetLetter:
		return view.LetterURL(deadletter.ID(t.Name), "", "")
	case deadletter.TargetOperation, deadletter.TargetGroup:
		return "/" + string(t.Kind) + "s/" + url.PathEscape(t.Name)
	case deadletter.TargetQueue:
		return view.LettersURL((query.Query{}).With(query.Queue, t.Name).String(), "", "")
	case deadletter.TargetBroker:
		return "/queues"
	case deadletter.TargetSchema, deadletter.TargetBinding:
		return "/schemas"
	case deadletter.TargetRedirect, deadletter.TargetRules:
		return "/rules"
	case deadletter.TargetChannel:
		return "/#health"
	case deadletter.TargetDigest:
		return view.TriageURL(view.TriageDigest, "", "")
	}
	return ""
}

// hideActs masks the titles of groups in audit entries. The audit may contain a title that was
// recorded before a mask was configured.
func (w *Web) hideActs(list []deadletter.Act) []deadletter.Act {
	for i := range list {
		for j := range list[i].Targets {
			t := &list[i].Targets[j]
			t.Title, _ = w.Header("", t.Title)
		}
	}
	return list
}

// auditExport handles GET /audit/export. It returns all entries that the query of the page selects
// as CSV.
func (w *Web) auditExport(rw http.ResponseWriter, r *http.Request) {
	q, err := w.auditQuery(auditText(r.URL.Query()))
	if err != nil {
		w.fail(rw, r, err)
		return
	}
	w.auditCSV(rw, r, q)
}

type auditIn struct {
	Queried
	Actor     string    `query:"actor"`
	Kind      string    `query:"kind"`
	Through   string    `query:"through" enum:"page,api,cli,dlo"`
	Operation string    `query:"operation" pattern:"^O-[0-9]+$"`
	Since     time.Time `query:"since"`
	Before    time.Time `query:"before"`
	Format    string    `query:"format" enum:"json,csv" default:"json"`
	Paging
}

// listAudit returns everything people and dlo did, newest first. What happened to single letters is
// in their history. With format=csv all of it, as a stream, without pages. q has terms like a query
// of letters, with the fields who, action, target, via, since and until, and text; each of the
// parameters actor, kind, through, operation, since and before is one more term.
func (w *Web) listAudit(rw http.ResponseWriter, r *http.Request) {
	names := []string{"q", "limit", "after", "format"}
	for _, p := range auditParameters {
		names = append(names, p.name)
	}
	form, err := parameters(r, names...)
	if err != nil {
		w.fail(rw, r, err)
		return
	}
	q, err := w.apiAuditQuery(form)
	if err != nil {
		w.fail(rw, r, err)
		return
	}
	switch form.Get("format") {
	case "", "json":
		w.json(func(r *http.Request) (any, error) {
			limit, err := limitOf(form)
			if err != nil {
				return nil, err
			}
			list, next, err := w.Store.Audit(r.Context(), q, form.Get("after"), limit)
			return api.Audit{Entries: w.hideActs(list), Next: next}, err
		})(rw, r)
	case "csv":
		w.auditCSV(rw, r, q)
	default:
		w.fail(rw, r, invalid("format is json or csv"))
	}
}

// apiAuditQuery checks the parameters of a call, and returns the query that they describe.
func (w *Web) apiAuditQuery(form url.Values) (query.Query, error) {
	if text := form.Get("operation"); text != "" {
		if _, err := deadletter.ParseOperationID(text); err != nil {
			return query.Query{}, err
		}
	}
	for _, name := range []string{"since", "before"} {
		if _, err := instant(form, name); err != nil {
			return query.Query{}, err
		}
	}
	return w.auditQuery(auditText(form))
}

// auditCSV writes all entries that a query selects as CSV, page by page.
func (w *Web) auditCSV(rw http.ResponseWriter, r *http.Request, q query.Query) {
	list, next, err := w.Store.Audit(r.Context(), q, "", exportPage)
	if err != nil {
		w.fail(rw, r, err)
		return
	}
	out := startStream(rw, "text/csv; charset=utf-8; header=present", "audit.csv")
	table := newCSV(out)
	table.row(
		"time", "what", "who", "through", "address", "operation", "letters", "query", "detail", "targets", "asked",
		"done",
	)
	for {
		for _, a := range list {
			table.row(auditCells(a)...)
		}
		if err := table.flush(); err != nil || !out.flush() {
			return
		}
		if next == "" {
			return
		}
		if list, next, err = w.Store.Audit(r.Context(), q, next, exportPage); err != nil {
			w.abort(r, err)
		}
	}
}

func auditCells(v deadletter.Act) []string {
	letters := ""
	if v.Operation != 0 {
		letters = strconv.Itoa(v.Total)
	}
	return []string{
		v.At.Format(time.RFC3339), v.Kind, v.Actor, string(v.Through), v.Address, v.Operation.String(), letters,
		v.Query, v.Detail, strings.Join(each(v.Targets, deadletter.Target.String), ", "), v.Asked.String(), v.Done.String(),
	}
}
