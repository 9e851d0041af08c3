package web

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

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
