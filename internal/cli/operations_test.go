package cli

import (
	"errors"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

func TestHowAnOperationEnds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		op      operationAnswer
		over    bool
		code    int
		sayings string
	}{
		{"all quiet", operationAnswer{State: "done", Phase: "over", Total: 3, Counts: map[string]int{"quiet": 3}}, true, 0, ""},
		{"nobody could see", operationAnswer{State: "done", Phase: "over", Total: 3, Counts: map[string]int{"unverified": 3}}, true, 0, ""},
		{"some came back", operationAnswer{State: "done", Phase: "over", Total: 3, Counts: map[string]int{"quiet": 2, "came_back": 1}}, true, exitPartly, "2 of 3 letters"},
		{"all came back", operationAnswer{State: "done", Phase: "over", Total: 3, Counts: map[string]int{"came_back": 3}}, true, exitPartly, "0 of 3 letters"},
		{"returned and in doubt", operationAnswer{State: "done", Phase: "over", Total: 3, Counts: map[string]int{"quiet": 1, "returned": 1, "in_doubt": 1}}, true, exitPartly, "1 of 3 letters"},
		{"all skipped", operationAnswer{State: "done", Phase: "over", Total: 2, Counts: map[string]int{"skipped": 2}}, true, ExitFailed, "no letter was changed"},
		{"cancelled before it began", operationAnswer{State: "cancelled", Phase: "over", Total: 2, Counts: map[string]int{"cancelled": 2}}, true, ExitFailed, "no letter was changed"},
		{"cancelled, and some are watched", operationAnswer{State: "cancelled", Phase: "sending", Total: 2, Counts: map[string]int{"cancelled": 1, "confirmed": 1}}, false, exitPartly, "1 of 2"},
		{"stopped by itself", operationAnswer{State: "stopped", Phase: "sending", Why: "6 % came back", Total: 2, Counts: map[string]int{"pending": 2}}, true, exitPartly, "stopped by itself: 6 % came back"},
		{"paused", operationAnswer{State: "paused", Phase: "sending", Total: 2, Counts: map[string]int{"pending": 2}}, false, 0, ""},
		{"watched", operationAnswer{State: "running", Phase: "watching", Total: 2, Counts: map[string]int{"confirmed": 2}}, false, 0, ""},
	} {
		var said strings.Builder
		c.op.ID = "O-7"
		if code := ExitCode(c.op.outcome("http://dlo"), &said); c.op.over() != c.over || code != c.code || !strings.Contains(said.String(), c.sayings) {
			t.Errorf("%s: over %v, code %d, %s", c.name, c.op.over(), code, said.String())
		}
	}
}

// TestNoServerAnswers: an error says where was looked.
func TestNoServerAnswers(t *testing.T) {
	t.Parallel()
	var out, errs strings.Builder
	err := Run(Program{Ctx: t.Context(), Getenv: func(string) string { return "" }, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Version: "test", Check: nil}, &Commands{}, []string{"letters", "count", "--server", "http://127.0.0.1:1"})
	if !errors.Is(err, errSilent) || !strings.Contains(err.Error(), "is it running") {
		t.Error(err)
	}
	if err := Run(Program{Ctx: t.Context(), Getenv: func(string) string { return "" }, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Version: "test", Check: nil}, &Commands{}, []string{"letters", "count", "--server", "nonsense"}); !errors.Is(err, errUsage) {
		t.Error(err)
	}
}

func TestProgressOffATerminalIsLines(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	g := newProgress(&out)
	for i := range 101 {
		g.show(operationAnswer{ID: "O-7", State: "running", Phase: "sending", Total: 100, Counts: map[string]int{string(deadletter.ResultPending): 100 - i, "confirmed": i}})
	}
	g.end()
	if n := strings.Count(out.String(), "\n"); n != 11 || strings.ContainsAny(out.String(), "\r\x1b") {
		t.Errorf("%d lines: %q", n, out.String())
	}
}
