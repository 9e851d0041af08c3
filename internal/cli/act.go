package cli

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// actFlags are the flags that every command that acts on letters has.
type actFlags struct {
	answerFlags
	IDs    []string `arg:"" name:"ids" optional:"" help:"Letter ids; - reads them from standard input, one per line."`
	Query  *string  `name:"query" short:"q" help:"Instead of ids: all letters of a query, for example 'state:dead queue:sms'. An empty query selects every letter."`
	Except []string `name:"except" help:"Ids of letters of the query that are left out."`
	Reason string   `name:"reason" help:"Why; kept in the history."`
	DryRun bool     `name:"dry-run" help:"Show what would happen, and do nothing."`
	Yes    bool     `name:"yes" short:"y" help:"Do not ask."`
	Watch  bool     `name:"watch" help:"Wait until the verdict on every letter is known, and print it."`

	TakeOver []string `name:"take-over" help:"Cancel the rest of these paused or stopped operations, for example O-77, and act on their letters."`
}

// paceFlags are the flags that set how fast a requeue sends letters, and which letters it sends
// first. The server's default applies to each flag that is not set.
type paceFlags struct {
	Rate       *float64  `name:"rate" help:"Letters per second (50)."`
	Canary     *int      `name:"canary" help:"How many letters go first and are watched (10); 0 = none."`
	CanaryWait *duration `name:"canary-wait" help:"How long the first letters are watched before the rest goes (2m)."`
	StopAt     *float64  `name:"stop-at" help:"Stop automatically when more than this percentage of the sent letters has come back (5); 0 = never."`
	MaxDepth   *int      `name:"max-depth" help:"Wait while a target queue has this many messages; 0 = no limit (0)."`
	Order      string    `name:"order" enum:"oldest,newest" default:"oldest" help:"Which letters go first: oldest or newest."`
	First      int       `name:"first" help:"At most this many letters, in that order; 0 = all."`
	To         string    `name:"to" help:"Send them to this queue of the same broker and vhost, instead of the one they died in."`
	Reset      bool      `name:"reset-attempts" help:"Start their retries again: a letter that comes back has all retries of its rule again."`
}

// restoredFlag is the flag --include-restored, for a store that was restored from a copy. With this
// flag, a plan includes letters that may have been sent after that copy was made.
type restoredFlag struct {
	Restored bool `name:"include-restored" help:"Include letters that may have been sent after the copy was made from which the store was restored. A query for doubt:restored includes them anyway."`
}

// holdFlag is the flag --hold. It sets how long an operation that cannot be undone waits before it
// starts.
type holdFlag struct {
	Hold *duration `name:"hold" help:"How long the operation waits before it starts, and can be undone (10s); 0s = start at once."`
}

type (
	lettersRequeueCmd struct {
		actFlags
		paceFlags
		holdFlag
		restoredFlag
	}
	lettersRetryNowCmd   struct{ actFlags }
	lettersRescheduleCmd struct {
		actFlags
		DueAt string `name:"due-at" required:"" help:"When they are due: from now, for example 30m or 12h, or a time such as 2026-11-22T06:00:00Z."`
	}
	lettersHoldCmd    struct{ actFlags }
	lettersReleaseCmd struct {
		actFlags
		restoredFlag
	}
	lettersDiscardCmd struct{ actFlags }
	lettersRestoreCmd struct{ actFlags }
	lettersPurgeCmd   struct {
		actFlags
		holdFlag
	}
)

func (c lettersRequeueCmd) Run(p *Program) error { return c.act(p, deadletter.VerbRequeue, c.pace()) }

// pace returns a request in which only those fields are set that `dlo letters requeue` has flags
// for. The flags say how fast letters are sent, to which queue, how long the operation is held
// before it starts, and whether restored letters are included.
func (c lettersRequeueCmd) pace() api.OperationRequest {
	return api.OperationRequest{
		Rate: c.Rate, Canary: c.Canary, CanaryWait: (*time.Duration)(c.CanaryWait), StopAt: c.StopAt, MaxDepth: c.MaxDepth,
		Order: c.Order, First: c.First, To: c.To, Reset: c.Reset, Restored: c.Restored, Hold: (*time.Duration)(c.Hold),
	}
}

func (c lettersRetryNowCmd) Run(p *Program) error {
	return c.act(p, deadletter.VerbRetryNow, api.OperationRequest{})
}

func (c lettersRescheduleCmd) Run(p *Program) error {
	at, err := time.Parse(time.RFC3339, c.DueAt)
	if in, wrong := deadletter.ParseDuration(c.DueAt); err != nil && wrong == nil && in >= 0 {
		at, err = time.Now().Add(in), nil
	}
	if err != nil {
		return fmt.Errorf(
			"%w: --due-at %q is not a time from now, for example 30m or 12h, nor a time such as 2026-11-22T06:00:00Z",
			errUsage, c.DueAt,
		)
	}
	return c.act(p, deadletter.VerbReschedule, api.OperationRequest{DueAt: at})
}

func (c lettersHoldCmd) Run(p *Program) error {
	return c.act(p, deadletter.VerbHold, api.OperationRequest{})
}

func (c lettersReleaseCmd) Run(p *Program) error {
	return c.act(p, deadletter.VerbRelease, api.OperationRequest{Restored: c.Restored})
}

func (c lettersDiscardCmd) Run(p *Program) error {
	return c.act(p, deadletter.VerbDiscard, api.OperationRequest{})
}

func (c lettersRestoreCmd) Run(p *Program) error {
	return c.act(p, deadletter.VerbRestore, api.OperationRequest{})
}

func (c lettersPurgeCmd) Run(p *Program) error {
	return c.act(p, deadletter.VerbPurge, api.OperationRequest{Hold: (*time.Duration)(c.Hold)})
}

// askedFrom is a limit for a destructive command that runs without a terminal, so that nobody can
// be asked. Without --yes, such a command may act on at most this number of letters.
const askedFrom = 100

// act starts an operation on the chosen letters. Before that, it may show a plan and ask for
// confirmation. The parameter "request" holds the values that only this verb needs.
func (c actFlags) act(p *Program, verb deadletter.Verb, request api.OperationRequest) error {
	request.Action, request.Reason, request.TakeOver = verb, c.Reason, c.TakeOver
	if err := c.chooseLetters(p, &request); err != nil {
		return err
	}
	ask := !c.Yes && !c.DryRun && terminal(p.Stdin)
	destructive := verb.Irreversible() || verb == deadletter.VerbDiscard
	if !c.Yes && !c.DryRun && !ask && destructive && (c.Query != nil || len(request.IDs) > askedFrom) {
		return fmt.Errorf(
			"%w: a %s by query, or of more than %d letters, needs --yes when there is no terminal to ask on; --dry-run says what it would do",
			errUsage, verb, askedFrom,
		)
	}
	if c.DryRun || ask {
		if done, err := c.planAndAsk(p, verb, &request, ask); done || err != nil {
			return err
		}
	}
	var raw json.RawMessage
	if err := c.call(p, http.MethodPost, "/operations", request, &raw, "Idempotency-Key", rand.Text()); err != nil {
		return err
	}
	var op operation
	if err := api.Unmarshal(raw, &op); err != nil {
		return err
	}
	if c.Watch {
		return c.watch(p, op.ID.String())
	}
	if c.Output != "table" {
		return printJSON(p.Stdout, raw, c.Output == "json")
	}
	return op.print(p.Stdout)
}

// chooseLetters puts the letters that the command line selects into the request.
func (c actFlags) chooseLetters(p *Program, request *api.OperationRequest) (err error) {
	if request.Except, err = checkIDs(c.Except); err != nil {
		return err
	}
	if c.Query == nil {
		request.IDs, err = c.ids(p)
		return err
	}
	if len(c.IDs) > 0 {
		return fmt.Errorf("%w: give ids or --query, not both", errUsage)
	}
	request.Q = c.Query
	return nil
}

// planAndAsk asks the server for a dry run and prints its effects. If "ask" is true, it then asks
// the user whether to continue, and limits the request to the letters that the dry run found.
func (c actFlags) planAndAsk(
	p *Program, verb deadletter.Verb, request *api.OperationRequest, ask bool,
) (done bool, err error) {
	request.DryRun = true
	var raw json.RawMessage
	if err := c.call(p, http.MethodPost, "/operations", request, &raw); err != nil {
		return true, err
	}
	if !ask && c.Output != "table" {
		return true, printJSON(p.Stdout, raw, c.Output == "json")
	}
	var shown plan
	if err := api.Unmarshal(raw, &shown); err != nil {
		return true, err
	}
	out := p.Stdout
	if ask { // on stderr, because the final output goes to stdout, which may be a file
		out = p.Stderr
	}
	if err := shown.print(out, verb); err != nil || !ask {
		return true, err
	}
	if shown.Eligible == 0 {
		return true, fmt.Errorf("no letter can be %s", verb.Past())
	}
	if err := askUser(p, fmt.Sprintf("%s %d letters%s", verb, shown.letterCount(), shown.labelPhrase())); err != nil {
		return true, err
	}
	request.DryRun, request.Until, request.Expect = false, shown.Until, shown.Total
	if c.Query != nil {
		request.Q = &shown.Query
	}
	return false, nil
}

func (c actFlags) ids(p *Program) ([]string, error) {
	var texts []string
	for _, id := range c.IDs {
		if id != "-" {
			texts = append(texts, id)
			continue
		}
		lines := bufio.NewScanner(p.Stdin)
		for lines.Scan() {
			if line := strings.TrimSpace(lines.Text()); line != "" {
				texts = append(texts, line)
			}
		}
		if err := lines.Err(); err != nil {
			return nil, err
		}
	}
	if len(texts) == 0 {
		return nil, fmt.Errorf("%w: no letters were given: ids, - for ids on standard input, or --query", errUsage)
	}
	return checkIDs(texts)
}

// checkIDs returns the letter ids unchanged. It returns an error if one of them is not a letter id.
func checkIDs(ids []string) ([]string, error) {
	for _, id := range ids {
		if _, err := deadletter.ParseID(id); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// plan is the server's response to a dry run. It adds methods that print the response.
type plan struct{ api.Plan }

// letterCount returns the number of letters on which the operation would act.
func (a plan) letterCount() int {
	if a.First > 0 {
		return min(a.First, a.Eligible)
	}
	return a.Eligible
}

// labelPhrase returns a phrase that names the labels of the brokers on which the operation would
// act. It returns "" if none of these brokers has a label.
func (a plan) labelPhrase() string {
	var labels []string
	for _, q := range a.Queues {
		if q.Label != "" && !slices.Contains(labels, q.Label) {
			labels = append(labels, q.Label)
		}
	}
	if labels == nil {
		return ""
	}
	return " on " + deadletter.Visible(strings.Join(labels, ", "))
}

func (a plan) print(out io.Writer, verb deadletter.Verb) error {
	fmt.Fprintf(out, "%s: %d of %d letters%s\n", verb, a.letterCount(), a.Total, a.labelPhrase())
	head := []string{"QUEUE", "LETTERS"}
	if verb.Sends() {
		head = []string{"QUEUE", "GOES TO", "LETTERS", "CAME BACK", "CONSUMERS", "READY", "NOTE"}
	}
	var rows [][]string
	for _, q := range a.Queues {
		row := []string{q.Queue, strconv.Itoa(q.Letters)}
		if verb.Sends() {
			row = []string{
				q.Queue, q.Target, strconv.Itoa(q.Letters), strconv.Itoa(q.CameBack), queueNumber(q.Consumers),
				queueNumber(q.Ready), q.Warning,
			}
		}
		rows = append(rows, row)
	}
	if len(rows) > 0 {
		if err := printTable(out, head, rows); err != nil {
			return err
		}
	}
	for _, s := range a.Skipped {
		fmt.Fprintf(out, "left alone: %d, %s\n", s.Letters, deadletter.Visible(s.Reason))
	}
	for _, w := range a.Warnings {
		fmt.Fprintf(out, "note: %s\n", deadletter.Visible(w))
	}
	if text := a.paceWords(verb); text != "" && a.letterCount() > 0 {
		fmt.Fprintln(out, text)
	}
	return nil
}

// paceWords returns a sentence about how fast the letters would be sent, and how long the operation
// can be undone.
func (a plan) paceWords(verb deadletter.Verb) string {
	var parts []string
	if a.Pace.Hold > 0 && verb.Irreversible() {
		parts = append(parts, "can be undone for "+a.Pace.Hold.String())
	}
	if !verb.Sends() {
		return strings.Join(parts, "; ")
	}
	rate := strconv.FormatFloat(a.Pace.Rate, 'g', -1, 64) + " a second, " + map[deadletter.NewestFirst]string{true: api.NewestFirst, false: api.OldestFirst}[a.Pace.Newest] + " first"
	if n := min(a.Pace.Canary, a.letterCount()); n > 0 {
		parts = append(parts, fmt.Sprintf("%d go first and are watched for %s, then %s", n, a.Pace.CanaryWait, rate))
	} else {
		parts = append(parts, rate)
	}
	if a.Pace.StopAt > 0 {
		parts = append(parts, fmt.Sprintf("stops when more than %g%% come back", a.Pace.StopAt))
	}
	if a.Pace.MaxDepth > 0 {
		parts = append(parts, fmt.Sprintf("waits while a queue has %d messages", a.Pace.MaxDepth))
	}
	return strings.Join(parts, "; ")
}
