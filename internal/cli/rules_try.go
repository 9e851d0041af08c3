package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

type rulesTestCmd struct {
	answerFlags
	Config string `name:"config" placeholder:"FILE" help:"Test the rules of this file instead of those in use. The file is a list of rules, or a configuration file of which only the rules are read; - reads the standard input."`
	Query  string `name:"query" short:"q" help:"Test the newest letters of this query, for example queue:sms; state:dead,held,scheduled if omitted."`
	Limit  int    `name:"limit" short:"n" default:"500" help:"How many letters to look at, at most 500."`
}

func (c rulesTestCmd) Run(p *Program) error {
	body := api.RuleTestRequest{Query: c.Query, Limit: &c.Limit}
	if c.Config != "" {
		text, err := writtenRules(p, c.Config)
		if err != nil {
			return err
		}
		body.Rules = &text
	}
	var raw json.RawMessage
	if err := c.call(p, http.MethodPost, "/rules/test", body, &raw); err != nil {
		return inFile(err, c.Config)
	}
	if c.Output != "table" {
		return printJSON(p.Stdout, raw, c.Output == "json")
	}
	return printTried(p, raw)
}

// writtenRules reads the text of a file with rules to try. It stops after four times the size that
// the server accepts. A larger file need not be read further, because the server rejects it anyway.
func writtenRules(p *Program, name string) (string, error) {
	in, err := openInput(p, name)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errUsage, err)
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, 4*config.MaxPasted))
	return string(text), err
}

// inFile puts the name of the file into an error that lists mistakes in rules. It returns any other
// error unchanged.
func inFile(err error, name string) error {
	var wrong misread
	if !errors.As(err, &wrong) {
		return err
	}
	if wrong.name = name; name == "-" {
		wrong.name = "standard input"
	}
	return wrong
}

// printTried prints a table that compares what happened to letters with what would have happened to
// them under the rules that were tried.
func printTried(p *Program, raw json.RawMessage) error {
	var a api.WhatIf
	if err := api.Unmarshal(raw, &a); err != nil {
		return err
	}
	printLooked(p, a)
	for _, note := range a.Notes {
		fmt.Fprintln(p.Stderr, deadletter.Visible(note))
	}
	var rows [][]string
	for _, f := range a.Fates {
		changes := "yes"
		if f.Same {
			changes = "no"
		}
		var examples []string
		for _, id := range f.Examples {
			examples = append(examples, string(id))
		}
		rows = append(rows, []string{
			strconv.Itoa(f.Letters), changes, fateWords(f.Was.Rule, string(f.Was.State), f.Was.Severity),
			fateWords(f.Would.Rule, string(f.Would.Action), f.Would.Severity), f.Would.Delays,
			strings.Join(examples, " "),
		})
	}
	if len(rows) == 0 {
		return nil
	}
	return printTable(p.Stdout, []string{"LETTERS", "CHANGES", "NOW", "WOULD", "RETRIES", "SUCH AS"}, rows)
}

// fateWords returns a rule and its outcome as text. `dlo rules apply` prints them in the same form.
func fateWords(rule, outcome string, severity deadletter.Severity) string {
	if severity != "" {
		outcome += " (" + string(severity) + ")"
	}
	if rule == "" {
		return outcome
	}
	return rule + ": " + outcome
}

// printLooked prints how many letters the server examined, and how many it left out.
func printLooked(p *Program, a api.WhatIf) {
	matching := strconv.Itoa(a.Matching)
	if !a.Exact {
		matching += "+"
	}
	fmt.Fprintf(p.Stderr, "looked at %d of %s letters, newest first\n", a.Looked, matching)
	if a.Late > 0 {
		fmt.Fprintf(p.Stderr, "%d more were not looked at: time ran out\n", a.Late)
	}
	if a.LeftOut > 0 {
		fmt.Fprintf(
			p.Stderr,
			"%d letters were left out: they are gone, are in queues that you may not see, or are test letters of dlo\n",
			a.LeftOut,
		)
	}
}
