package cli

import (
	"embed"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"github.com/alecthomas/kong"

	"github.com/deadletteroffice/dlo/internal/query"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish; for example: source <(dlo completion bash)"`
}

// completions are the scripts that complete command lines in a shell. They ask the hidden command
// dlo complete for words, so they stay right after an update. A word that ends with a colon or a
// dot is the beginning of a term of a query, so no space follows it.
//
//go:embed completion
var completions embed.FS

// Run prints the script for a shell.
func (c completionCmd) Run(p *Program) error {
	script, err := completions.ReadFile("completion/dlo." + c.Shell)
	if err == nil {
		_, err = p.Stdout.Write(script)
	}
	return err
}

type completeCmd struct {
	Words []string `arg:"" optional:"" help:"The words after dlo; the last one is completed."`
}

// Run prints the words that can take the place of the last word, one on each line.
func (c completeCmd) Run(p *Program, parser *kong.Kong) error {
	words := append([]string{"", ""}, c.Words...)
	if len(c.Words) == 0 {
		words = append(words, "")
	}
	at := parser.Model.Node
	for _, word := range words[:len(words)-1] {
		if i := slices.IndexFunc(at.Children, func(n *kong.Node) bool { return n.Name == word }); i >= 0 {
			at = at.Children[i]
		}
	}
	last := words[len(words)-1]
	list := complete(at, words[len(words)-3], words[len(words)-2], &last)
	for _, word := range list {
		if strings.HasPrefix(word, last) {
			fmt.Fprintln(p.Stdout, word)
		}
	}
	return nil
}

// complete returns the words that can follow two words of a command line. The last word, which is
// completed, can only be a part of some of them. To bash, a colon is a word of its own: state : de
func complete(at *kong.Node, before, word string, last *string) (list []string) {
	flags := flagsOf(at)
	flag := slices.IndexFunc(flags, func(f *kong.Flag) bool {
		return word == "--"+f.Name || f.Short != 0 && word == "-"+string(f.Short)
	})
	field, value, isTerm := strings.Cut(*last, ":")
	switch {
	case *last == ":":
		*last = ""
		return fieldValues(word, "")
	case word == ":":
		return fieldValues(before, "")
	case flag >= 0 && flags[flag].Name == "query" && isTerm && !strings.Contains(value, " "):
		return fieldValues(field, field+":")
	case flag >= 0 && flags[flag].Name == "query":
		return fieldWords()
	case flag >= 0 && flags[flag].Enum != "":
		return slices.DeleteFunc(flags[flag].EnumSlice(), func(v string) bool { return v == "" })
	case strings.HasPrefix(*last, "-") || at.Children == nil:
		for _, f := range flags {
			list = append(list, "--"+f.Name)
		}
		return append(list, "--help")
	}
	for _, child := range at.Children {
		if !child.Hidden {
			list = append(list, child.Name)
		}
	}
	return list
}

// fieldWords returns the words with which a term of a query can begin, such as "state:".
func fieldWords() []string {
	var words []string
	for _, h := range query.Help() {
		end := ":"
		if h.Field == query.Header || h.Field == query.Body {
			end = "."
		}
		words = append(words, string(h.Field)+end)
	}
	return words
}

// fieldValues returns those values of a query field that a user can type in a shell without quotes,
// each after the given prefix.
func fieldValues(field, prefix string) (list []string) {
	for _, h := range query.Help() {
		for _, v := range h.Values {
			if string(h.Field) == field && !strings.ContainsAny(v, "<>=*\"'$&|; ") {
				list = append(list, prefix+v)
			}
		}
	}
	return list
}

//go:embed man.tmpl
var manFile string

type manCmd struct{}

// Run writes the manual page. The command `dlo man | man -l -` shows it.
func (manCmd) Run(p *Program, parser *kong.Kong) error {
	page, err := template.New("").Funcs(template.FuncMap{
		"troff": troff, "upper": strings.ToUpper, "flags": flagsOf,
	}).Parse(manFile)
	if err != nil {
		return err
	}
	return page.Execute(p.Stdout, map[string]any{
		"Version":  p.Version,
		"Model":    parser.Model,
		"Commands": parser.Model.Leaves(true),
		"Queries":  query.Help(),
	})
}

// flagsOf returns the flags of a command that people see, without --help.
func flagsOf(node *kong.Node) (flags []*kong.Flag) {
	for _, f := range node.Flags {
		if !f.Hidden && f.Name != "help" {
			flags = append(flags, f)
		}
	}
	return flags
}

// troff escapes the characters that have a special meaning in troff.
func troff(text string) string {
	text = strings.NewReplacer(
		`\`, `\e`, "-", `\-`, "\n", " ", `"`, `\(dq`, "^", `\(ha`, "~", `\(ti`, "`", `\(ga`,
	).Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}
