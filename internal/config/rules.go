package config

import (
	"cmp"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
	"go.yaml.in/yaml/v3"
)

// ruleNodes contains the positions of a rule's values in the file. Some checks run only after all
// rules have been read, and they need these positions to report a mistake.
type ruleNodes struct {
	entry, name *yaml.Node
	clauses     map[string]*yaml.Node // positions of the clauses under match, by their keys
	wrong       bool                  // the rule contains a mistake, so that its clauses cannot be compared
	weight      int                   // size of the clauses in bytes, from 1 on
}

// rules reads the list of rules.
func (d *decoder) rules(n *yaml.Node, c *Config) {
	var nodes []ruleNodes
	d.list(n, func(item *yaml.Node) {
		before := len(d.mistakes)
		r, at := rules.Rule{}, ruleNodes{entry: item, clauses: map[string]*yaml.Node{}}
		d.rule(item, &r, &at)
		if d.bounds == nil && len(d.mistakes) == before { // nobody asks for the text of pasted rules
			r.YAML = ruleText(item)
		}
		c.Rules.Rules, nodes = append(c.Rules.Rules, r), append(nodes, at)
	})
	d.checkRules(c.Rules.Rules, nodes)
}

func (d *decoder) rule(n *yaml.Node, r *rules.Rule, at *ruleNodes) {
	var discard *yaml.Node
	before, matched := len(d.mistakes), false
	known := d.treatment("rules", r)
	known["name"] = func(n *yaml.Node) { at.name = n; d.ruleName(n, &r.Name) }
	known["match"] = func(n *yaml.Node) {
		matched = true
		count := len(d.mistakes)
		if n.Tag == "!!null" {
			d.mistake(n, "give clauses; a rule for every letter has no match at all")
		}
		d.match(n, &r.Match, at.clauses)
		at.wrong = len(d.mistakes) > count
	}
	known["retry"] = func(n *yaml.Node) {
		r.Retry = &rules.Retry{Waiter: rules.WaiterStore}
		if !d.retry(n, "rules.retry", r.Retry) {
			d.mistake(n, "give delays, or first and attempts; {delays: []} means no retry")
		}
	}
	known["discard"] = func(n *yaml.Node) { discard = n; d.boolean(n, &r.Discard) }
	d.mapping(n, "rules", known)
	if r.Discard && r.Retry != nil {
		d.mistake(discard, "what is discarded is not retried: a rule has either discard or retry")
	}
	if r.Discard && len(at.clauses) == 0 && len(d.mistakes) == before {
		d.mistake(
			discard,
			"this would discard every letter; if you want that, say so with a clause such as match: {queue: \"*\"}",
		)
	}
	if at.name == nil {
		d.mistake(n, "a rule needs a name")
	}
	// if match is missing and there are mistakes, one of them may be a misspelt match
	at.wrong = at.wrong || !matched && len(d.mistakes) > before
}

func (d *decoder) ruleName(n *yaml.Node, into *string) {
	v, ok := d.label(n, "the name of the rule", "rule", "a rule needs a name")
	switch {
	case !ok:
	case v == rules.DefaultName:
		d.mistake(n, "the name %s is taken by the rule under default", v)
	case v == deadletter.ObservedRule:
		d.mistake(n, "the name %s is taken by dlo's own rule for letters that are only observed", v)
	case v == deadletter.TrialRule:
		d.mistake(n, "the name %s is taken by dlo's own rule for letters of a trial", v)
	default:
		*into = v
	}
}

// in bytes; lists and histories show the names of rules, and the title of a group begins with the
// name that a rule gives it
const maxLabel = 100

// label reads the name of a rule or of a group. The parameter "want" describes the expected value,
// and "empty" is the text of the mistake for an empty name.
func (d *decoder) label(n *yaml.Node, want, of, empty string) (string, bool) {
	v, ok := d.scalar(n, want)
	switch {
	case !ok:
	case strings.TrimSpace(v) == "":
		d.mistake(n, "%s", empty)
	case len(v) > maxLabel:
		d.mistake(n, "the name of a %s has at most %d bytes", of, maxLabel)
	case deadletter.Visible(v) != v:
		d.mistake(n, "the name of a %s has visible characters only", of)
	default:
		return v, true
	}
	return "", false
}

// checkRules compares the rules with each other. It reports names that occur twice, and rules that
// can never be reached. The cost of a comparison is the product of the sizes of both rules. When
// the steps are used up, dlo compares no more rules, and does not report those that are never
// reached.
func (d *decoder) checkRules(list []rules.Rule, nodes []ruleNodes) {
	named, steps := map[string]*yaml.Node{}, d.bounds.steps()
	for i := range list {
		r, at := &list[i], &nodes[i]
		at.weight = 1
		for _, clause := range at.clauses {
			at.weight += maxWeight - subtractSize(clause, maxWeight)
		}
		if first := named[r.Name]; first != nil {
			d.mistake(at.name, "another rule is named %s already, in line %d; names are unique", r.Name, first.Line)
		} else if r.Name != "" {
			named[r.Name] = at.name
		}
		if at.wrong {
			continue
		}
		if clause, why := r.Match.Never(); clause != "" {
			d.mistake(at.clauses[clause], "the rule can never match: %s", why)
			at.wrong = true
			continue
		}
		for k := range i {
			if steps -= nodes[k].weight * at.weight; steps <= 0 {
				break
			}
			if !nodes[k].wrong && list[k].Match.Covers(&r.Match) {
				d.mistake(
					cmp.Or(at.name, at.entry),
					"the rule is never reached: the rule in line %d matches all that it matches", nodes[k].entry.Line,
				)
				break
			}
		}
	}
}

// treatment returns the decoders of those keys of a rule that say what happens to its letters. It
// covers the keys that the default rule can have too, apart from the key "retry". It does not cover
// the keys that select letters, because the default rule has none.
func (d *decoder) treatment(path string, r *rules.Rule) keys {
	return keys{
		"dead":     func(n *yaml.Node) { d.dead(n, path+".dead", r) },
		"in_doubt": func(n *yaml.Node) { d.oneOf(n, &r.InDoubt, "republish", "hold") },
		"watch":    func(n *yaml.Node) { d.duration(n, &r.Watch, time.Second, 365*day) },
		"rate": func(n *yaml.Node) {
			rate := -1.0
			if d.number(n, &rate, 0, 1e6); rate >= 0 {
				r.Rate = &rate
			}
		},
		"mirror_x_death": func(n *yaml.Node) {
			d.boolean(n, &r.MirrorXDeath)
			d.mirrors = append(d.mirrors, mirror{n, r})
		},
	}
}

func (d *decoder) dead(n *yaml.Node, path string, r *rules.Rule) {
	known := keys{
		"severity": func(n *yaml.Node) {
			d.oneOf(
				n, (*string)(&r.Severity), string(deadletter.SeverityPage), string(deadletter.SeverityNotify),
				string(deadletter.SeverityDigest),
			)
		},
		"notify": func(n *yaml.Node) {
			d.channelNames(n, &r.Notify)
			if path == "rules.dead" && n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
				r.Notify = []string{} // nobody is notified, although the default may name channels
			}
		},
	}
	if path == "rules.dead" { // in the default, all deaths of a queue would be in one group
		known["group"] = func(n *yaml.Node) {
			if v, ok := d.label(
				n, "the group", "group",
				"a group needs a name; without a group, letters are grouped by the cause of their failure",
			); ok {
				r.Group = v
			}
		}
	}
	d.mapping(n, path, known)
}

func (d *decoder) defaultRule(n *yaml.Node, r *rules.Rule) {
	known := d.treatment("default", r)
	known["retry"] = func(n *yaml.Node) { d.retry(n, "default.retry", r.Retry) }
	d.mapping(n, "default", known)
}
