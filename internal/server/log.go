package server

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"time"
)

const (
	logAlike = 5           // lines that differ in figures only are written so often
	logLines = 20          // lines of one message are written so often
	logFold  = time.Minute // in this time; what is left out is counted, and said at its end
)

// newLog returns a log that folds lines which repeat, and what makes it say at once how many it has
// left out.
func newLog(w io.Writer) (log *slog.Logger, flush func()) {
	f := &folds{of: map[string]*fold{}}
	return slog.New(&foldingHandler{folds: f, out: slog.NewTextHandler(w, nil)}), f.flush
}

// foldingHandler writes the first lines of each kind at once. Further ones are counted, and become
// one line a minute, for as long as they come. So a change is in the log when it happens, and what
// fails for each letter does not fill the disk.
type foldingHandler struct {
	folds *folds
	out   slog.Handler
	with  string // the attributes that out has already
}

// folds are what is left out of a log, by level and message.
type folds struct {
	mu sync.Mutex
	of map[string]*fold
}

// fold is one message in the minute that runs.
type fold struct {
	lines   int            // written
	alike   map[string]int // lines by their text without figures; at most logLines of them
	before  map[string]int // the same of the minute before, if lines were left out in it
	left    int            // out
	last    slog.Record    // the last of these
	handler slog.Handler   // of that one
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
	if h.folds.leaves(h, r) {
		return nil
	}
	return h.out.Handle(ctx, r)
}

// leaves says whether a line is left out, and counts it.
func (f *folds) leaves(h *foldingHandler, r slog.Record) bool {
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
		m.timer = time.AfterFunc(logFold, func() { f.turn(message) })
		f.of[message] = m
	}
	if m.lines < logLines && m.alike[alike]+m.before[alike] < logAlike {
		m.lines++
		m.alike[alike]++
		return false
	}
	if m.before[alike] > 0 {
		m.alike[alike] = m.before[alike] // it goes on
	}
	m.left++
	m.last, m.handler = r.Clone(), h.out
	return true
}

// turn ends the minute of a message. The next one begins at once if lines were left out.
func (f *folds) turn(message string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.of[message]
	if m.left == 0 {
		delete(f.of, message)
		return
	}
	m.say()
	m.lines, m.before, m.alike = 0, m.alike, map[string]int{}
	m.timer.Reset(logFold)
}

// say writes how many lines were left out since the last time, and the last of them.
func (m *fold) say() {
	if m.left == 0 {
		return
	}
	m.last.AddAttrs(slog.String("more", fmt.Sprintf("one of %d such lines since the last", m.left)))
	m.handler.Handle(context.Background(), m.last)
	m.left = 0
}

// flush says what is left out at the end of the process.
func (f *folds) flush() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.of {
		m.timer.Stop()
		m.say()
	}
	clear(f.of)
}
