package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

type operationsCmd struct {
	List   operationsListCmd   `cmd:"" help:"List operations, newest first."`
	Show   operationsShowCmd   `cmd:"" help:"Show one operation: counts, queues, and the letters to look at."`
	Watch  operationsWatchCmd  `cmd:"" help:"Wait until the verdict on every letter is known, and print it."`
	Pause  operationsPauseCmd  `cmd:"" help:"Pause: send nothing more until it is resumed."`
	Resume operationsResumeCmd `cmd:"" help:"Resume a paused or stopped operation."`
	Cancel operationsCancelCmd `cmd:"" help:"Cancel the rest: letters that were not sent are left unchanged."`
	Rate   operationsRateCmd   `cmd:"" help:"Change how fast an operation sends."`
}

// operation is an api.Operation. It adds methods that print the operation.
type operation struct{ api.Operation }

// count returns how many letters have one of the given results.
func (o operation) count(results ...deadletter.Result) int {
	return countOf(o.Counts, results...)
}

func countOf(counts map[deadletter.Result]int, results ...deadletter.Result) int {
	n := 0
	for _, r := range results {
		n += counts[r]
	}
	return n
}

// words returns a description of the operation's state and of its results so far.
func (o operation) words() string {
	state := string(o.State)
	if o.State == deadletter.OperationRunning {
		state = string(o.Phase)
		switch o.Phase {
		case deadletter.PhaseHolding:
			state = "begins at " + o.PhaseUntil.Local().Format("15:04:05")
		case deadletter.PhaseWaiting:
			state = "watches the first until " + o.PhaseUntil.Local().Format("15:04:05")
		}
	}
	parts := []string{state}
	if o.Why != "" {
		parts = append(parts, o.Why)
	}
	if counts := countWords(o.Counts); counts != "" {
		parts = append(parts, counts)
	}
	if o.Twice > 0 {
		parts = append(parts, fmt.Sprintf("%d may have been sent twice", o.Twice))
	}
	return deadletter.Visible(strings.Join(parts, ", "))
}

// print prints one line with the action, the number of letters, the state and the results.
func (o operation) print(out io.Writer) error {
	_, err := fmt.Fprintf(out, "%s: %s of %d letters, %s\n", o.ID, o.Action, o.Total, o.words())
	return err
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
	switch o.State {
	case deadletter.OperationDone, deadletter.OperationStopped:
		return true
	case deadletter.OperationCancelled:
		return o.Phase == deadletter.PhaseOver
	}
	return false
}

const (
	watchEvery = 500 * time.Millisecond
	// how long to keep watching while the server does not respond; operations survive a restart of
	// dlo
	watchBlind = 2 * time.Minute
)

// watch asks the server for the state of an operation until the operation is over. It then prints
// the result.
func (f answerFlags) watch(p *Program, id string) error {
	progress := newProgress(p.Stderr)
	seen := time.Now()
	for {
		var raw json.RawMessage
		var op operation
		err := f.call(p, http.MethodGet, "/operations/"+url.PathEscape(id), nil, &raw)
		if err == nil {
			err = api.Unmarshal(raw, &op)
		}
		if p.Ctx.Err() != nil {
			progress.end()
			return fmt.Errorf(
				"%w: %s continues on the server; watch it with: dlo operations watch %s", errPartly, id, id,
			)
		}
		if errors.Is(err, errSilent) && time.Since(seen) < watchBlind {
			time.Sleep(watchEvery)
			continue
		}
		if err != nil {
			progress.end()
			return err
		}
		seen = time.Now()
		progress.show(op)
		if op.isOver() {
			progress.end()
			if f.Output != "table" {
				err = printJSON(p.Stdout, raw, f.Output == "json")
			} else {
				err = op.print(p.Stdout)
			}
			if err != nil {
				return err
			}
			return op.outcome(f.displayAddress())
		}
		select {
		case <-time.After(watchEvery):
		case <-p.Ctx.Done():
		}
	}
}

type operationsListCmd struct {
	answerFlags
	Limit int `name:"limit" short:"n" default:"50" help:"How many at most; 0 = all."`
}

func (c operationsListCmd) Run(p *Program) error {
	list := listing[operation]{
		path:  "/operations",
		key:   "operations",
		limit: c.Limit,
		head:  []string{"ID", "ACTION", "STATE", "LETTERS", "STARTED", "WHO", "WHAT", "REASON"},
		none:  "there are no operations",
	}
	return list.run(p, c.answerFlags, func(o operation) []string {
		return []string{
			o.ID.String(), string(o.Action), string(o.State), strconv.Itoa(o.Total), ago(o.CreatedAt, time.Now()), o.By,
			o.words(), o.Reason,
		}
	})
}

type operationsShowCmd struct {
	answerFlags
	operationArg
	Result string `name:"result" help:"Which letters to list: results with commas between them, for example came_back,skipped; or twice. By default, the letters to look at."`
	Limit  int    `name:"limit" short:"n" default:"50" help:"How many letters at most."`
}

// operationArg is the argument that names an operation, such as O-77.
type operationArg struct {
	ID string `arg:"" name:"operation" help:"The operation, for example O-77."`
}

func (a operationArg) path() (string, error) {
	id, err := deadletter.ParseOperationID(a.ID)
	return "/operations/" + id.String(), err
}

func (c operationsShowCmd) Run(p *Program) error {
	path, err := c.path()
	if err != nil {
		return err
	}
	if c.Limit < 1 || c.Limit > apiPage {
		return fmt.Errorf("%w: --limit is 1 to %d", errUsage, apiPage)
	}
	values := url.Values{"limit": {strconv.Itoa(c.Limit)}}
	if c.Result != "" {
		values.Set("result", c.Result)
	}
	var o api.OperationLetters
	if printed, err := c.fetch(p, http.MethodGet, path+"?"+values.Encode(), nil, &o); printed || err != nil {
		return err
	}
	return printOperation(p, &o)
}

func printOperation(p *Program, o *api.OperationLetters) error {
	line := func(name, value string) { printFact(p.Stdout, name, value) }
	line("operation", o.ID.String())
	line("action", string(o.Action))
	line("stands", operation{o.Operation}.words())
	line("letters", strconv.Itoa(o.Total))
	line("query", o.Query)
	line("to", o.To)
	line("reason", o.Reason)
	line("who", o.By+", by "+string(o.Through))
	line("started", o.CreatedAt.Format(time.RFC3339))
	if !o.FinishedAt.IsZero() {
		line("finished", o.FinishedAt.Format(time.RFC3339))
	}
	if o.Action.Sends() {
		line("rate", strconv.FormatFloat(o.Rate, 'g', -1, 64)+" a second")
		if n := o.NewFailures; n != nil {
			more := ""
			if !n.Exact {
				more = "more than "
			}
			line("new", fmt.Sprintf("%s%d letters of the same groups failed since", more, n.Count))
		}
	}
	var rows [][]string
	for _, q := range o.Queues {
		rows = append(rows, []string{q.Queue, countWords(q.Counts)})
	}
	fmt.Fprintln(p.Stdout)
	if err := printTable(p.Stdout, []string{"QUEUE", "LETTERS"}, rows); err != nil {
		return err
	}
	if len(o.Letters) == 0 {
		return nil
	}
	rows = nil
	for _, l := range o.Letters {
		twice := ""
		if l.Twice {
			twice = "perhaps twice"
		}
		rows = append(rows, []string{
			string(l.Letter), l.Queue, string(l.Result), l.Reason, twice,
		})
	}
	fmt.Fprintln(p.Stdout)
	if err := printTable(p.Stdout, []string{"LETTER", "QUEUE", "RESULT", "WHY", "SENT"}, rows); err != nil {
		return err
	}
	if o.Next != "" {
		fmt.Fprintln(p.Stderr, "there are more; --limit and --result choose which are listed")
	}
	return nil
}

func countWords(counts map[deadletter.Result]int) string {
	var parts []string
	for _, r := range deadletter.Results {
		if n := countOf(counts, r); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, r))
		}
	}
	return strings.Join(parts, ", ")
}

type operationsWatchCmd struct {
	answerFlags
	operationArg
}

func (c operationsWatchCmd) Run(p *Program) error {
	id, err := deadletter.ParseOperationID(c.ID)
	if err != nil {
		return err
	}
	return c.watch(p, id.String())
}

// steerFlags are the flags of every command that steers an operation.
type steerFlags struct {
	answerFlags
	operationArg
}

type (
	operationsPauseCmd  struct{ steerFlags }
	operationsResumeCmd struct{ steerFlags }
	operationsCancelCmd struct{ steerFlags }
	operationsRateCmd   struct {
		steerFlags
		Rate float64 `arg:"" name:"rate" help:"Letters per second."`
	}
)

func (c operationsPauseCmd) Run(p *Program) error { return c.steer(p, http.MethodPost, "/pause", nil) }

func (c operationsResumeCmd) Run(p *Program) error {
	return c.steer(p, http.MethodPost, "/resume", nil)
}

func (c operationsCancelCmd) Run(p *Program) error {
	return c.steer(p, http.MethodPost, "/cancel", nil)
}

func (c operationsRateCmd) Run(p *Program) error {
	return c.steer(p, http.MethodPatch, "", api.RateChange{Rate: &c.Rate})
}

func (f steerFlags) steer(p *Program, method, what string, body any) error {
	path, err := f.path()
	if err != nil {
		return err
	}
	var o operation
	if printed, err := f.fetch(p, method, path+what, body, &o); printed || err != nil {
		return err
	}
	return o.print(p.Stdout)
}
