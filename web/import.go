package web

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const (
	importPath    = "/api/v1/letters/import" // the only path whose request body may be of any length
	importLetters = 200                      // the maximum number of letters in one transaction
	importBytes   = 4 << 20                  // bytes of bodies per transaction; a larger body is stored alone
	// maximum number of skipped lines that a response names; the others are only counted
	namedLines = 1000
)

// maxLine returns the maximum length in bytes of a line in an import. A line contains the headers
// and the base64 of a body. The body may be as large as the largest body that can be published.
func (w *Web) maxLine() int {
	body := w.MaxBody
	if body <= 0 {
		body = 16 << 20
	}
	return body/10*14 + 1<<20
}

func (m *importer) skip(line int, letter deadletter.ID, reason string) {
	a := &m.out
	a.SkippedCount++
	if len(a.Skipped) < namedLines {
		a.Skipped = append(a.Skipped, api.SkippedLine{Line: line, Letter: string(letter), Reason: reason})
	}
}

// importer collects lines of an import, and stores them in transactions.
type importer struct {
	w     *Web
	by    deadletter.Principal
	out   api.Import
	list  []deadletter.Imported
	lines []int
	bytes int
}

// importLetters takes in letters that another dlo exported. NDJSON of any length. Letters keep
// their id, so what is sent again is not taken in twice. They arrive dead, held or discarded, never
// waiting for a retry, as the other dlo may still hold a live copy. Lines that are damaged, masked
// or purged are left out and named with the reason: the first 1,000, the others are counted. A line
// may have 1.4 times requeue.max_body and 1 MiB.
func (w *Web) importLetters(rw http.ResponseWriter, r *http.Request) {
	w.json(func(r *http.Request) (any, error) { return w.readImport(rw, r) })(rw, r)
}

var importKinds = []string{"application/x-ndjson", "application/ndjson", "application/jsonl"}

func (w *Web) readImport(rw http.ResponseWriter, r *http.Request) (any, error) {
	if _, err := parameters(r); err != nil {
		return nil, err
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || !slices.Contains(importKinds, kind) {
		return nil, statusError(http.StatusUnsupportedMediaType)
	}
	control := http.NewResponseController(rw)
	m := &importer{w: w, by: principal(r.Context()), out: api.Import{Skipped: []api.SkippedLine{}}}
	in := bufio.NewReaderSize(patient{r.Body, control}, 64<<10)
	err := m.run(r.Context(), in)
	if m.out.Imported > 0 { // also recorded if the import was interrupted
		if auditErr := w.Store.Record(context.WithoutCancel(r.Context()), m.act()); err == nil {
			err = auditErr
		}
	}
	return m.out, err
}

// act returns the audit entry of the import.
func (m *importer) act() deadletter.Act {
	a := &m.out
	return deadletter.Act{
		Kind:    deadletter.ActImport,
		Actor:   m.by.Name,
		Targets: []deadletter.Target{{Kind: deadletter.TargetLetters, Name: "imported"}},
		Asked:   deadletter.Amount(a.Imported + a.AlreadyThere + a.SkippedCount),
		Done:    deadletter.Amount(a.Imported),
		Detail: fmt.Sprintf(
			"%d letters, %d were already there, %d lines were left out", a.Imported, a.AlreadyThere, a.SkippedCount,
		),
	}
}

// patient is a request body without a time limit for the whole body. Reading fails only if the
// client sends nothing for too long.
type patient struct {
	body    io.Reader
	control *http.ResponseController
}

func (p patient) Read(b []byte) (int, error) {
	// if the body does not support deadlines, the server's own deadline applies
	p.control.SetReadDeadline(time.Now().Add(stalled))
	p.control.SetWriteDeadline(time.Now().Add(2 * stalled))
	return p.body.Read(b)
}

// run imports one letter for each line of the request body, until the body ends.
func (m *importer) run(ctx context.Context, in *bufio.Reader) error {
	limit := m.w.maxLine()
	for number := 1; ; number++ {
		line, long, err := readLine(in, limit)
		if err != nil && !errors.Is(err, io.EOF) {
			if flushErr := m.flush(ctx); flushErr != nil {
				return flushErr
			}
			return invalid(
				"the letters were cut off at line %d; %d were imported before it, and the same lines can be sent again",
				number, m.out.Imported,
			)
		}
		switch text := bytes.TrimSpace(line); {
		case long:
			m.skip(number, "", fmt.Sprintf("it is longer than %d bytes", limit))
		case len(text) > 0:
			if addErr := m.add(ctx, number, text); addErr != nil {
				return addErr
			}
		}
		if err != nil {
			return m.flush(ctx)
		}
	}
}

// readLine returns the next line without its line end. If a line is longer than the limit, the rest
// of it is read and dropped. The last line is returned together with io.EOF.
func readLine(in *bufio.Reader, limit int) (line []byte, long bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if !long {
			line = append(line, part...)
		}
		if len(line) > limit {
			line, long = nil, true
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, long, err
		}
	}
}

// add adds a line. If there are enough lines for a transaction, it stores them.
func (m *importer) add(ctx context.Context, number int, text []byte) error {
	l, reason := m.read(text)
	if reason != "" {
		m.skip(number, l.ID, reason)
		return nil
	}
	if len(m.list) > 0 && m.bytes+len(l.Body) > importBytes {
		if err := m.flush(ctx); err != nil {
			return err
		}
	}
	m.list, m.lines, m.bytes = append(m.list, l), append(m.lines, number), m.bytes+len(l.Body)
	if len(m.list) < importLetters && m.bytes < importBytes {
		return nil
	}
	return m.flush(ctx)
}

// flush stores the lines that were collected.
func (m *importer) flush(ctx context.Context) error {
	if len(m.list) == 0 {
		return nil
	}
	if m.w.Draining() {
		return errStopping
	}
	results, err := m.w.Store.Import(ctx, m.by.Name, m.list)
	if err != nil {
		return err
	}
	for i, result := range results {
		switch result {
		case deadletter.ImportNew:
			m.out.Imported++
		case deadletter.ImportKnown:
			m.out.AlreadyThere++
		default:
			m.skip(m.lines[i], m.list[i].ID, string(result))
		}
	}
	m.list, m.lines, m.bytes = m.list[:0], m.lines[:0], 0
	return nil
}

const (
	// bytes; the limit of an AMQP 0-9-1 short string. Origins come from headers, which may contain
	// anything
	maxName  = 255
	maxError = 2000 // bytes; package classify keeps fewer
)

func tooLong(name string) bool { return len(name) > maxName }

// read converts a line of an import to a letter. If the import must skip the line, it returns the
// reason.
func (m *importer) read(text []byte) (l deadletter.Imported, reason string) {
	var in api.ExportedLetter
	if err := api.UnmarshalStrict(text, &in); err != nil { // a field of a later version must not be lost silently
		return l, sentence(err, statusOf(err))
	}
	id, err := deadletter.ParseID(string(in.ID))
	if err != nil {
		return l, "it has no id of a letter"
	}
	l = deadletter.Imported{
		Row: deadletter.Row{
			ID:         id,
			State:      in.State,
			ReceivedAt: in.ReceivedAt,
			DiedAt:     in.DiedAt,
			Broker:     in.Origin.Broker,
			VHost:      string(in.Origin.VHost),
			Queue:      string(in.Origin.Queue),
			Exchange:   string(in.Origin.Exchange),
			RoutingKey: string(in.Origin.RoutingKey),
			Reason:     string(in.Reason),
			Error:      deadletter.Cut(in.Error, maxError),
			Attempts:   in.Attempts,
		},
		Inbox:     string(in.Inbox),
		ArrivedBy: deadletter.Route{Exchange: string(in.Exchange), RoutingKey: string(in.RoutingKey)},
	}
	serial, _, ok := id.Split()
	switch {
	case !ok || serial <= 0:
		return l, "it has no id of a letter"
	case in.V != exportVersion:
		return l, fmt.Sprintf("it is of version %d, and this dlo reads version %d", in.V, exportVersion)
	case !slices.Contains(deadletter.States, in.State):
		return l, "its state is unknown"
	case in.State == deadletter.StatePurged:
		return l, "it is purged: nothing but its history is left"
	case in.Damaged != "":
		return l, "it is damaged where it was exported: " + deadletter.Visible(deadletter.Cut(in.Damaged, 200)) +
			" changed"
	case in.Masked:
		return l, "it is masked: it was exported without its body"
	case in.Body == nil:
		return l, "it has no body"
	case in.ReceivedAt.IsZero():
		return l, "it does not say when it was received"
	case in.ReceivedAt.UnixMilli() <= 0 || in.ReceivedAt.After(m.w.Now().Add(time.Minute)):
		return l, "it was received at an impossible time"
	case slices.ContainsFunc([]string{
		l.Inbox, l.ArrivedBy.Exchange, l.ArrivedBy.RoutingKey, l.Broker, l.VHost,
	}, tooLong):
		return l, fmt.Sprintf("a name in it is longer than %d bytes", maxName)
	case in.Attempts < 0:
		return l, "its attempts are not a number"
	}
	if l.Properties, err = exportedProperties(&in); err == nil {
		_, err = l.Properties.Encode()
	}
	if err != nil {
		return l, "its properties cannot be read: " + deadletter.Visible(deadletter.Cut(err.Error(), 200))
	}
	l.Body = *in.Body
	if err := deadletter.Allow(m.by, deadletter.VerbImport, l.Origin()); err != nil {
		return l, err.Error()
	}
	return l, ""
}
