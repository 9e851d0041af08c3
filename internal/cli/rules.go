package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

type rulesCmd struct {
	List      rulesListCmd  `cmd:"" help:"The rules in use, in order: the first that matches a letter wins."`
	Test      rulesTestCmd  `cmd:"" help:"Which rule applies to a letter or to facts, and why; with -q what each would do with stored letters. Changes nothing."`
	Apply     rulesApplyCmd `cmd:"" help:"Decide anew, by the rules in use, about letters that wait for their retry. Shows what would change, and asks."`
	Overrides overridesCmd  `cmd:"" help:"Redirects: letters of a queue that go to another."`
}

type ruleRow struct {
	Name string `json:"name"`
	When []struct {
		Field string `json:"field"`
		Want  string `json:"want"`
	} `json:"when"`
	Retry *struct {
		Delays []string `json:"delays"`
		Jitter float64  `json:"jitter"`
	} `json:"retry"`
	Discard  bool   `json:"discard"`
	Severity string `json:"severity"`
}

type rulesListCmd struct {
	serverFlags
	outputFlag
	YAML bool `name:"yaml" help:"As YAML, as it stands in the file."`
}

func (c rulesListCmd) Run(p *Program) error {
	api, err := c.client(p)
	if err != nil {
		return err
	}
	var raw json.RawMessage
	if err := api.call(p.Ctx, http.MethodGet, "/rules", nil, &raw); err != nil {
		return err
	}
	var answer struct {
		File     string            `json:"file"`
		LoadedAt time.Time         `json:"loaded_at"`
		Rules    []json.RawMessage `json:"rules"`
		Default  json.RawMessage   `json:"default"`
		YAML     string            `json:"yaml"`
	}
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
	all := append(answer.Rules, answer.Default)
	switch c.Output {
	case "json":
		return printJSON(p.Stdout, raw, true)
	case "jsonl":
		for _, r := range all {
			if err := printJSON(p.Stdout, r, false); err != nil {
				return err
			}
		}
		return nil
	}
	rules := make([]ruleRow, len(all))
	for i, r := range all {
		if err := json.Unmarshal(r, &rules[i]); err != nil {
			return err
		}
	}
	fmt.Fprintln(p.Stdout, source(answer.File, answer.LoadedAt))
	return printRules(p.Stdout, rules)
}

// printRules prints rules as a table; the last is the default.
func printRules(out io.Writer, rules []ruleRow) error {
	var rows [][]string
	last := len(rules) - 1
	for i, r := range rules {
		number := strconv.Itoa(i + 1)
		if i == last {
			number = ""
		}
		rows = append(rows, []string{number, r.Name, r.when(i == last), r.retries(), r.severity(rules[last].Severity)})
	}
	return table(out, []string{"NO", "RULE", "WHEN", "RETRIES", "SEVERITY"}, rows)
}

// source says where the rules were read from.
func source(file string, at time.Time) string {
	if file == "" {
		return "there is no file of rules: these are the defaults"
	}
	return deadletter.Visible("read from "+file) + loaded(at)
}

func loaded(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return ", loaded " + ago(at, time.Now())
}

func (r ruleRow) when(last bool) string {
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

// severity is that of the dead letters of a rule; without one of its own that of the default holds.
func (r ruleRow) severity(fallback string) string {
	switch {
	case r.Discard:
		return "none is dead"
	case r.Severity == "" && fallback != "":
		return fallback + " (default)"
	}
	return r.Severity
}

func (r ruleRow) retries() string {
	const shown = 5 // delays that a table lists
	switch {
	case r.Discard:
		return "discards"
	case r.Retry == nil:
		return "as the default, of refused letters"
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
	serverFlags
	outputFlag
	Letter   string            `arg:"" name:"letter" optional:"" help:"A letter's id, or the last 8 digits of it."`
	Query    string            `name:"query" short:"q" help:"Instead: what each rule would do with the newest letters of a query, such as state:dead."`
	Limit    int               `name:"limit" short:"n" default:"500" help:"Of --query: how many letters, at most 500."`
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
	Age      time.Duration     `name:"age" help:"Since it was received, such as 2h."`
}

// body is the request; one of a letter, a query and facts.
func (c rulesTestCmd) body() (map[string]any, error) {
	facts := map[string]any{}
	for name, v := range map[string]string{"queue": c.Queue, "reason": c.Reason, "type": c.Type, "error": c.Error, "exchange": c.Exchange, "key": c.Key, "broker": c.Broker, "vhost": c.VHost} {
		if v != "" {
			facts[name] = v
		}
	}
	if len(c.Header) > 0 {
		facts["headers"] = c.Header
	}
	if len(c.Field) > 0 {
		fields := map[string][]string{}
		for path, v := range c.Field {
			fields[path] = []string{v}
		}
		facts["fields"] = fields
	}
	if c.Attempts != 0 {
		facts["attempts"] = c.Attempts
	}
	if c.Age != 0 {
		facts["age"] = c.Age.String()
	}
	switch {
	case c.Letter != "" && (c.Query != "" || len(facts) > 0), c.Query != "" && len(facts) > 0:
		return nil, fmt.Errorf("%w: name a letter, or a query, or facts, and no two of them", errUsage)
	case c.Letter != "":
		return map[string]any{"letter": c.Letter}, nil
	case c.Query != "":
		return map[string]any{"q": c.Query, "limit": c.Limit}, nil
	case len(facts) == 0:
		return nil, fmt.Errorf("%w: name a letter, a query, or facts such as --queue and --reason", errUsage)
	}
	return map[string]any{"facts": facts}, nil
}

func (c rulesTestCmd) Run(p *Program) error {
	body, err := c.body()
	if err != nil {
		return err
	}
	api, err := c.client(p)
	if err != nil {
		return err
	}
	var raw json.RawMessage
	if err := api.call(p.Ctx, http.MethodPost, "/rules/test", body, &raw); err != nil {
		return err
	}
	switch {
	case c.Output != "table":
		return printJSON(p.Stdout, raw, c.Output == "json")
	case c.Query != "":
		return printWhatIf(p, raw)
	}
	return printRuleTest(p, raw)
}

func printRuleTest(p *Program, raw json.RawMessage) error {
	var a struct {
		Rule     string `json:"rule"`
		Was      string `json:"was"`
		Decision struct {
			Action   string `json:"action"`
			Retry    int    `json:"retry"`
			Delay    string `json:"delay"`
			Earliest string `json:"earliest"`
			Latest   string `json:"latest"`
			Severity string `json:"severity"`
			Why      string `json:"why"`
		} `json:"decision"`
		Steps []struct {
			Rule    string `json:"rule"`
			Matched bool   `json:"matched"`
			Applies bool   `json:"applies"`
			Clauses []struct {
				Field string `json:"field"`
				Want  string `json:"want"`
				Fits  bool   `json:"fits"`
			} `json:"clauses"`
		} `json:"steps"`
	}
	if err := json.Unmarshal(raw, &a); err != nil {
		return err
	}
	d := a.Decision
	does := "dead, severity " + d.Severity + ": " + d.Why
	switch d.Action {
	case "discard":
		does = "discarded at once, as known noise"
	case "retry":
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
		fmt.Fprintln(p.Stdout, deadletter.Visible("rule "+a.Was+" decided about it last"))
	}
	var rows [][]string
	for i, s := range a.Steps {
		row := []string{strconv.Itoa(i + 1), s.Rule, "no", ""}
		if i == len(a.Steps)-1 {
			row[0] = "" // the default
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
	return table(p.Stdout, []string{"NO", "RULE", "APPLIES", "WHY NOT"}, rows)
}

func printWhatIf(p *Program, raw json.RawMessage) error {
	var a struct {
		Matching int  `json:"matching"`
		Exact    bool `json:"exact"`
		Looked   int  `json:"looked"`
		Late     int  `json:"late"`
		LeftOut  int  `json:"left_out"`
		Rules    []struct {
			Rule    string `json:"rule"`
			Letters int    `json:"letters"`
			Retry   int    `json:"retry"`
			Dead    int    `json:"dead"`
			Discard int    `json:"discard"`
		} `json:"rules"`
	}
	if err := json.Unmarshal(raw, &a); err != nil {
		return err
	}
	matching := strconv.Itoa(a.Matching)
	if !a.Exact {
		matching += "+"
	}
	fmt.Fprintf(p.Stderr, "looked at %d of %s letters, newest first\n", a.Looked, matching)
	if a.Late > 0 {
		fmt.Fprintf(p.Stderr, "%d more were not looked at: the time was up\n", a.Late)
	}
	if a.LeftOut > 0 {
		fmt.Fprintf(p.Stderr, "%d were left out: gone meanwhile, or of queues of others\n", a.LeftOut)
	}
	var rows [][]string
	for _, r := range a.Rules {
		rows = append(rows, []string{r.Rule, strconv.Itoa(r.Letters), strconv.Itoa(r.Retry), strconv.Itoa(r.Dead), strconv.Itoa(r.Discard)})
	}
	return table(p.Stdout, []string{"RULE", "LETTERS", "RETRY", "DEAD", "DISCARD"}, rows)
}
