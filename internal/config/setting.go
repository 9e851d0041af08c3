package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
	"go.yaml.in/yaml/v3"
)

// Change returns how a new value of a setting changes the configuration file with the given text,
// and the configuration that results. Apart from the value, the new text has the same bytes. If the
// file has a form in which this is not certain, there is no new text, but the new configuration is
// checked all the same. The error is a FieldErrors if the value is not valid, and an *Error if the
// file was not valid before.
func Change(
	path, text string, s deadletter.Setting, getenv func(string) string,
) (deadletter.SettingChange, Config, error) {
	out := deadletter.SettingChange{File: path, Was: text, Now: text, Reindex: s.Key == deadletter.SettingFields}
	before, err := Parse(path, text, getenv)
	if err := cmp.Or(err, s.Check()); err != nil {
		return out, before, err
	}
	out.Digest = before.Rules.Digest
	want := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	if root := (&decoder{}).document(text); root != nil && root.Kind == yaml.MappingNode {
		want = written(root, false)
	}
	values, err := newValues(&before.Rules, want, &s)
	if err != nil {
		return out, before, err
	}
	var changes []string
	for _, v := range values {
		was := "none"
		if old := find(want, v.keys...); old != nil {
			was = inFlow(old)
		}
		changes = append(changes, deadletter.Visible(deadletter.Cut(
			fmt.Sprintf("%s: %s, before %s", v.words(), inFlow(v.value), was), 600,
		)))
		if out.Unsaved == "" {
			out.Now, out.Unsaved = splice(out.Now, v)
		}
		put(want, v.keys, v.value)
	}
	out.Changes = deadletter.Cut(strings.Join(changes, "; "), 4000)
	var own *yaml.Node
	own, out.Place = toCopy(want, values[0].keys)
	out.YAML, out.Plain = encode(own), encode(written(own, true))
	checked := out.Now
	now := (&decoder{}).document(out.Now)
	if out.Unsaved == "" && (now == nil || !sameNodes(written(now, false), want)) {
		out.Unsaved = unusual
	}
	if out.Unsaved != "" {
		out.Now, checked = "", encode(want)
	}
	if path == "" {
		out.Now, out.Unsaved = "", "dlo runs without a configuration file"
	}
	after, err := Parse(path, checked, getenv)
	if wrong, ok := errors.AsType[*Error](err); ok {
		return out, after, s.Wrong(wrong.Mistakes[0].Text)
	}
	return out, after, err
}

// newValue is a new value below the keys of a file. A key of a list is the number of an item.
type newValue struct {
	keys  []string
	value *yaml.Node
	rule  string // name of the rule that gets the value; "" = none
}

// words returns the path of the value, for people.
func (v newValue) words() string {
	path := strings.Join(v.keys, ".")
	if v.rule != "" {
		path += " of rule " + v.rule
	}
	return path
}

// newValues returns the values of a file that a setting changes.
func newValues(set *rules.Set, root *yaml.Node, s *deadletter.Setting) ([]newValue, error) {
	i := slices.IndexFunc(set.Rules, func(r rules.Rule) bool { return r.Name == s.Rule })
	base, rule := []string{"default"}, &set.Default
	if i >= 0 {
		base, rule = []string{"rules", strconv.Itoa(i)}, &set.Rules[i]
	}
	below := func(keys ...string) []string { return slices.Concat(base, keys) }
	var values []newValue
	switch {
	case s.Key == deadletter.SettingFields:
		values = newList(root, []string{"search", "fields"}, s.Fields)
	case s.Key == deadletter.SettingDelays && s.Queue != "":
		rule := ruleOfQueue(set, s)
		own := node(rule)
		own.Style = 0
		return []newValue{{[]string{"rules", strconv.Itoa(len(set.Rules))}, own, rule.Name}}, nil
	case rule.Name != s.Rule:
		return nil, deadletter.FieldErrors{{Field: "rule", Why: "the file has no rule " + deadletter.Visible(s.Rule)}}
	case s.Key == deadletter.SettingDelays && find(root, below("retry", "delays")...) != nil:
		values = newList(root, below("retry", "delays"), s.Delays)
	case s.Key == deadletter.SettingDelays:
		own := backOffOf(cmp.Or(rule.Retry, set.Default.Retry), s.Delays)
		values = []newValue{{keys: below("retry"), value: node(own)}}
	default:
		if s.Severity != "" && s.Severity != rule.Severity {
			values = []newValue{{keys: below("dead", "severity"), value: node(string(s.Severity))}}
		}
		if len(s.Notify) > 0 || s.Notify != nil && rule.Notify != nil {
			values = append(values, newList(root, below("dead", "notify"), s.Notify)...)
		}
	}
	if len(values) == 0 {
		why := "this is what the configuration file has already"
		return nil, s.Wrong(why)
	}
	for k := range values {
		if i >= 0 {
			values[k].rule = rule.Name
		}
	}
	return values, nil
}

// newList returns the new values for a list of texts. An item that is added at the end leaves the
// items before it as they are.
func newList(root *yaml.Node, keys, items []string) (values []newValue) {
	var old []string
	list := find(root, keys...)
	if list != nil {
		d := &decoder{}
		d.texts(list, &old)
	}
	switch {
	case list != nil && slices.Equal(old, items):
	case len(old) > 0 && len(old)+1 == len(items) && slices.Equal(old, items[:len(old)]):
		at := slices.Concat(keys, []string{strconv.Itoa(len(old))})
		values = []newValue{{keys: at, value: node(items[len(old)])}}
	default:
		values = []newValue{{keys: keys, value: node(items)}}
	}
	return values
}

// writtenRetry is a back-off as dlo writes it.
type writtenRetry struct {
	Delays []string     `yaml:"delays,flow"`
	Jitter float64      `yaml:"jitter,omitempty"`
	Waiter rules.Waiter `yaml:"waiter,omitempty"`
}

// backOffOf returns a back-off with other delays. The jitter and the waiter stay.
func backOffOf(r *rules.Retry, delays []string) writtenRetry {
	own := writtenRetry{Delays: delays, Jitter: r.Jitter}
	if r.Waiter.Broker() {
		own.Waiter = r.Waiter
	}
	return own
}

// queueRule is a rule with the delays of one queue, as dlo writes it.
type queueRule struct {
	Name  string
	Match struct {
		Queue  string
		VHost  string   `yaml:"vhost,omitempty"`
		Broker string   `yaml:"broker,omitempty"`
		Reason []string `yaml:"reason,flow"`
	} `yaml:"match,flow"`
	Retry        writtenRetry  `yaml:"retry,flow"`
	InDoubt      string        `yaml:"in_doubt,omitempty"`
	Watch        time.Duration `yaml:"watch,omitempty"`
	Rate         *float64      `yaml:"rate,omitempty"`
	MirrorXDeath bool          `yaml:"mirror_x_death,omitempty"`
}

// ruleOfQueue returns a rule with the delays of one queue. Otherwise the rule does what the default
// does: it does not match letters that expired or overflowed their queue, which are not retried.
func ruleOfQueue(set *rules.Set, s *deadletter.Setting) queueRule {
	rest := &set.Default
	named := func(name string) bool {
		return slices.ContainsFunc(set.Rules, func(r rules.Rule) bool { return r.Name == name })
	}
	name := deadletter.Cut("delays of "+s.Queue, maxLabel)
	for i := 2; named(name); i++ { // another broker may have a queue with this name
		name = deadletter.Cut("delays of "+s.Queue, maxLabel-10) + " " + strconv.Itoa(i)
	}
	r := queueRule{
		Name: name, Retry: backOffOf(rest.Retry, s.Delays),
		InDoubt: rest.InDoubt, Watch: rest.Watch, Rate: rest.Rate, MirrorXDeath: rest.MirrorXDeath,
	}
	r.Match.Queue, r.Match.VHost, r.Match.Broker = s.Queue, s.VHost, s.Broker
	r.Match.Reason = []string{deadletter.ReasonRejected, "delivery_limit"}
	return r
}

// toCopy returns the rule or the top-level key that changes, and where it belongs.
func toCopy(root *yaml.Node, keys []string) (own *yaml.Node, place string) {
	if keys[0] != "rules" {
		own := nested(keys[:1], find(root, keys[0]))
		own.Style = 0
		return own, "as the top-level key " + keys[0]
	}
	i, _ := strconv.Atoi(keys[1])
	return nested(keys[1:2], find(root, keys[:2]...)), fmt.Sprintf("as rule %d of the list under rules", i+1)
}
