package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

type rulesCmd struct {
	List      rulesListCmd  `cmd:"" help:"The rules in use, in order: the first that matches a letter wins."`
	Test      rulesTestCmd  `cmd:"" help:"Show what rules would have done with the newest letters, beside what was done. Tests the rules in use, or with --config those of a file. Nothing is changed."`
	Apply     rulesApplyCmd `cmd:"" help:"Apply the rules in use to scheduled letters. Shows what would change, and asks."`
	Overrides overridesCmd  `cmd:"" help:"Manage redirects, which send the letters of one queue to another."`
}

type rulesListCmd struct {
	answerFlags
	YAML bool `name:"yaml" help:"As YAML, as in the file."`
}

func (c rulesListCmd) Run(p *Program) error {
	var raw json.RawMessage
	if err := c.call(p, http.MethodGet, "/rules", nil, &raw); err != nil {
		return err
	}
	var answer api.Rules
	if err := api.Unmarshal(raw, &answer); err != nil {
		return err
	}
	if c.YAML {
		text := answer.YAML
		if terminal(p.Stdout) {
			text = deadletter.VisibleLines(text)
		}
		_, err := fmt.Fprint(p.Stdout, text)
		return err
	}
	switch c.Output {
	case "json":
		return printJSON(p.Stdout, raw, true)
	case "jsonl":
		return printRuleLines(p.Stdout, raw)
	}
	fmt.Fprintln(p.Stdout, sourcePhrase(answer.File, answer.LoadedAt))
	return printRules(p.Stdout, append(answer.Rules, answer.Default))
}

// printRuleLines prints each rule of a response as a line of JSON. The last line is the default
// rule.
func printRuleLines(out io.Writer, answer json.RawMessage) error {
	var parts struct {
		Rules   []json.RawMessage `json:"rules"`
		Default json.RawMessage   `json:"default"`
	}
	if err := api.Unmarshal(answer, &parts); err != nil {
		return err
	}
	return printLines(out, append(parts.Rules, parts.Default))
}

// printRules prints rules as a table. The last rule of the list must be the default rule.
func printRules(out io.Writer, rules []api.Rule) error {
	var rows [][]string
	last := len(rules) - 1
	for i, r := range rules {
		number := strconv.Itoa(i + 1)
		if i == last {
			number = ""
		}
		rows = append(rows, []string{
			number, r.Name, whenWords(r, i == last), retryWords(r), severityWords(r, rules[last].Severity),
		})
	}
	return printTable(out, []string{"NO", "RULE", "WHEN", "RETRIES", "SEVERITY"}, rows)
}

// sourcePhrase returns a phrase that says from which file the rules were read, and when.
func sourcePhrase(file string, at time.Time) string {
	if file == "" {
		return "no rules file: these are the defaults"
	}
	return deadletter.Visible("read from "+file) + loadedWords(at)
}

func loadedWords(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return ", loaded " + ago(at, time.Now())
}

// whenWords returns a description of the letters to which a rule applies.
func whenWords(r api.Rule, last bool) string {
	if last {
		return "everything else"
	}
	var parts []string
	for _, c := range r.When {
		parts = append(parts, c.Field+" is "+c.Want)
	}
	if len(parts) == 0 {
		return "every letter"
	}
	return strings.Join(parts, " and ")
}

// severityWords returns the severity of the letters that die under a rule. A rule that has no
// severity of its own uses that of the default rule.
func severityWords(r api.Rule, fallback deadletter.Severity) string {
	switch {
	case r.Discard:
		return "none is dead"
	case r.Severity == "" && fallback != "":
		return string(fallback) + " (default)"
	}
	return string(r.Severity)
}

// retryWords returns a description of a rule's retries, such as the list of their delays.
func retryWords(r api.Rule) string {
	const shown = 5 // number of delays that a table shows at most
	switch {
	case r.Discard:
		return "discards"
	case r.Retry == nil:
		return "same as default (rejected letters only)"
	case len(r.Retry.Delays) == 0:
		return "none"
	}
	text := strings.Join(r.Retry.Delays[:min(shown, len(r.Retry.Delays))], " ")
	if more := len(r.Retry.Delays) - shown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if r.Retry.Jitter > 0 {
		text += ", ±" + strconv.FormatFloat(r.Retry.Jitter*100, 'g', 4, 64) + "%"
	}
	return text
}
