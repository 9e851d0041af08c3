package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// pickedFor returns a phrase that names what a pick applies to: "queue sms-*", "group G-418" or
// "letter 019a…".
func pickedFor(p *api.Pick) string {
	switch p.For {
	case "letter":
		return "letter " + string(p.Letter)
	case "group":
		return "group " + p.Group.String()
	}
	return boundQueue(p.Queue, p.Key)
}

// boundQueue returns a phrase that names the queue and the routing key of a binding.
func boundQueue(queue, key string) string {
	if key != "" {
		return "queue " + queue + " with key " + key
	}
	return "queue " + queue
}

// pickWords returns a description of a pick, which binds a type to a queue. It contains the number
// of this binding, because `dlo types unbind` needs the number.
func pickWords(p api.Pick) string {
	return fmt.Sprintf("binding %d: %s is decoded as %s", p.ID, pickedFor(&p), p.Type)
}

type typesBindCmd struct {
	answerFlags
	Queue  string `arg:"" name:"queue" help:"The queue that letters died in; * stands for anything, ? for one character."`
	Type   string `arg:"" name:"type" help:"The full name of a registered message type."`
	Key    string `name:"key" help:"Only letters with this routing key; * and ? as in the queue."`
	Reason string `name:"reason" help:"Why, for the audit."`
}

func (c typesBindCmd) Run(p *Program) error {
	body := api.BindingRequest{Queue: c.Queue, Key: c.Key, Type: c.Type, Reason: c.Reason}
	return add(p, c.answerFlags, "/bindings", body, pickWords)
}

type typesUnbindCmd struct {
	answerFlags
	ID int64 `arg:"" name:"id" help:"The number of a binding, or of a pick for a group or a letter, as dlo types bindings shows it."`
}

func (c typesUnbindCmd) Run(p *Program) error {
	return remove(p, c.answerFlags, "/bindings", "binding", c.ID)
}

type typesBindingsCmd struct{ answerFlags }

func (c typesBindingsCmd) Run(p *Program) error {
	var raw json.RawMessage
	if err := c.call(p, http.MethodGet, "/bindings", nil, &raw); err != nil {
		return err
	}
	switch c.Output {
	case "json":
		return printJSON(p.Stdout, raw, true)
	case "jsonl":
		var lists struct {
			Bindings      []json.RawMessage `json:"bindings"`
			Configuration []json.RawMessage `json:"configuration"`
		}
		if err := api.Unmarshal(raw, &lists); err != nil {
			return err
		}
		return printLines(p.Stdout, slices.Concat(lists.Bindings, lists.Configuration))
	}
	var a api.Bindings
	if err := api.Unmarshal(raw, &a); err != nil {
		return err
	}
	rows := [][]string{}
	for i := range a.Bindings {
		b := &a.Bindings[i]
		rows = append(rows, []string{
			strconv.FormatInt(b.ID, 10), pickedFor(b), b.Type, b.By, ago(b.At, time.Now()), b.Reason,
		})
	}
	for _, b := range a.Configuration {
		rows = append(rows, []string{"", boundQueue(b.Queue, b.Key), b.Type, "configuration", "", ""})
	}
	if len(rows) == 0 {
		fmt.Fprintln(p.Stderr, "there are no bindings and no picks")
	}
	return printTable(p.Stdout, []string{"ID", "FOR", "READ AS", "WHO", "SAVED", "REASON"}, rows)
}

type lettersTypeCmd struct {
	answerFlags
	ID     string `arg:"" name:"id" help:"The letter."`
	Type   string `arg:"" name:"type" help:"The full name of a registered message type."`
	For    string `name:"for" enum:"letter,group,binding" default:"letter" help:"letter: only this letter; group: its group; binding: its queue, for letters that do not name their type."`
	Reason string `name:"reason" help:"Why; kept in the history."`
}

func (c lettersTypeCmd) Run(p *Program) error {
	if _, err := deadletter.ParseID(c.ID); err != nil {
		return err
	}
	body := api.PickRequest{Type: c.Type, For: c.For, Reason: c.Reason}
	return add(p, c.answerFlags, "/letters/"+url.PathEscape(c.ID)+"/type", body, pickWords)
}
