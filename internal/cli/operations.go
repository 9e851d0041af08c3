package cli

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const startedText = `{{template "started" .}}`

func operationsTable() command {
	steer := func(name, help string) command {
		return act(name, help, operationCmd{}, "POST /operations/{operation}/"+name, api.Operation{}, startedText)
	}
	return noun("operations", groupLetters, "Show what was done to letters, and steer operations in progress.",
		list("List operations, newest first.", struct {
			callCmd
			limitFlag
		}{}, "GET /operations", "operations", api.Operations{},
			"id action state letters=total started=created_at|age who=by what=|operation reason"),
		command{
			name: "show", help: "Show one operation: counts, queues, and the letters to look at.",
			args: struct {
				operationCmd
				Result string `help:"Which letters to list: results with commas between them, for example came_back,skipped; or twice. By default, the letters to look at."`
				Limit  int    `short:"n" default:"50" help:"How many letters at most, 1 to 500."`
			}{},
			route: "GET /operations/{operation}", answer: api.OperationLetters{},
			note: "{{if .Next}}there are more; --limit and --result choose which are listed{{end}}",
			columns: "operation=id action stands=|operation letters=total query to reason who=|started_by " +
				"started=created_at|time finished=finished_at|time rate=pace.rate|rate new=new_failures|failures",
			parts: []command{
				{rows: "queues", columns: "queue letters=counts|results"},
				{rows: "letters", columns: "letter queue result why=reason sent=twice|twice"},
			},
		},
		act("watch", "Wait until the verdict on every letter is known, and print it.", operationsWatchCmd{},
			"GET /operations/{operation}", api.Operation{}, startedText),
		steer("pause", "Pause: send nothing more until it is resumed."),
		steer("resume", "Resume a paused or stopped operation."),
		steer("cancel", "Cancel the rest: letters that were not sent are left unchanged."),
		act("rate", "Change how fast an operation sends.", struct {
			operationCmd
			Rate float64 `arg:"" help:"Letters per second."`
		}{}, "PATCH /operations/{operation}", api.Operation{}, startedText),
	)
}

// operationCmd is a command about one operation.
type operationCmd struct {
	callCmd
	ID operationArg `arg:"" name:"operation" help:"The operation, for example O-77."`
}

type operationsWatchCmd struct{ operationCmd }

// Run watches an operation.
func (c operationsWatchCmd) Run(p *Program) error { return c.watch(p, string(c.ID)) }

// operation is an api.Operation. It adds methods that say how it ends.
type operation struct{ api.Operation }

// count returns how many letters have one of the given results.
func (o operation) count(results ...deadletter.Result) (n int) {
	for _, r := range results {
		n += o.Counts[r]
	}
	return n
}

// words returns a description of the operation's state and of its results so far.
func (o operation) words() string {
	text, _ := textOf("operation", o.Operation)
	return text
}

// outcome returns an error if the operation stopped automatically, or if at least one of its
// letters was skipped, failed, came back, is in doubt or was cancelled. Otherwise it returns nil.
func (o operation) outcome(server string) error {
	at := fmt.Sprintf("see %s/operations/%s", server, o.ID)
	left := o.count(
		deadletter.ResultSkipped, deadletter.ResultFailed, deadletter.ResultReturned, deadletter.ResultInDoubt,
		deadletter.ResultCancelled,
	)
	bad := left + o.count(deadletter.ResultCameBack)
	switch {
	case o.State == deadletter.OperationStopped:
		return fmt.Errorf("%w: %s stopped automatically: %s; resume or cancel it, %s", errPartly, o.ID, o.Why, at)
	case left == o.Total && o.Total > 0:
		return fmt.Errorf("%s: no letter was changed; %s", o.ID, at)
	case bad > 0:
		return fmt.Errorf("%w: %d of %d letters, %s", errPartly, o.Total-bad, o.Total, at)
	}
	return nil
}

// isOver reports whether the command can stop watching the operation. A stopped operation also
// counts as over, because a person must decide how it continues.
func (o operation) isOver() bool {
	return o.State == deadletter.OperationDone || o.State == deadletter.OperationStopped ||
		o.State == deadletter.OperationCancelled && o.Phase == deadletter.PhaseOver
}

const (
	watchEvery = 500 * time.Millisecond
	// how long to keep watching while the server does not respond; operations survive a restart of
	// dlo
	watchBlind = 2 * time.Minute
)

// wait waits until it is time to ask the server again. If the command is interrupted meanwhile, it
// returns an error with a text that says what continues on the server.
func (p *Program) wait(format string, args ...any) error {
	select {
	case <-time.After(watchEvery):
		return nil
	case <-p.Ctx.Done():
		return fmt.Errorf("%w: "+format, append([]any{errPartly}, args...)...)
	}
}

// watch asks the server for the state of an operation until the operation is over. It then prints
// the result.
func (f answerFlags) watch(p *Program, id string) error {
	progress := newProgress(p.Stderr)
	defer progress.end()
	for seen := time.Now(); ; {
		o, raw, err := fetch[api.Operation](f.serverFlags, p, http.MethodGet, "/operations/"+id, nil)
		op := operation{o}
		switch {
		case p.Ctx.Err() != nil || errors.Is(err, errSilent) && time.Since(seen) < watchBlind:
		case err != nil:
			return err
		default:
			seen = time.Now()
			progress.show(op)
		}
		if err == nil && op.isOver() {
			progress.end()
			return errors.Join(f.print(p, command{answer: o, text: startedText}, raw), op.outcome(f.displayAddress()))
		}
		if err := p.wait("%s continues on the server; watch it with: dlo operations watch %s", id, id); err != nil {
			return err
		}
	}
}

// progress shows how far an operation has progressed. On a terminal it redraws a line. Otherwise it
// prints a line for each change of state and for each further tenth of the letters.
type progress struct {
	out    io.Writer
	redraw bool
	width  int    // length of the line that is redrawn
	last   string // state, phase and reason that were printed last
	tenth  int    // tenth of the letters that was printed last
}

func newProgress(out io.Writer) *progress {
	return &progress{out: out, redraw: terminal(out), tenth: -1}
}

// lineWidth is in columns, without the ellipsis. A longer line could wrap, and a wrapped line
// cannot be redrawn.
const lineWidth = 76

func (g *progress) show(o operation) {
	gone := o.Total - o.count(deadletter.ResultPending, deadletter.ResultReleased, deadletter.ResultCancelled)
	line := deadletter.Visible(fmt.Sprintf("%s: %d of %d letters, %s", o.ID, gone, o.Total, o.words()))
	tenth := gone * 10 / max(1, o.Total)
	switch now := string(o.State) + string(o.Phase) + o.Why + o.Away; {
	case g.redraw:
		line = deadletter.Cut(line, lineWidth)
		fmt.Fprintf(g.out, "\r%-*s", g.width, line)
		g.width = len(line)
	case now != g.last || tenth != g.tenth:
		g.last, g.tenth = now, tenth
		fmt.Fprintln(g.out, line)
	}
}

// end moves the cursor to the line below the one that is redrawn.
func (g *progress) end() {
	if g.width > 0 {
		fmt.Fprintln(g.out)
		g.width = 0
	}
}
