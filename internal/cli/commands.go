package cli

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/deadletteroffice/dlo/internal/query"
)

// command describes one command of dlo. Shell completion and the manual are generated from it.
type command struct {
	path  string // such as "letters list"; dlo itself has the path ""
	help  string
	usage string
	subs  []command
	args  []*kong.Value
	flags []*kong.Flag
}

// tree returns the description of a command and of all its subcommands. It reads them from the
// parser's model.
func tree(n *kong.Node, path string) command {
	c := command{path: path, help: n.Help, usage: n.Summary(), args: n.Positional}
	for _, f := range n.Flags {
		if !f.Hidden && f.Name != "help" {
			c.flags = append(c.flags, f)
		}
	}
	for _, child := range n.Children {
		if !child.Hidden {
			c.subs = append(c.subs, tree(child, strings.TrimSpace(path+" "+child.Name)))
		}
	}
	return c
}

// each calls fn for this command and for every command below it.
func (c command) each(fn func(command)) {
	fn(c)
	for _, s := range c.subs {
		s.each(fn)
	}
}

func (c command) name() string { return c.path[strings.LastIndexByte(c.path, ' ')+1:] }

// values returns the values that a flag accepts. It returns nil if the flag accepts any value.
func values(f *kong.Flag) []string {
	if f.Enum == "" {
		return nil
	}
	return slices.DeleteFunc(f.EnumSlice(), func(v string) bool { return v == "" })
}

// fieldWords returns the words with which a term of a query can begin, such as "state:".
func fieldWords() []string {
	var words []string
	for _, h := range query.Help() {
		if h.Field == query.Header || h.Field == query.Body {
			words = append(words, string(h.Field)+".")
		} else {
			words = append(words, string(h.Field)+":")
		}
	}
	return words
}

// plainValues returns those values of a query field that a user can type in a shell without quotes.
func plainValues(h query.FieldHelp) []string {
	return slices.DeleteFunc(
		slices.Clone(h.Values), func(v string) bool { return strings.ContainsAny(v, "<>=*\"'$&|; ") },
	)
}
