package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// pickRow is a type that a person picked, as the API writes it; without an ID it is a binding of the configuration.
type pickRow struct {
	ID     int64     `json:"id"`
	For    string    `json:"for"`
	Letter string    `json:"letter"`
	Group  string    `json:"group"`
	Queue  string    `json:"queue"`
	Key    string    `json:"key"`
	Type   string    `json:"type"`
	By     string    `json:"by"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// whom says what a pick is for: queue sms-*, group G-418, letter 019a….
func (r pickRow) whom() string {
	switch r.For {
	case "letter":
		return "letter " + r.Letter
	case "group":
		return "group " + r.Group
	}
	if r.Key != "" {
		return "queue " + r.Queue + " with key " + r.Key
	}
	return "queue " + r.Queue
}

// pickWords says what was picked; the number is what types unbind takes.
func pickWords(r pickRow) string {
	return fmt.Sprintf("binding %d: %s is read as %s", r.ID, r.whom(), r.Type)
}

type typesBindCmd struct {
	serverFlags
	outputFlag
	Queue  string `arg:"" name:"queue" help:"The queue that letters died in; * stands for anything, ? for one character."`
	Type   string `arg:"" name:"type" help:"The full name of a registered message type."`
	Key    string `name:"key" help:"Only letters with this routing key; * and ? as in the queue."`
	Reason string `name:"reason" help:"Why, for the audit."`
}

func (c typesBindCmd) Run(p *Program) error {
	body := map[string]any{"queue": c.Queue, "key": c.Key, "type": c.Type, "reason": c.Reason}
	return add(p, c.serverFlags, c.outputFlag, "/bindings", body, pickWords)
}

type typesUnbindCmd struct {
	serverFlags
	outputFlag
	ID int64 `arg:"" name:"id" help:"The number that types bindings shows, of a binding or of what was picked for a group or a letter."`
}

func (c typesUnbindCmd) Run(p *Program) error {
	return remove(p, c.serverFlags, c.outputFlag, "/bindings", "binding", c.ID)
}

type typesBindingsCmd struct {
	serverFlags
	outputFlag
}

func (c typesBindingsCmd) Run(p *Program) error {
	api, err := c.client(p)
	if err != nil {
		return err
	}
	var raw json.RawMessage
	if err := api.call(p.Ctx, http.MethodGet, "/bindings", nil, &raw); err != nil {
		return err
	}
	if c.Output == "json" {
		return printJSON(p.Stdout, raw, true)
	}
	var parts struct{ Bindings, Configuration []json.RawMessage }
	if err := json.Unmarshal(raw, &parts); err != nil {
		return err
	}
	rows := [][]string{}
	for i, part := range append(parts.Bindings, parts.Configuration...) {
		if c.Output == "jsonl" {
			if err := printJSON(p.Stdout, part, false); err != nil {
				return err
			}
			continue
		}
		var r pickRow
		if err := json.Unmarshal(part, &r); err != nil {
			return err
		}
		if i < len(parts.Bindings) {
			rows = append(rows, []string{strconv.FormatInt(r.ID, 10), r.whom(), r.Type, r.By, ago(r.At, time.Now()), r.Reason})
		} else {
			rows = append(rows, []string{"", r.whom(), r.Type, "configuration", "", ""})
		}
	}
	if c.Output == "jsonl" {
		return nil
	}
	if len(rows) == 0 {
		fmt.Fprintln(p.Stderr, "there are no bindings, and nothing was picked")
	}
	return table(p.Stdout, []string{"ID", "FOR", "READ AS", "WHO", "SAVED", "REASON"}, rows)
}

type lettersTypeCmd struct {
	serverFlags
	outputFlag
	ID     string `arg:"" name:"id" help:"The letter."`
	Type   string `arg:"" name:"type" help:"The full name of a registered message type."`
	For    string `name:"for" enum:"letter,group,binding" default:"letter" help:"letter: this one; group: its group; binding: its queue, where a letter says nothing itself."`
	Reason string `name:"reason" help:"Why, for the history."`
}

func (c lettersTypeCmd) Run(p *Program) error {
	if _, err := deadletter.ParseID(c.ID); err != nil {
		return err
	}
	body := map[string]any{"type": c.Type, "for": c.For, "reason": c.Reason}
	return add(p, c.serverFlags, c.outputFlag, "/letters/"+url.PathEscape(c.ID)+"/type", body, pickWords)
}
