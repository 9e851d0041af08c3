package main

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

type lettersCmd struct {
	List    lettersListCmd    `cmd:"" help:"List letters, newest first."`
	Show    lettersShowCmd    `cmd:"" help:"Show one letter: why it died, its decoded body, its history."`
	Requeue lettersRequeueCmd `cmd:"" help:"Put letters back at the tail of the queue they died in."`
	Discard lettersDiscardCmd `cmd:"" help:"Take letters out of the way; restorable."`
	Restore lettersRestoreCmd `cmd:"" help:"Take discarded letters back."`
}

// letterRow is a letter of a list, as the API writes it.
type letterRow struct {
	ID         string    `json:"id"`
	State      string    `json:"state"`
	Queue      string    `json:"queue"`
	Reason     string    `json:"reason"`
	Type       string    `json:"type"`
	Group      string    `json:"group"`
	Attempts   int       `json:"attempts"`
	ReceivedAt time.Time `json:"received_at"`
	Summary    string    `json:"summary"`
	Error      string    `json:"error"`
}

type lettersListCmd struct {
	serverFlags
	outputFlag
	Query string `name:"query" short:"q" default:"" help:"Which letters, such as 'state:dead queue:sms,email'. Fields: state, queue, type, reason, group."`
	Limit int    `name:"limit" short:"n" default:"50" help:"How many at most; 0 = all."`
	Order string `name:"order" enum:"received,due" default:"received" help:"received: newest first; due: next due first."`
}

const apiPage = 500

func (c lettersListCmd) Run(p *program) error {
	api, err := c.client(p)
	if err != nil {
		return err
	}
	if c.Limit < 0 {
		return fmt.Errorf("%w: --limit is 0 or more", errUsage)
	}
	var raw []json.RawMessage
	next := ""
	for left := c.Limit; ; {
		page := apiPage
		if c.Limit > 0 {
			page = min(page, left)
		}
		var answer struct {
			Letters []json.RawMessage `json:"letters"`
			Next    string            `json:"next"`
		}
		values := url.Values{"q": {c.Query}, "order": {c.Order}, "limit": {strconv.Itoa(page)}}
		if next != "" {
			values.Set("after", next)
		}
		if err := api.call(p.ctx, http.MethodGet, "/letters?"+values.Encode(), nil, &answer); err != nil {
			return err
		}
		left -= len(answer.Letters)
		if c.Output == "jsonl" { // as they come: all letters may be many
			for _, l := range answer.Letters {
				if err := printJSON(p.stdout, l, false); err != nil {
					return err
				}
			}
		} else {
			raw = append(raw, answer.Letters...)
		}
		if next = answer.Next; next == "" || c.Limit > 0 && left <= 0 {
			break
		}
	}
	switch c.Output {
	case "jsonl":
		return nil
	case "json":
		if raw == nil {
			raw = []json.RawMessage{}
		}
		return printJSON(p.stdout, raw, true)
	}
	rows := make([][]string, len(raw))
	for i, r := range raw {
		var l letterRow
		if err := json.Unmarshal(r, &l); err != nil {
			return err
		}
		rows[i] = []string{l.ID, l.State, ago(l.ReceivedAt, time.Now()), l.Queue, l.Reason, l.Type, strconv.Itoa(l.Attempts), deadletter.Cut(strings.TrimSpace(l.Error+"  "+l.Summary), 80)}
	}
	if len(rows) == 0 {
		fmt.Fprintln(p.stderr, "no letter matches")
	}
	return table(p.stdout, []string{"ID", "STATE", "RECEIVED", "QUEUE", "REASON", "TYPE", "ATTEMPTS", "WHAT"}, rows)
}

type lettersShowCmd struct {
	serverFlags
	outputFlag
	ID string `arg:"" name:"id" help:"The letter's id."`
}

// letterDetail is what the table output shows of a letter.
type letterDetail struct {
	letterRow
	VHost      string     `json:"vhost"`
	Exchange   string     `json:"exchange"`
	RoutingKey string     `json:"routing_key"`
	Why        string     `json:"why"`
	DueAt      *time.Time `json:"due_at"`
	Size       int        `json:"size"`
	Decoded    *struct {
		Type          string          `json:"type"`
		JSON          json.RawMessage `json:"json"`
		UnknownFields int             `json:"unknown_fields"`
	} `json:"decoded"`
	Attempts []struct {
		Number  int       `json:"number"`
		Outcome string    `json:"outcome"`
		Detail  string    `json:"detail"`
		At      time.Time `json:"at"`
	} `json:"attempts"`
	History []struct {
		At     time.Time `json:"at"`
		Kind   string    `json:"kind"`
		Actor  string    `json:"actor"`
		Detail string    `json:"detail"`
	} `json:"history"`
}

func (c lettersShowCmd) Run(p *program) error {
	api, err := c.client(p)
	if err != nil {
		return err
	}
	if _, err := deadletter.ParseID(c.ID); err != nil {
		return err
	}
	var raw json.RawMessage
	if err := api.call(p.ctx, http.MethodGet, "/letters/"+url.PathEscape(c.ID), nil, &raw); err != nil {
		return err
	}
	if c.Output != "table" {
		return printJSON(p.stdout, raw, c.Output == "json")
	}
	var l letterDetail
	if err := json.Unmarshal(raw, &l); err != nil {
		return err
	}
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(p.stdout, "%-10s %s\n", name, deadletter.Visible(value))
		}
	}
	line("letter", l.ID)
	line("state", l.State)
	line("why", l.Why)
	line("error", l.Error)
	line("queue", fmt.Sprintf("%s (vhost %s)", l.Queue, l.VHost))
	line("reason", l.Reason)
	line("published", fmt.Sprintf("exchange %q, key %q", l.Exchange, l.RoutingKey))
	line("group", l.Group)
	line("type", l.Type)
	line("size", fmt.Sprintf("%d B", l.Size))
	line("received", l.ReceivedAt.Format(time.RFC3339))
	if l.DueAt != nil {
		line("due", l.DueAt.Format(time.RFC3339))
	}
	if l.Decoded != nil && len(l.Decoded.JSON) > 0 && string(l.Decoded.JSON) != "null" {
		indented, err := json.MarshalIndent(l.Decoded.JSON, "", "  ")
		if err != nil {
			return err
		}
		fmt.Fprintf(p.stdout, "\n%s\n", deadletter.VisibleLines(string(indented)))
		if l.Decoded.UnknownFields > 0 {
			fmt.Fprintf(p.stdout, "(%d unknown fields are left out; a requeue sends the stored bytes)\n", l.Decoded.UnknownFields)
		}
	}
	fmt.Fprintln(p.stdout)
	var rows [][]string
	for _, e := range l.History {
		rows = append(rows, []string{e.At.Format(time.RFC3339), e.Kind, e.Actor, e.Detail})
	}
	return table(p.stdout, []string{"TIME", "WHAT", "WHO", "DETAIL"}, rows)
}

// actFlags are what the verbs on letters have in common.
type actFlags struct {
	serverFlags
	outputFlag
	IDs    []string `arg:"" name:"ids" help:"Letter ids; - reads them from standard input, one a line."`
	Reason string   `name:"reason" help:"Why, for the history."`
	DryRun bool     `name:"dry-run" help:"Say what would happen, and do nothing."`
	Yes    bool     `name:"yes" short:"y" help:"Do not ask."`
	Watch  bool     `name:"watch" help:"Wait for the end and print the result."`
}

type (
	lettersRequeueCmd struct{ actFlags }
	lettersDiscardCmd struct{ actFlags }
	lettersRestoreCmd struct{ actFlags }
)

func (c lettersRequeueCmd) Run(p *program) error { return c.act(p, deadletter.VerbRequeue) }
func (c lettersDiscardCmd) Run(p *program) error { return c.act(p, deadletter.VerbDiscard) }
func (c lettersRestoreCmd) Run(p *program) error { return c.act(p, deadletter.VerbRestore) }

type planAnswer struct {
	Total    int `json:"total"`
	Eligible int `json:"eligible"`
	Queues   []struct {
		Queue     string `json:"queue"`
		Letters   int    `json:"letters"`
		Consumers *int   `json:"consumers"`
		Ready     *int   `json:"ready"`
		Warning   string `json:"warning"`
	} `json:"queues"`
	Skipped []struct {
		Reason  string `json:"reason"`
		Letters int    `json:"letters"`
	} `json:"skipped"`
}

type operationAnswer struct {
	ID     string         `json:"id"`
	State  string         `json:"state"`
	Total  int            `json:"total"`
	Counts map[string]int `json:"counts"`
}

func (c actFlags) act(p *program, verb deadletter.Verb) error {
	api, err := c.client(p)
	if err != nil {
		return err
	}
	ids, err := c.ids(p)
	if err != nil {
		return err
	}
	request := map[string]any{"action": verb, "ids": ids, "reason": c.Reason}
	ask := !c.Yes && terminal(p.stdin)
	if c.DryRun || ask {
		request["dry_run"] = true
		var raw json.RawMessage
		if err := api.call(p.ctx, http.MethodPost, "/operations", request, &raw); err != nil {
			return err
		}
		if c.DryRun && c.Output != "table" {
			return printJSON(p.stdout, raw, c.Output == "json")
		}
		var plan planAnswer
		if err := json.Unmarshal(raw, &plan); err != nil {
			return err
		}
		if err := plan.print(p, verb); err != nil || c.DryRun {
			return err
		}
		fmt.Fprintf(p.stderr, "%s %d letters? [y/N] ", verb, plan.Eligible)
		answer, _ := bufio.NewReader(p.stdin).ReadString('\n')
		if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
			return fmt.Errorf("nothing was done")
		}
		delete(request, "dry_run")
	}
	var raw json.RawMessage
	if err := api.call(p.ctx, http.MethodPost, "/operations", request, &raw, "Idempotency-Key", rand.Text()); err != nil {
		return err
	}
	var op operationAnswer
	if err := json.Unmarshal(raw, &op); err != nil {
		return err
	}
	if c.Watch {
		if raw, err = c.watch(p, api, &op); err != nil {
			return err
		}
	}
	if c.Output != "table" {
		if err := printJSON(p.stdout, raw, c.Output == "json"); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(p.stdout, "%s: %s of %d letters, %s\n", op.ID, verb, op.Total, op.words())
	}
	if left := op.Counts["skipped"] + op.Counts["failed"] + op.Counts["cancelled"]; c.Watch && left > 0 {
		if left == op.Total {
			return fmt.Errorf("%s: no letter was changed; see %s/operations/%s", op.ID, c.Server, op.ID)
		}
		return fmt.Errorf("%w: %d of %d letters, see %s/operations/%s", errPartly, op.Total-left, op.Total, c.Server, op.ID)
	}
	return nil
}

func (c actFlags) ids(p *program) ([]string, error) {
	var ids []string
	for _, id := range c.IDs {
		if id != "-" {
			ids = append(ids, id)
			continue
		}
		lines := bufio.NewScanner(p.stdin)
		for lines.Scan() {
			if line := strings.TrimSpace(lines.Text()); line != "" {
				ids = append(ids, line)
			}
		}
		if err := lines.Err(); err != nil {
			return nil, err
		}
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("%w: no letter ids were given", errUsage)
	}
	for _, id := range ids {
		if _, err := deadletter.ParseID(id); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// watch polls an operation until nothing of it is to go.
func (c actFlags) watch(p *program, api *client, op *operationAnswer) (json.RawMessage, error) {
	for {
		var raw json.RawMessage
		if err := api.call(p.ctx, http.MethodGet, "/operations/"+op.ID, nil, &raw); err != nil {
			return nil, err
		}
		*op = operationAnswer{}
		if err := json.Unmarshal(raw, op); err != nil {
			return nil, err
		}
		if terminal(p.stderr) {
			fmt.Fprintf(p.stderr, "\r%s: %s   ", op.ID, op.words())
		}
		if op.State != "running" {
			if terminal(p.stderr) {
				fmt.Fprintln(p.stderr)
			}
			return raw, nil
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-p.ctx.Done():
			return nil, fmt.Errorf("%s goes on on the server: %w", op.ID, p.ctx.Err())
		}
	}
}

// words says what an operation has done.
func (o operationAnswer) words() string {
	var parts []string
	for _, r := range []deadletter.Result{
		deadletter.ResultPending, deadletter.ResultReleased, deadletter.ResultConfirmed, deadletter.ResultChanged, deadletter.ResultCameBack,
		deadletter.ResultFailed, deadletter.ResultSkipped, deadletter.ResultCancelled,
	} {
		if n := o.Counts[strings.ReplaceAll(string(r), " ", "_")]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, r))
		}
	}
	return strings.Join(append([]string{o.State}, parts...), ", ")
}

func (a planAnswer) print(p *program, verb deadletter.Verb) error {
	known := func(n *int) string {
		if n == nil {
			return "unknown"
		}
		return strconv.Itoa(*n)
	}
	var rows [][]string
	for _, q := range a.Queues {
		rows = append(rows, []string{q.Queue, strconv.Itoa(q.Letters), known(q.Consumers), known(q.Ready), q.Warning})
	}
	fmt.Fprintf(p.stdout, "%s: %d of %d letters\n", verb, a.Eligible, a.Total)
	if err := table(p.stdout, []string{"QUEUE", "LETTERS", "CONSUMERS", "READY", "NOTE"}, rows); err != nil {
		return err
	}
	for _, s := range a.Skipped {
		fmt.Fprintf(p.stdout, "left alone: %d, %s\n", s.Letters, deadletter.Visible(s.Reason))
	}
	return nil
}
