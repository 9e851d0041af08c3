package cli

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// actFlags are what the verbs on letters have in common.
type actFlags struct {
	serverFlags
	outputFlag
	IDs    []string `arg:"" name:"ids" optional:"" help:"Letter ids; - reads them from standard input, one a line."`
	Query  *string  `name:"query" short:"q" help:"Instead of ids: all letters of a query, such as 'state:dead queue:sms'. An empty one selects every letter."`
	Except []string `name:"except" help:"Ids of letters of the query that are left out."`
	Reason string   `name:"reason" help:"Why, for the history."`
	DryRun bool     `name:"dry-run" help:"Say what would happen, and do nothing."`
	Yes    bool     `name:"yes" short:"y" help:"Do not ask."`
	Watch  bool     `name:"watch" help:"Wait until the verdict on every letter is known, and print it."`
}

// paceFlags are how a requeue is sent. What is not given has the server's default.
type paceFlags struct {
	Rate       *float64       `name:"rate" help:"Letters per second (50)."`
	Canary     *int           `name:"canary" help:"How many letters go first and are watched (10); 0 = none."`
	CanaryWait *time.Duration `name:"canary-wait" help:"How long the first letters are watched before the rest goes (2m)."`
	StopAt     *float64       `name:"stop-at" help:"Stop by itself when more than so many per cent came back (5); 0 = never."`
	MaxDepth   *int           `name:"max-depth" help:"Wait while a target queue has so many messages; 0 = no limit (0)."`
	Order      string         `name:"order" enum:"oldest,newest" default:"oldest" help:"Which letters go first: oldest or newest."`
	First      int            `name:"first" help:"Only so many letters, in that order; 0 = all."`
	To         string         `name:"to" help:"Send them to this queue of the same broker and vhost, instead of the one they died in."`
	Reset      bool           `name:"reset-attempts" help:"Begin their retries anew: what comes back has all retries of its rule again."`
}

// holdFlag is for what nothing undoes.
type holdFlag struct {
	Hold *time.Duration `name:"hold" help:"How long it can be undone before it begins (10s); 0s = not at all."`
}

type (
	lettersRequeueCmd struct {
		actFlags
		paceFlags
		holdFlag
	}
	lettersRetryNowCmd   struct{ actFlags }
	lettersRescheduleCmd struct {
		actFlags
		DueAt string `name:"due-at" required:"" help:"When they are due: from now, such as 30m or 12h, or a time such as 2026-11-22T06:00:00Z."`
	}
	lettersHoldCmd    struct{ actFlags }
	lettersReleaseCmd struct{ actFlags }
	lettersDiscardCmd struct{ actFlags }
	lettersRestoreCmd struct{ actFlags }
	lettersPurgeCmd   struct {
		actFlags
		holdFlag
	}
)

func (c lettersRequeueCmd) Run(p *Program) error { return c.act(p, deadletter.VerbRequeue, c.pace()) }

// pace is what the flags say of how letters are sent.
func (c lettersRequeueCmd) pace() map[string]any {
	more := map[string]any{"order": c.Order, "first": c.First, "to": c.To, "reset_attempts": c.Reset}
	put(more, "rate", c.Rate)
	put(more, "canary", c.Canary)
	put(more, "stop_at", c.StopAt)
	put(more, "max_depth", c.MaxDepth)
	putDuration(more, "canary_wait", c.CanaryWait)
	putDuration(more, "hold", c.Hold)
	return more
}

func (c lettersRetryNowCmd) Run(p *Program) error { return c.act(p, deadletter.VerbRetryNow, nil) }

func (c lettersRescheduleCmd) Run(p *Program) error {
	at, err := time.Parse(time.RFC3339, c.DueAt)
	if in, wrong := time.ParseDuration(c.DueAt); err != nil && wrong == nil && in >= 0 {
		at, err = time.Now().Add(in), nil
	}
	if err != nil {
		return fmt.Errorf("%w: --due-at %q is not a time from now, such as 30m or 12h, nor a time such as 2026-11-22T06:00:00Z", errUsage, c.DueAt)
	}
	return c.act(p, deadletter.VerbReschedule, map[string]any{"due_at": at.UTC()})
}

func (c lettersHoldCmd) Run(p *Program) error    { return c.act(p, deadletter.VerbHold, nil) }
func (c lettersReleaseCmd) Run(p *Program) error { return c.act(p, deadletter.VerbRelease, nil) }
func (c lettersDiscardCmd) Run(p *Program) error { return c.act(p, deadletter.VerbDiscard, nil) }
func (c lettersRestoreCmd) Run(p *Program) error { return c.act(p, deadletter.VerbRestore, nil) }

func (c lettersPurgeCmd) Run(p *Program) error {
	more := map[string]any{}
	putDuration(more, "hold", c.Hold)
	return c.act(p, deadletter.VerbPurge, more)
}

func put[T any](into map[string]any, name string, v *T) {
	if v != nil {
		into[name] = *v
	}
}

func putDuration(into map[string]any, name string, d *time.Duration) {
	if d != nil {
		into[name] = d.String()
	}
}

// askedFrom is how many letters a destructive verb may touch without a terminal to ask on and without --yes.
const askedFrom = 100

// act plans, asks and starts what a verb does to the chosen letters.
func (c actFlags) act(p *Program, verb deadletter.Verb, more map[string]any) error {
	api, err := c.client(p)
	if err != nil {
		return err
	}
	request, n, err := c.request(p, verb, more)
	if err != nil {
		return err
	}
	ask := !c.Yes && !c.DryRun && terminal(p.Stdin)
	destructive := verb.Irreversible() || verb == deadletter.VerbDiscard
	if !c.Yes && !c.DryRun && !ask && destructive && (c.Query != nil || n > askedFrom) {
		return fmt.Errorf("%w: a %s by query, or of more than %d letters, wants --yes where there is no terminal to ask on; --dry-run says what it would do", errUsage, verb, askedFrom)
	}
	if c.DryRun || ask {
		if done, err := c.plan(p, api, verb, request, ask); done || err != nil {
			return err
		}
	}
	var raw json.RawMessage
	if err := api.call(p.Ctx, http.MethodPost, "/operations", request, &raw, "Idempotency-Key", rand.Text()); err != nil {
		return err
	}
	var op operationAnswer
	if err := json.Unmarshal(raw, &op); err != nil {
		return err
	}
	if c.Watch {
		return c.watch(p, api, op.ID, c.outputFlag)
	}
	if c.Output != "table" {
		return printJSON(p.Stdout, raw, c.Output == "json")
	}
	fmt.Fprintf(p.Stdout, "%s: %s of %d letters, %s\n", op.ID, verb, op.Total, op.words())
	return nil
}

// request is the body of the call, and how many letters it names.
func (c actFlags) request(p *Program, verb deadletter.Verb, more map[string]any) (map[string]any, int, error) {
	request := map[string]any{"action": verb, "reason": c.Reason}
	for name, v := range more {
		request[name] = v
	}
	except, err := parsed(c.Except)
	if err != nil {
		return nil, 0, err
	}
	if len(except) > 0 {
		request["except"] = except
	}
	if c.Query != nil {
		if len(c.IDs) > 0 {
			return nil, 0, fmt.Errorf("%w: give ids or --query, not both", errUsage)
		}
		request["q"] = *c.Query
		return request, 0, nil
	}
	ids, err := c.ids(p)
	request["ids"] = ids
	return request, len(ids), err
}

// plan prints what a request would do. With ask, it asks whether to go on, and narrows the request to what was shown.
func (c actFlags) plan(p *Program, api *client, verb deadletter.Verb, request map[string]any, ask bool) (done bool, err error) {
	request["dry_run"] = true
	var raw json.RawMessage
	if err := api.call(p.Ctx, http.MethodPost, "/operations", request, &raw); err != nil {
		return true, err
	}
	if !ask && c.Output != "table" {
		return true, printJSON(p.Stdout, raw, c.Output == "json")
	}
	var plan planAnswer
	if err := json.Unmarshal(raw, &plan); err != nil {
		return true, err
	}
	out := p.Stdout
	if ask { // what is printed at the end may go into a file
		out = p.Stderr
	}
	if err := plan.print(out, verb); err != nil || !ask {
		return true, err
	}
	if plan.Eligible == 0 {
		return true, fmt.Errorf("no letter can be %s", verb.Past())
	}
	fmt.Fprintf(p.Stderr, "%s %d letters? [y/N] ", verb, plan.going())
	answer, _ := bufio.NewReader(p.Stdin).ReadString('\n')
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return true, fmt.Errorf("nothing was done")
	}
	delete(request, "dry_run")
	request["until"], request["expect"] = plan.Until, plan.Total
	if c.Query != nil {
		request["q"] = plan.Query
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
	return parsed(texts)
}

// parsed checks letter ids before anything is sent.
func parsed(ids []string) ([]string, error) {
	for _, id := range ids {
		if _, err := deadletter.ParseID(id); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// planAnswer is a dry run, as the API writes it.
type planAnswer struct {
	Query    string    `json:"query"`
	Until    time.Time `json:"until"`
	Total    int       `json:"total"`
	Eligible int       `json:"eligible"`
	First    int       `json:"first"`
	Pace     struct {
		Rate       float64 `json:"rate"`
		Canary     int     `json:"canary"`
		CanaryWait string  `json:"canary_wait"`
		StopAt     float64 `json:"stop_at"`
		MaxDepth   int     `json:"max_depth"`
		Order      string  `json:"order"`
		Hold       string  `json:"hold"`
	} `json:"pace"`
	Queues []struct {
		Queue     string `json:"queue"`
		Target    string `json:"target"`
		Letters   int    `json:"letters"`
		CameBack  int    `json:"came_back"`
		Consumers *int   `json:"consumers"`
		Ready     *int   `json:"ready"`
		Warning   string `json:"warning"`
	} `json:"queues"`
	Skipped []struct {
		Reason  string `json:"reason"`
		Letters int    `json:"letters"`
	} `json:"skipped"`
	Warnings []string `json:"warnings"`
}

// going is how many letters an operation would act on.
func (a planAnswer) going() int {
	if a.First > 0 {
		return min(a.First, a.Eligible)
	}
	return a.Eligible
}

func (a planAnswer) print(out interface{ Write([]byte) (int, error) }, verb deadletter.Verb) error {
	known := func(n *int) string {
		if n == nil {
			return "unknown"
		}
		return strconv.Itoa(*n)
	}
	fmt.Fprintf(out, "%s: %d of %d letters\n", verb, a.going(), a.Total)
	head := []string{"QUEUE", "LETTERS"}
	if verb.Sends() {
		head = []string{"QUEUE", "GOES TO", "LETTERS", "CAME BACK", "CONSUMERS", "READY", "NOTE"}
	}
	var rows [][]string
	for _, q := range a.Queues {
		row := []string{q.Queue, strconv.Itoa(q.Letters)}
		if verb.Sends() {
			row = []string{q.Queue, q.Target, strconv.Itoa(q.Letters), strconv.Itoa(q.CameBack), known(q.Consumers), known(q.Ready), q.Warning}
		}
		rows = append(rows, row)
	}
	if len(rows) > 0 {
		if err := table(out, head, rows); err != nil {
			return err
		}
	}
	for _, s := range a.Skipped {
		fmt.Fprintf(out, "left alone: %d, %s\n", s.Letters, deadletter.Visible(s.Reason))
	}
	for _, w := range a.Warnings {
		fmt.Fprintf(out, "note: %s\n", deadletter.Visible(w))
	}
	if text := a.paceWords(verb); text != "" && a.going() > 0 {
		fmt.Fprintln(out, text)
	}
	return nil
}

// paceWords says how the letters would go.
func (a planAnswer) paceWords(verb deadletter.Verb) string {
	var parts []string
	if a.Pace.Hold != "0s" && verb.Irreversible() {
		parts = append(parts, "can be undone for "+a.Pace.Hold)
	}
	if !verb.Sends() {
		return strings.Join(parts, "; ")
	}
	rate := strconv.FormatFloat(a.Pace.Rate, 'g', -1, 64) + " a second, " + a.Pace.Order + " first"
	if n := min(a.Pace.Canary, a.going()); n > 0 {
		parts = append(parts, fmt.Sprintf("%d go first and are watched for %s, then %s", n, a.Pace.CanaryWait, rate))
	} else {
		parts = append(parts, rate)
	}
	if a.Pace.StopAt > 0 {
		parts = append(parts, fmt.Sprintf("stops when more than %g %% come back", a.Pace.StopAt))
	}
	if a.Pace.MaxDepth > 0 {
		parts = append(parts, fmt.Sprintf("waits while a queue has %d messages", a.Pace.MaxDepth))
	}
	return strings.Join(parts, "; ")
}
