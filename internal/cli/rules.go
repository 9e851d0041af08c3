package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

type rulesCmd struct {
	List      rulesListCmd  `cmd:"" help:"The rules in use, in order: the first that matches a letter wins."`
	Test      rulesTestCmd  `cmd:"" help:"Show which rule applies to a letter or to facts, and why. With -q, show what each rule would do with stored letters. With --config, test the rules of a file instead of those in use. Nothing is changed."`
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
	if err := json.Unmarshal(raw, &answer); err != nil {
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
	if err := json.Unmarshal(answer, &parts); err != nil {
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
func sourcePhrase(file string, at api.Time) string {
	if file == "" {
		return "no rules file: these are the defaults"
	}
	return deadletter.Visible("read from "+file) + loadedWords(at)
}

func loadedWords(at api.Time) string {
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

type rulesTestCmd struct {
	answerFlags
	Letter   string            `arg:"" name:"letter" optional:"" help:"A letter's id, or the last 8 digits of it."`
	Config   string            `name:"config" placeholder:"FILE" help:"Try the rules of this file instead of those in use. The file is a list of rules, or a configuration file of which only the rules are read; - reads the standard input. Without a letter or facts, show what these rules would have done with the newest letters, beside what was done."`
	Query    string            `name:"query" short:"q" help:"Instead of a letter or facts: show what each rule would do with the newest letters of this query, for example state:dead. With --config alone, the query is state:dead,held,scheduled."`
	Limit    int               `name:"limit" short:"n" default:"500" help:"With --query: how many letters to look at, at most 500."`
	Queue    string            `name:"queue" help:"Facts instead of a letter: the queue that it died in."`
	Reason   string            `name:"reason" help:"Why it died: rejected, expired, maxlen, delivery_limit."`
	Type     string            `name:"type" help:"The full name of its protobuf type."`
	Error    string            `name:"error" help:"The text of its error."`
	Exchange string            `name:"exchange" help:"The exchange of its first publish."`
	Key      string            `name:"key" help:"The routing key of its first publish."`
	Broker   string            `name:"broker" help:"The broker, by its name in the configuration."`
	VHost    string            `name:"vhost" help:"The vhost."`
	Header   map[string]string `name:"header" mapsep:"none" help:"A header, as name=value; may be given again."`
	Field    map[string]string `name:"field" mapsep:"none" help:"A field of the body, as path=value; may be given again."`
	Attempts int               `name:"attempts" help:"Attempts used so far."`
	Age      api.Duration      `name:"age" help:"The time since it was received, for example 2h."`
}

// facts returns the facts that the flags state about a letter. It returns nil if no such flag is
// set.
func (c rulesTestCmd) facts() *api.Facts {
	facts := api.Facts{
		Broker:   c.Broker,
		VHost:    c.VHost,
		Queue:    c.Queue,
		Exchange: c.Exchange,
		Key:      c.Key,
		Reason:   c.Reason,
		Type:     c.Type,
		Error:    c.Error,
		Attempts: c.Attempts,
	}
	if len(c.Header) > 0 {
		facts.Headers = c.Header
	}
	if len(c.Field) > 0 {
		facts.Fields = map[string][]string{}
		for path, v := range c.Field {
			facts.Fields[path] = []string{v}
		}
	}
	if c.Age != 0 {
		facts.Age = c.Age.String()
	}
	if reflect.ValueOf(facts).IsZero() {
		return nil
	}
	return &facts
}

// body returns the request for the server. The command line must contain exactly one of a letter, a
// query and facts. If it contains only --config, the query is state:dead,held,scheduled.
func (c rulesTestCmd) body() (api.RuleTestRequest, error) {
	var none api.RuleTestRequest
	facts := c.facts()
	if c.Query == "" && c.Config != "" && c.Letter == "" && facts == nil {
		c.Query = "state:dead,held,scheduled"
	}
	switch {
	case c.Letter != "" && (c.Query != "" || facts != nil), c.Query != "" && facts != nil:
		return none, fmt.Errorf("%w: name only one of these: a letter, a query or facts", errUsage)
	case c.Letter != "":
		return api.RuleTestRequest{Letter: &c.Letter}, nil
	case c.Query != "":
		return api.RuleTestRequest{Query: &c.Query, Limit: &c.Limit}, nil
	case facts == nil:
		return none, fmt.Errorf(
			"%w: name a letter, a query, or facts such as --queue and --reason; or rules to be tried, with --config",
			errUsage,
		)
	}
	return api.RuleTestRequest{Facts: facts}, nil
}

func (c rulesTestCmd) Run(p *Program) error {
	body, err := c.body()
	if err != nil {
		return err
	}
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
	switch {
	case c.Output != "table":
		return printJSON(p.Stdout, raw, c.Output == "json")
	case body.Query != nil && body.Rules != nil:
		return printTried(p, raw)
	case body.Query != nil:
		return printWhatIf(p, raw)
	}
	return printRuleTest(p, raw)
}

func printRuleTest(p *Program, raw json.RawMessage) error {
	var a api.RuleTest
	if err := json.Unmarshal(raw, &a); err != nil {
		return err
	}
	d := a.Decision
	does := "dead, severity " + string(d.Severity) + ": " + d.Why
	switch d.Action {
	case deadletter.RuleDiscard:
		does = "discarded at once, as known noise"
	case deadletter.RuleRetry:
		does = "retry " + strconv.Itoa(d.Retry)
		if d.Delay != "" {
			does += " in " + d.Delay
		}
		if d.Earliest != d.Latest {
			does += ", between " + d.Earliest + " and " + d.Latest
		} else if d.Delay == "" {
			does += " in " + d.Latest
		}
	}
	fmt.Fprintln(p.Stdout, deadletter.Visible("rule "+a.Rule+" applies: "+does))
	if a.Was != "" && a.Was != a.Rule {
		fmt.Fprintln(p.Stdout, deadletter.Visible("rule "+a.Was+" applied last"))
	}
	var rows [][]string
	for i, s := range a.Steps {
		row := []string{strconv.Itoa(i + 1), s.Rule, "no", ""}
		if i == len(a.Steps)-1 {
			row[0] = "" // the default rule has no number
		}
		switch {
		case s.Applies:
			row[2] = "yes"
		case s.Matched:
			row[3] = "would match, but comes later"
		default:
			for _, c := range s.Clauses {
				if !c.Fits {
					row[3] = c.Field + " is not " + c.Want
					break
				}
			}
		}
		rows = append(rows, row)
	}
	return printTable(p.Stdout, []string{"NO", "RULE", "APPLIES", "WHY NOT"}, rows)
}

func printWhatIf(p *Program, raw json.RawMessage) error {
	var a api.WhatIf
	if err := json.Unmarshal(raw, &a); err != nil {
		return err
	}
	printLooked(p, a)
	var rows [][]string
	for _, r := range a.Rules {
		rows = append(rows, []string{
			r.Rule, strconv.Itoa(r.Letters), strconv.Itoa(r.Retry), strconv.Itoa(r.Dead), strconv.Itoa(r.Discard),
		})
	}
	return printTable(p.Stdout, []string{"RULE", "LETTERS", "RETRY", "DEAD", "DISCARD"}, rows)
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
