package config

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
	"go.yaml.in/yaml/v3"
)

// match reads the clauses of a rule. It records the position of each clause in the map "positions",
// by the key of the clause.
func (d *decoder) match(n *yaml.Node, m *rules.Match, positions map[string]*yaml.Node) {
	globs := func(into *rules.Patterns) func(n *yaml.Node) {
		return func(n *yaml.Node) { *into = d.patterns(n) }
	}
	known := keys{
		"queue": globs(&m.Queue), "vhost": globs(&m.VHost), "broker": globs(&m.Broker), "exchange": globs(&m.Exchange),
		"key": globs(&m.Key), "reason": globs(&m.Reason),
		"type": globs(&m.Type), "error": globs(&m.Error),
		"header":   func(n *yaml.Node) { m.Header = d.named(n, "a header", "{x-source: \"*\"}") },
		"field":    func(n *yaml.Node) { m.Field = d.named(n, "a path of the decoded body", "{customer.tier: gold}") },
		"attempts": func(n *yaml.Node) { m.Attempts = d.comparisons(n, number) },
		"age": func(n *yaml.Node) {
			m.Age = d.comparisons(n, nanoseconds)
			if slices.ContainsFunc(m.Age, func(c rules.Comparison) bool { return c.Op == "=" }) {
				d.mistake(n, "an age is never exact, so compare it with <, <=, > or >=, for example \">1h\"")
			}
		},
		"schema": func(n *yaml.Node) {
			var none string
			d.oneOf(n, &none, "none")
			m.NoSchema = none != ""
		},
	}
	for key, read := range known {
		known[key] = func(n *yaml.Node) { positions[key] = n; read(n) }
	}
	d.mapping(n, "rules.match", known)
}

// patterns reads one glob, or a list of globs of which at least one must match.
func (d *decoder) patterns(n *yaml.Node) rules.Patterns {
	var list rules.Patterns
	d.oneOrMore(n, "a text, in which * stands for any text,", func(n *yaml.Node, v string) { list = append(list, v) })
	return list
}

// named reads a mapping, for example from the names of headers to the patterns that their values
// must match.
func (d *decoder) named(n *yaml.Node, what, example string) []rules.Named {
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
		d.mistake(n, "give %s and the value that it must have, for example %s", what, example)
		return nil
	}
	var list []rules.Named
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := resolve(n.Content[i])
		switch {
		case key.Kind != yaml.ScalarNode || key.Value == "":
			d.mistake(n.Content[i], "give the name of %s", what)
			continue
		case seen[key.Value]:
			d.mistake(n.Content[i], "%s is listed twice", key.Value)
		}
		seen[key.Value] = true
		list = append(list, rules.Named{Name: key.Value, Want: d.patterns(resolve(n.Content[i+1]))})
	}
	return list
}

// comparisons reads one comparison, or a list of comparisons of which at least one must be true.
func (d *decoder) comparisons(n *yaml.Node, value func(text string) (int64, error)) rules.Comparisons {
	var list rules.Comparisons
	d.oneOrMore(n, "a comparison", func(n *yaml.Node, v string) {
		c, err := rules.ParseComparison(v, value)
		if err != nil {
			d.mistake(n, "%v", err)
			return
		}
		list = append(list, c)
	})
	return list
}

func number(text string) (int64, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > 1_000_000 {
		return 0, fmt.Errorf("%q is not a number of attempts; it looks like 3, \">=3\" or \"<10\"", text)
	}
	return int64(n), nil
}

func nanoseconds(text string) (int64, error) {
	age, err := deadletter.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%w, with <, <=, > or >= before it", err)
	}
	return int64(age), nil
}

// oneOrMore reads one text, or a list of at least one text.
func (d *decoder) oneOrMore(n *yaml.Node, want string, item func(n *yaml.Node, v string)) {
	one := func(n *yaml.Node) {
		if v, ok := d.scalar(n, want); ok {
			item(n, v)
		}
	}
	switch {
	case n.Kind != yaml.SequenceNode:
		one(n)
	case len(n.Content) == 0:
		d.mistake(n, "an empty list fits no letter; leave the key out")
	default:
		d.eachItem(n, one)
	}
}
