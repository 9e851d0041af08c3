package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

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

// printTried prints sentences and then a table. Both compare what happened to letters with what
// would have happened to them under the rules that were tried.
func printTried(p *Program, raw json.RawMessage) error {
	var a api.WhatIf
	if err := json.Unmarshal(raw, &a); err != nil {
		return err
	}
	printLooked(p, a)
	for _, note := range a.Notes {
		fmt.Fprintln(p.Stderr, deadletter.Visible(note))
	}
	for _, t := range a.Totals {
		fmt.Fprintln(p.Stdout, deadletter.Visible(t.Text))
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
