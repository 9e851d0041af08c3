package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/deadletteroffice/dlo/internal/query"
)

type manCmd struct{}

// exitCodes lists the exit codes for the manual, each with its meaning.
var exitCodes = []struct{ code, what string }{
	{"0", "done"},
	{"1", "failed, or no letter was changed"},
	{"2", "a mistake in the command line, a query or the configuration"},
	{
		"3",
		"partly done: some letters were skipped, failed or came back; an operation stopped automatically or is still running",
	},
	{"4", "another dlo holds the store"},
}

// Run writes the manual page. The command `dlo man | man -l -` shows it.
func (manCmd) Run(p *Program, parser *kong.Kong) error {
	root := tree(parser.Model.Node, "")
	var b strings.Builder
	fmt.Fprintf(&b, ".TH DLO 1 \"\" \"dlo %s\" \"Dead Letter Office\"\n", escapeTroff(p.Version))
	b.WriteString(
		".SH NAME\ndlo \\- Dead Letter Office\n.SH SYNOPSIS\n.B dlo\n.I command\n.RI [ arguments ]\n.SH DESCRIPTION\n",
	)
	b.WriteString(troffLine(root.help))
	b.WriteString(troffLine("dlo serve is the server. dlo doctor, leave, brokers rename, config, completion, man and version need no server. All other commands talk to a running server over its API, unless they are given a file or a broker to read."))
	b.WriteString(".SH COMMANDS\n")
	root.each(func(c command) {
		if c.path == "" || len(c.subs) > 0 {
			return
		}
		fmt.Fprintf(&b, ".SS \"dlo %s\"\n%s", escapeTroff(strings.ReplaceAll(c.usage, "dlo ", "")), troffLine(c.help))
		for _, a := range c.args {
			fmt.Fprintf(&b, ".TP\n.I %s\n%s", escapeTroff(a.Name), troffLine(a.Help))
		}
		for _, f := range c.flags {
			b.WriteString(".TP\n.B " + escapeTroff(flagWords(f)) + "\n" + troffLine(f.Help+defaultWords(f)))
		}
	})
	b.WriteString(
		".SH QUERIES\n" + troffLine(
			"A query is a list of terms with spaces between them, and all of them must match. A comma is OR within a field, a leading minus negates a term, a text with spaces needs quotes, and a star stands for any text. Text without a field is searched for in the words of letters.",
		),
	)
	for _, h := range query.Help() {
		fmt.Fprintf(&b, ".TP\n.B %s\n%s", escapeTroff(h.Example), troffLine(h.Help+"."))
	}
	b.WriteString(".SH EXIT STATUS\n")
	for _, code := range exitCodes {
		fmt.Fprintf(&b, ".TP\n.B %s\n%s", code.code, troffLine(code.what))
	}
	b.WriteString(".SH ENVIRONMENT\n")
	for _, v := range []struct{ name, what string }{
		{
			"DLO_CONFIG",
			"the configuration file of serve, config check and brokers rename; its listen is where clients look for the server if nothing else names one",
		},
		{"DLO_LISTEN", "the address to listen on, and where clients look for the server"},
		{
			"DLO_STORE, DLO_AMQP_URL, DLO_MANAGEMENT_URL",
			"the settings store, and url and management of the broker named main",
		},
		{
			"DLO_SERVER, DLO_TOKEN",
			"the server that clients talk to, and the token that they send as a bearer token; both come before a saved context",
		},
		{"DLO_CONTEXT", "the saved context that clients use"},
		{"NO_COLOR", "not needed: output never has colour"},
	} {
		fmt.Fprintf(&b, ".TP\n.B %s\n%s", v.name, troffLine(v.what))
	}
	_, err := io.WriteString(p.Stdout, b.String())
	return err
}

func flagWords(f *kong.Flag) string {
	text := "--" + f.Name
	if f.Short != 0 {
		text = "-" + string(f.Short) + ", " + text
	}
	if !f.IsBool() {
		text += "=" + strings.ToUpper(f.Name)
	}
	return text
}

func defaultWords(f *kong.Flag) string {
	if !f.HasDefault || f.Default == "" {
		return ""
	}
	return " Default: " + f.Default + "."
}

// troffLine returns the text as one line of troff input.
func troffLine(text string) string {
	text = escapeTroff(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text + "\n"
}

// escapeTroff escapes the characters that have a special meaning in troff.
func escapeTroff(text string) string {
	return strings.NewReplacer(
		`\`, `\e`, "-", `\-`, "\n", " ", `"`, `\(dq`, "^", `\(ha`, "~", `\(ti`, "`", `\(ga`,
	).Replace(text)
}
