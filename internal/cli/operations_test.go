package cli

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

func TestHowAnOperationEnds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		op      deadletter.Operation
		over    bool
		code    int
		sayings string
	}{
		{
			name: "all quiet",
			op:   deadletter.Operation{State: "done", Phase: "over", Total: 3, Counts: map[deadletter.Result]int{"quiet": 3}},
			over: true,
		},
		{
			name: "dlo could not see",
			op:   deadletter.Operation{State: "done", Phase: "over", Total: 3, Counts: map[deadletter.Result]int{"unverified": 3}},
			over: true,
		},
		{
			name:    "some came back",
			op:      deadletter.Operation{State: "done", Phase: "over", Total: 3, Counts: map[deadletter.Result]int{"quiet": 2, "came back": 1}},
			over:    true,
			code:    exitPartly,
			sayings: "2 of 3 letters",
		},
		{
			name:    "all came back",
			op:      deadletter.Operation{State: "done", Phase: "over", Total: 3, Counts: map[deadletter.Result]int{"came back": 3}},
			over:    true,
			code:    exitPartly,
			sayings: "0 of 3 letters",
		},
		{
			name: "returned and in doubt",
			op: deadletter.Operation{
				State:  "done",
				Phase:  "over",
				Total:  3,
				Counts: map[deadletter.Result]int{"quiet": 1, "returned": 1, "in doubt": 1},
			},
			over:    true,
			code:    exitPartly,
			sayings: "1 of 3 letters",
		},
		{
			name:    "all skipped",
			op:      deadletter.Operation{State: "done", Phase: "over", Total: 2, Counts: map[deadletter.Result]int{"skipped": 2}},
			over:    true,
			code:    ExitFailed,
			sayings: "no letter was changed",
		},
		{
			name:    "cancelled before it began",
			op:      deadletter.Operation{State: "cancelled", Phase: "over", Total: 2, Counts: map[deadletter.Result]int{"cancelled": 2}},
			over:    true,
			code:    ExitFailed,
			sayings: "no letter was changed",
		},
		{
			name: "cancelled, and some are watched",
			op: deadletter.Operation{
				State:  "cancelled",
				Phase:  "sending",
				Total:  2,
				Counts: map[deadletter.Result]int{"cancelled": 1, "confirmed": 1},
			},
			code:    exitPartly,
			sayings: "1 of 2",
		},
		{
			name: "stopped by itself",
			op: deadletter.Operation{
				State:  "stopped",
				Phase:  "sending",
				Why:    "6 % came back",
				Total:  2,
				Counts: map[deadletter.Result]int{"pending": 2},
			},
			over:    true,
			code:    exitPartly,
			sayings: "stopped automatically: 6 % came back",
		},
		{
			name: "paused",
			op:   deadletter.Operation{State: "paused", Phase: "sending", Total: 2, Counts: map[deadletter.Result]int{"pending": 2}},
		},
		{
			name: "watched",
			op:   deadletter.Operation{State: "running", Phase: "watching", Total: 2, Counts: map[deadletter.Result]int{"confirmed": 2}},
		},
	} {
		var said strings.Builder
		c.op.ID = 7
		op := operation{api.Operation{Operation: c.op}}
		if code := ExitCode(
			op.outcome("http://dlo"), &said,
		); op.isOver() != c.over || code != c.code || !strings.Contains(said.String(), c.sayings) {
			t.Errorf("%s: over %v, code %d, %s", c.name, op.isOver(), code, said.String())
		}
	}
}

// TestNoServerAnswers checks the error for a server that does not respond. An address that is not a
// URL must be a usage error.
func TestNoServerAnswers(t *testing.T) {
	t.Parallel()
	var out, errs strings.Builder
	err := Run(Program{
		Ctx: t.Context(), Getenv: func(string) string { return "" }, Stdin: strings.NewReader(""), Stdout: &out,
		Stderr: &errs, Version: "test", Check: nil,
	}, &struct{}{}, []string{"letters", "count", "--server", "http://127.0.0.1:1"})
	if !errors.Is(err, errSilent) || !strings.Contains(err.Error(), "check that it is running") {
		t.Error(err)
	}
	if err := Run(Program{
		Ctx: t.Context(), Getenv: func(string) string { return "" }, Stdin: strings.NewReader(""), Stdout: &out,
		Stderr: &errs, Version: "test", Check: nil,
	}, &struct{}{}, []string{"letters", "count", "--server", "nonsense"}); !errors.Is(err, errUsage) {
		t.Error(err)
	}
}

func TestProgressOffATerminalIsLines(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	g := newProgress(&out)
	for i := range 101 {
		g.show(operation{
			api.Operation{Operation: deadletter.Operation{
				ID:     7,
				State:  "running",
				Phase:  "sending",
				Total:  100,
				Counts: map[deadletter.Result]int{deadletter.ResultPending: 100 - i, "confirmed": i},
			}},
		})
	}
	g.end()
	if n := strings.Count(out.String(), "\n"); n != 11 || strings.ContainsAny(out.String(), "\r\x1b") {
		t.Errorf("%d lines: %q", n, out.String())
	}
}

// TestProgressCountsWhatIsDone checks the progress of an operation whose broker is not connected,
// and of one that was cancelled: cancelled letters are not done.
func TestProgressCountsWhatIsDone(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	op := deadletter.Operation{
		ID: 7, State: "running", Phase: "canary", Total: 40, Away: "main is not connected",
		Counts: map[deadletter.Result]int{"came back": 10, "pending": 30},
	}
	g := newProgress(&out)
	g.show(operation{api.Operation{Operation: op}})
	op.State, op.Phase, op.Away = "cancelled", "over", ""
	op.Counts = map[deadletter.Result]int{"came back": 10, "cancelled": 30}
	g.show(operation{api.Operation{Operation: op}})
	want := "O-7: 10 of 40 letters, main is not connected, 30 pending, 10 came back\n" +
		"O-7: 10 of 40 letters, cancelled, 10 came back, 30 cancelled\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

// TestNoErrorShowsAPassword checks that no error contains the password in the server's address.
func TestNoErrorShowsAPassword(t *testing.T) {
	t.Parallel()
	garbled := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "no JSON") }))
	t.Cleanup(garbled.Close)
	for _, server := range []string{
		"http://ann:s3cret@127.0.0.1:1", "http://ann:s3cret@127.0.0.1:1/", "ann:s3cret@host", "ftp://ann:s3cret@host",
		"http://ann:s3cret%zz@host", "http://ann:s3cret@host:port",
		strings.Replace(garbled.URL, "://", "://ann:s3cret@", 1),
	} {
		var into struct{}
		err := serverFlags{Server: server}.call(&Program{
			Ctx: t.Context(), Getenv: func(string) string { return "" },
		}, http.MethodGet, "/queues", nil, &into)
		if err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", server, err)
		}
	}
}
