package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// operateFlags are the flags of every command that starts an operation.
type operateFlags struct {
	answerFlags
	Reason string `help:"Why; kept in the history."`
	askFlags
	Watch bool `json:"-" help:"Wait until the verdict on every letter is known, and print it."`
}

// actFlags are the flags that every command that acts on letters has.
type actFlags struct {
	operateFlags
	IDs    []string    `arg:"" name:"ids" json:"-" optional:"" help:"Letter ids; - reads them from standard input, one per line."`
	Query  *string     `json:"q" short:"q" help:"Instead of ids: all letters of a query, for example 'state:dead queue:sms'. An empty query selects every letter."`
	Except []letterArg `help:"Ids of letters of the query that are left out."`

	TakeOver []string `name:"take-over" help:"Cancel the rest of these paused or stopped operations, for example O-77, and act on their letters."`
}

// paceFlags are the flags that set how fast a requeue sends letters, and which letters it sends
// first. The server's default applies to each flag that is not set.
type paceFlags struct {
	Rate       *float64 `help:"Letters per second (50)."`
	Canary     *int     `help:"How many letters go first and are watched (10); 0 = none."`
	CanaryWait *string  `name:"canary-wait" help:"How long the first letters are watched before the rest goes (2m)."`
	StopAt     *float64 `name:"stop-at" help:"Stop automatically when more than this percentage of the sent letters has come back (5); 0 = never."`
	MaxDepth   *int     `name:"max-depth" help:"Wait while a target queue has this many messages; 0 = no limit (0)."`
	Order      string   `enum:"oldest,newest" default:"oldest" help:"Which letters go first: oldest or newest."`
	First      int      `help:"At most this many letters, in that order; 0 = all."`
	To         string   `help:"Send them to this queue of the same broker and vhost, instead of the one they died in."`
	Reset      bool     `name:"reset-attempts" help:"Start their retries again: a letter that comes back has all retries of its rule again."`
}

// restoredFlag is the flag --include-restored, for a store that was restored from a copy. With this
// flag, a plan includes letters that may have been sent after that copy was made.
type restoredFlag struct {
	Restored bool `name:"include-restored" help:"Include letters that may have been sent after the copy was made from which the store was restored. A query for doubt:restored includes them anyway."`
}

// holdFlag is the flag --hold. It sets how long an operation that cannot be undone waits before it
// starts.
type holdFlag struct {
	Hold *string `help:"How long the operation waits before it starts, and can be undone (10s); 0s = start at once."`
}

// verbCmd does to letters what the name of the command says.
type verbCmd struct{ actFlags }

// Run starts the operation that the flags describe.
func (c verbCmd) Run(p *Program, k *kong.Context) error {
	ids, err := c.ids(p)
	if err != nil {
		return err
	}
	return c.act(p, k, ids, "")
}

// askedFrom is a limit for a destructive command that runs without a terminal, so that nobody can
// be asked. Without --yes, such a command may act on at most this number of letters.
const askedFrom = 100

// operate is an operation on letters. The dry run answers with a plan: its sum, what is left alone
// and why, and the queues.
func operate(verb deadletter.Verb) command {
	queues := command{rows: "queues", columns: "queue letters"}
	if verb.Sends() {
		queues.columns = "queue goes_to=target letters came_back consumers=consumers|count ready=ready|count " +
			"note=warning"
	}
	const sum = `{{template "labels" .}}`
	return command{
		route: "POST /operations", answer: api.Operation{}, text: startedText,
		ask:     `{{if .Eligible}}{{.Action}} {{planned .}} letters` + sum + `{{end}}`,
		nothing: "no letter can be {{.Action.Past}}",
		dry: &command{
			answer: api.Plan{},
			text:   "{{.Action}}: {{planned .}} of {{.Total}} letters" + sum,
			parts:  []command{queues, {text: `{{template "planned" .}}`}},
		},
	}
}

// act starts an operation on the letters with the given ids. If there are none, it is about those
// of a query, which is given or a flag. Before that, it may show a plan and ask, and then the
// operation has only the letters that the plan found.
func (f operateFlags) act(p *Program, k *kong.Context, ids []string, q string) error {
	values, err := given(p, k.Selected())
	if err != nil {
		return err
	}
	verb := deadletter.Verb(strings.ReplaceAll(k.Selected().Name, "-", "_"))
	values["action"] = verb
	if q != "" {
		values["q"] = q
	}
	if ids != nil {
		values["ids"] = ids
	}
	c := operate(verb)
	c.sure = !verb.Irreversible() && verb != deadletter.VerbDiscard || ids != nil && len(ids) <= askedFrom
	c.asked = func(plan json.RawMessage) {
		found := membersOf(plan)
		values["until"], values["expect"] = found["until"], found["total"]
		if ids == nil {
			values["q"] = found["query"]
		}
	}
	if !f.Watch || f.DryRun {
		_, err := f.perform(p, k, c, values)
		return err
	}
	quiet := *p
	quiet.Stdout = io.Discard // the verdict is what it prints
	raw, err := f.perform(&quiet, k, c, values)
	if err != nil {
		return err
	}
	return f.watch(p, plainJSON(membersOf(raw)["id"]))
}

// ids returns the ids of letters that the command line contains, and those on standard input. There
// are none if the command has a query.
func (c actFlags) ids(p *Program) (list []string, err error) {
	for _, id := range c.IDs {
		if id != "-" {
			list = append(list, id)
			continue
		}
		text, err := readInput(p, id)
		if err != nil {
			return nil, err
		}
		list = append(list, strings.Fields(string(text))...)
	}
	switch {
	case c.Query != nil && len(c.IDs) > 0:
		return nil, fmt.Errorf("%w: give ids or --query, not both", errUsage)
	case c.Query == nil && len(list) == 0:
		return nil, fmt.Errorf("%w: no letters were given: ids, - for ids on standard input, or --query", errUsage)
	}
	for _, id := range list {
		if _, err := deadletter.ParseID(id); err != nil {
			return nil, err
		}
	}
	return list, nil
}
