package server

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/deadletteroffice/dlo/internal/config"
)

const (
	logAlike = 5           // maximum number of lines that differ only in figures
	logLines = 20          // maximum number of lines with the same message
	logFold  = time.Minute // time for which both limits apply; after that, omitted lines are reported
)

// newLog returns a log that omits repeated lines. The settings can be replaced. The returned
// function "flush" immediately reports how many lines were omitted.
func newLog(w io.Writer, c config.Log) (log *slog.Logger, settings *logSettings, flush func()) {
	f, s := &folds{of: map[string]*fold{}}, &logSettings{}
	s.replace(c)
	o := &slog.HandlerOptions{Level: &s.level}
	s.all = &eitherHandler{&s.json, slog.NewTextHandler(w, o), slog.NewJSONHandler(w, o)}
	return slog.New(&foldingHandler{folds: f, out: s.all}), s, f.flush
}

// logSettings are the settings of a log, which can change while it is used.
type logSettings struct {
	level slog.LevelVar
	json  atomic.Bool
	all   slog.Handler // omits no lines
}

func (s *logSettings) replace(c config.Log) {
	s.json.Store(c.Format == "json")
	var level slog.Level
	level.UnmarshalText([]byte(c.Level)) // the configuration has already checked it
	s.level.Set(level)
}

// requests returns the log of HTTP requests, which omits no lines. It returns nil if requests are
// not logged.
func (s *logSettings) requests(c config.Log) *slog.Logger {
	if !c.Requests {
		return nil
	}
	return slog.New(s.all)
}

// eitherHandler is a log handler that writes lines as text or as JSON.
type eitherHandler struct {
	json         *atomic.Bool
	text, asJSON slog.Handler
}

func (h *eitherHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.text.Enabled(ctx, level)
}

func (h *eitherHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &eitherHandler{h.json, h.text.WithAttrs(attrs), h.asJSON.WithAttrs(attrs)}
}

func (h *eitherHandler) WithGroup(name string) slog.Handler {
	return &eitherHandler{h.json, h.text.WithGroup(name), h.asJSON.WithGroup(name)}
}

func (h *eitherHandler) Handle(ctx context.Context, r slog.Record) error {
	if h.json.Load() {
		return h.asJSON.Handle(ctx, r)
	}
	return h.text.Handle(ctx, r)
}

// foldingHandler is a log handler that writes the first lines of each kind immediately. It counts
// further lines of that kind, and writes one summary of them each minute. A change therefore
// appears in the log when it happens. A failure that concerns every letter does not fill the disk.
type foldingHandler struct {
	folds *folds
	out   slog.Handler
	with  string // attributes that were already added to the handler "out"
}

// folds contains, for each level and message, how many lines were written to the log and how many
// were omitted.
type folds struct {
	mu sync.Mutex
	of map[string]*fold
}

// fold counts the lines with the same level and message in the current minute.
type fold struct {
	lines   int            // number of written lines
	alike   map[string]int // number of written lines, by their text without figures; at most logLines texts
	before  map[string]int // the map "alike" of the previous minute, if lines were omitted in that minute
	left    int            // number of omitted lines
	last    slog.Record    // the last omitted line
	handler slog.Handler   // the handler that received the last omitted line
	timer   *time.Timer
}

var figures = regexp.MustCompile(`[0-9]+(\.[0-9]+)?`)

func (h *foldingHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.out.Enabled(ctx, level)
}

func (h *foldingHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &foldingHandler{h.folds, h.out.WithAttrs(attrs), h.with + fmt.Sprint(attrs)}
}

func (h *foldingHandler) WithGroup(name string) slog.Handler {
	return &foldingHandler{h.folds, h.out.WithGroup(name), h.with + name}
}

func (h *foldingHandler) Handle(ctx context.Context, r slog.Record) error {
	if h.folds.omits(h, r) {
		return nil
	}
	return h.out.Handle(ctx, r)
}

// omits reports whether to omit a line. It counts the line in both cases.
func (f *folds) omits(h *foldingHandler, r slog.Record) bool {
	var text strings.Builder
	text.WriteString(h.with)
	r.Attrs(func(a slog.Attr) bool {
		text.WriteString(a.String() + " ")
		return true
	})
	message, alike := r.Level.String()+" "+r.Message, figures.ReplaceAllString(text.String(), "#")
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.of[message]
	if m == nil {
		m = &fold{alike: map[string]int{}}
		m.timer = time.AfterFunc(logFold, func() { f.endMinute(message) })
		f.of[message] = m
	}
	if m.lines < logLines && m.alike[alike]+m.before[alike] < logAlike {
		m.lines++
		m.alike[alike]++
		return false
	}
	if m.before[alike] > 0 {
		m.alike[alike] = m.before[alike] // the text occurs again in this minute, so the next minute needs the count too
	}
	m.left++
	m.last, m.handler = r.Clone(), h.out
	return true
}

// endMinute is called when the minute in which equal lines are counted has ended. If lines with the
// message were omitted, endMinute reports their number and begins the next minute.
func (f *folds) endMinute(message string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.of[message]
	if m.left == 0 {
		delete(f.of, message)
		return
	}
	m.writeLast()
	m.lines, m.before, m.alike = 0, m.alike, map[string]int{}
	m.timer.Reset(logFold)
}

// writeLast writes one of the repeated log lines that were omitted, namely the last one. It adds to
// the line how many lines were omitted since the last report.
func (m *fold) writeLast() {
	if m.left == 0 {
		return
	}
	m.last.AddAttrs(slog.String("more", fmt.Sprintf("one of %d such lines since the last", m.left)))
	m.handler.Handle(context.Background(), m.last)
	m.left = 0
}

// flush reports the omitted lines when the process ends.
func (f *folds) flush() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.of {
		m.timer.Stop()
		m.writeLast()
	}
	clear(f.of)
}
