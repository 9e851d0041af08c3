package cli

import (
	"net/http"

	"github.com/alecthomas/kong"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/rules"
)

func rulesTable() command {
	all := list("The rules in use, in order: the first that matches a letter wins.", rulesListCmd{},
		"GET /rules", "rules default", api.Rules{}, "rule=name when=when|when retries=|delays severity=|severity")
	all.text = `{{template "rules" .}}`
	return noun(
		"rules", groupRules,
		"List and test the rules in use, try other rules, apply the rules to scheduled letters, and manage redirects.",
		all,
		command{
			name: "test",
			args: struct {
				callCmd
				Config textFile `json:"rules" placeholder:"FILE" help:"Test the rules of this file instead of those in use. The file is a list of rules, or a configuration file of which only the rules are read; - reads the standard input."`
				Query  string   `json:"q" short:"q" help:"Test the newest letters of this query, for example queue:sms; state:dead,held,scheduled if omitted."`
				Limit  int      `short:"n" default:"500" help:"How many letters to look at, at most 500."`
			}{},
			help: "Show what rules would have done with the newest letters, beside what was done. Tests the rules in " +
				"use, or with --config those of a file. Nothing is changed.",
			route: "POST /rules/test", answer: rules.WhatIf{}, rows: "fates", note: `{{template "looked at" .}}`,
			columns: "letters changes=same|no now=was|was would=would|would retries=would.delays " +
				"such_as=examples|spaced",
		},
		command{
			name: "apply", help: "Apply the rules in use to scheduled letters. Shows what would change, and asks.",
			args: struct {
				callCmd
				askFlags
				Query  string `json:"q" short:"q" help:"Only letters of a query, for example 'queue:sms'; all scheduled letters if omitted."`
				Reason string `help:"Why, for the audit."`
			}{},
			route: "POST /rules/apply", answer: rules.Applied{},
			text: "{{changed .Changes}} of {{.Looked}} scheduled letters " +
				"{{if .DryRun}}would change{{else}}changed{{end}}",
			parts: []command{
				{rows: "changes", columns: "from=from|outcome to=to|outcome letters such_as=examples|spaced"},
				{text: `{{template "left alone" .}}`},
			},
			ask:    "{{with .Changes}}apply the rules to {{changed .}} letters{{end}}",
			failed: "{{if .Stopped}}dlo stopped before the end; the other letters are unchanged{{end}}",
		},
		overridesTable(),
	)
}

type rulesListCmd struct {
	answerFlags
	YAML bool `name:"yaml" help:"As YAML, as in the file."`
}

// Run prints the rules, and from which file they were read.
func (c rulesListCmd) Run(p *Program, k *kong.Context) error {
	if !c.YAML {
		return c.printList(p, commandOf(k.Selected()), nil)
	}
	answer, _, err := fetch[api.Rules](c.serverFlags, p, http.MethodGet, "/rules", nil)
	if err != nil {
		return err
	}
	return p.write(answer.YAML)
}
