package web

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/web/view"
)

// exportVersion is the version of the format of exported lines. An import rejects lines of another
// version, and the error names that version.
const exportVersion = 1

// exportedOf converts a letter to an exported line. It hides masked values unless the parameter
// "reveal" is true and the principal may see them.
func (w *Web) exportedOf(
	ctx context.Context, by deadletter.Principal, l deadletter.Letter, reveal bool,
) (api.ExportedLetter, error) {
	out := api.ExportedLetter{
		V:     exportVersion,
		ID:    l.ID,
		State: l.State,
		Origin: api.ExportedOrigin{
			Broker:     l.Broker,
			VHost:      api.Text(l.VHost),
			Queue:      api.Text(l.Queue),
			Exchange:   api.Text(l.Exchange),
			RoutingKey: api.Text(l.RoutingKey),
		},
		Inbox:      api.Text(l.Inbox),
		Exchange:   api.Text(l.ArrivedBy.Exchange),
		RoutingKey: api.Text(l.ArrivedBy.RoutingKey),
		ReceivedAt: l.ReceivedAt,
		DiedAt:     l.DiedAt,
		Reason:     api.Text(l.Reason),
		Attempts:   l.Attempts,
		Type:       l.Type,
		Why:        l.Why,
		Damaged:    l.Damage,
	}
	plain := l.Properties
	if reveal && deadletter.Allow(by, deadletter.VerbReveal, l.Place()) == nil {
		l.Error, _ = w.maskedText("", l.Error)
	} else {
		doc, err := w.decode(ctx, &l)
		if err != nil {
			return out, err
		}
		out.Masked = w.hide(&l)
		out.Masked = out.Masked || w.bytesMasked(doc) || deadletter.Allow(by, deadletter.VerbRead, l.Place()) != nil
	}
	out.Error, out.Properties, out.Headers = l.Error, l.Properties, typed(l.Properties.Headers)
	if out.Masked || l.State == deadletter.StatePurged {
		return out, nil
	}
	out.Body = &l.Body
	if l.Body == nil {
		out.Body = &[]byte{}
	}
	var err error
	out.Encoded, err = encodingUnlessLossless(plain, out.Properties, out.Headers)
	return out, err
}

// encodingUnlessLossless returns the AMQP encoding of properties. It returns nil if their JSON can
// reproduce every byte of the encoding.
func encodingUnlessLossless(
	p deadletter.Properties, properties deadletter.Properties, headers map[string]deadletter.Typed,
) ([]byte, error) {
	want, err := p.Encode()
	if err != nil {
		return nil, err
	}
	text, err := api.Marshal(api.ExportedLetter{Properties: properties, Headers: headers})
	if err != nil {
		return want, nil
	}
	var again api.ExportedLetter
	if err := api.Unmarshal(text, &again); err != nil {
		return want, nil
	}
	back, err := exportedProperties(&again)
	if err != nil {
		return want, nil
	}
	if got, err := back.Encode(); err == nil && bytes.Equal(got, want) {
		return nil, nil
	}
	return want, nil
}

// exportedProperties returns the properties that an exported line contains.
func exportedProperties(e *api.ExportedLetter) (deadletter.Properties, error) {
	if len(e.Encoded) > 0 {
		return deadletter.DecodeProperties(e.Encoded)
	}
	out := e.Properties
	if len(e.Headers) > 0 {
		out.Headers = make(deadletter.Table, len(e.Headers))
		for name, v := range e.Headers {
			out.Headers[name] = v.Value
		}
	}
	return out, nil
}

type exportIn struct {
	Queried
	Format string `query:"format" enum:"ndjson,csv" default:"ndjson"`
	Reveal string `query:"reveal" enum:"0,1"`
}

// exportLetters returns all letters of a query, as a stream. Newest received first, each as it is
// when its turn comes; any number of letters. An export that cannot be completed breaks its
// connection. NDJSON has one letter a line, with all that another dlo needs to import it; a letter
// with masked fields has no body and says "masked":true, a purged one is a tombstone. CSV has the
// columns of lists; no cell is a formula to a spreadsheet.
func (w *Web) exportLetters(rw http.ResponseWriter, r *http.Request) {
	page := deadletter.Page{Limit: exportPage, Order: deadletter.OrderReceived}
	q, csv, reveal, err := w.exportAsked(r)
	var rows []deadletter.Row
	var next string
	if err == nil {
		rows, _, next, err = w.Store.Letters(r.Context(), q, page)
	}
	if err != nil { // nothing is written yet, so the response can still be an error
		w.fail(rw, r, err)
		return
	}
	kind, name, write := "application/x-ndjson", "letters.ndjson", w.exportLines
	if csv {
		kind, name, write = "text/csv; charset=utf-8; header=present", "letters.csv", w.exportCSV
	}
	out := startStream(rw, kind, name)
	if r.Method == http.MethodHead {
		return
	}
	for first := true; ; first = false {
		if err := write(r, out, rows, first, reveal); err != nil {
			w.abort(r, err)
		}
		if !out.flush() || next == "" {
			return
		}
		page.After = next
		if rows, _, next, err = w.Store.Letters(r.Context(), q, page); err != nil {
			w.abort(r, err)
		}
	}
}

// exportAsked reads the parameters of an export. It records in the audit that masked values are
// revealed.
func (w *Web) exportAsked(r *http.Request) (q query.Query, csv, reveal bool, err error) {
	form, err := parameters(r, "q", "format", "reveal")
	if err != nil {
		return q, false, false, err
	}
	if q, err = query.Parse(form.Get("q"), w.queryOptions()); err != nil {
		return q, false, false, err
	}
	switch format := form.Get("format"); format {
	case "", "ndjson", "csv":
		csv = format == "csv"
	default:
		return q, false, false, invalid("format is ndjson or csv")
	}
	reveal, err = parseReveal(form.Get("reveal"))
	switch {
	case reveal && csv:
		err = invalid("reveal is for ndjson: a table has neither bodies nor headers")
	case reveal:
		err = w.recordExport(r, q)
	}
	return q, csv, reveal, err
}

// recordExport records in the audit that letters are exported with masked values. It is called once
// for each export, before the first letter is sent.
func (w *Web) recordExport(r *http.Request, q query.Query) error {
	if err := deadletter.Allow(principal(r.Context()), deadletter.VerbReveal, deadletter.Origin{}); err != nil {
		return err
	}
	n, _, err := w.Store.Count(r.Context(), q, 0)
	if err != nil {
		return err
	}
	text := deadletter.Cut(q.String(), 250)
	return w.Store.Record(r.Context(), deadletter.Act{
		Kind:    deadletter.ActRevealed,
		Actor:   principal(r.Context()).Name,
		Detail:  "export of " + view.LetterCount(n) + ", query " + strconv.Quote(text),
		Targets: []deadletter.Target{{Kind: deadletter.TargetLetters, Name: text}},
		Asked:   deadletter.Amount(n),
		Done:    deadletter.Amount(n),
	})
}

// exportLines writes letters as lines of JSON. It reads each letter just before it writes it, so
// that only one body at a time is in memory.
func (w *Web) exportLines(r *http.Request, out io.Writer, rows []deadletter.Row, _, reveal bool) error {
	for _, row := range rows {
		l, err := w.Store.Letter(r.Context(), row.ID)
		if err != nil {
			return err
		}
		line, err := w.exportedOf(r.Context(), principal(r.Context()), l, reveal)
		if err != nil {
			return err
		}
		text, err := api.Marshal(line)
		if err != nil {
			return err
		}
		if _, err := out.Write(append(text, '\n')); err != nil {
			return err
		}
	}
	return nil
}

// exportCSV writes letters as CSV. The columns are the fields of a row with a csv tag.
func (w *Web) exportCSV(_ *http.Request, out io.Writer, rows []deadletter.Row, first, _ bool) error {
	table := newCSV(out)
	if first {
		table.row(cellsOf(deadletter.Row{}, func(name string, _ any) string { return name })...)
	}
	for _, row := range w.hideRows(rows) {
		table.row(cellsOf(row, func(_ string, value any) string {
			if at, ok := value.(time.Time); !ok {
				return fmt.Sprint(value)
			} else if !at.IsZero() {
				return at.Format(time.RFC3339)
			}
			return ""
		})...)
	}
	return table.flush()
}

// cellsOf calls fn for each field of a row that has a csv tag, and returns the results.
func cellsOf(row deadletter.Row, fn func(name string, value any) string) []string {
	var cells []string
	for field, value := range reflect.ValueOf(row).Fields() {
		if name := field.Tag.Get("csv"); name != "" {
			cells = append(cells, fn(name, value.Interface()))
		}
	}
	return cells
}
