// Package rules decides what happens to a letter: when it is retried, when it is dead, and with
// which severity people are notified. It also decides to which queues a letter may be sent. The
// package is pure: its decisions depend only on the facts that it is given.
package rules

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// DefaultName is the name of the rule for letters that match no other rule.
const DefaultName = "default"

// Set is the part of the configuration that decides about letters. A set never changes after it was
// put into use.
type Set struct {
	Rules   []Rule // rules in order; the first rule that matches a letter applies
	Default Rule   // rule for letters that match no other rule; its Match is empty, and its Retry is not nil
	Seed    uint64 // seed of the jitter
	File    string // file from which the set was read; "" = none
	Digest  string // digest of the text of this file as it was read
	Loaded  time.Time
	Fields  []string // search.fields of this file, which apply from the next start

	Channels []string // channels that rules may name, in the order of the configuration file
}

// Rule decides what happens to the letters that it matches.
type Rule struct {
	Name  string `json:"name"`
	Match Match  `json:"-"`
	// nil = letters that a worker rejected have the retry of the default rule, and other letters
	// have none
	Retry    *Retry              `json:"retry"`
	Discard  bool                `json:"discard"`  // letters are known noise and are discarded immediately
	Severity deadletter.Severity `json:"severity"` // severity of the dead letters; "" = severity of the default rule
	// channels on which people are notified about dead letters; nil = channels of the default rule
	Notify []string `json:"-"`
	// all letters of one origin form a group with this name, whatever the cause; "" = letters are
	// grouped by cause
	Group   string        `json:"-"`
	InDoubt string        `json:"in_doubt,omitzero"` // republish or hold; "" = value of requeue.in_doubt
	Watch   time.Duration `json:"watch,omitzero"`    // of the watch after a requeue; 0 = value of requeue.watch
	// automatic retries per second and queue, 0 = no limit; nil = value of requeue.rate
	Rate         *float64 `json:"rate,omitzero"`
	MirrorXDeath bool     `json:"mirror_x_death,omitzero"`
	YAML         string   `json:"yaml"` // text of the rule in the configuration file
}

// Settings contains the options for requeues that a rule can override.
type Settings struct {
	InDoubt      string        // "" = value of requeue.in_doubt
	Watch        time.Duration // 0 = value of requeue.watch
	Rate         *float64      // nil = value of requeue.rate
	MirrorXDeath bool
}

// Of returns the settings of the named rule. If the rule no longer exists, it returns the default
// settings.
func (s *Set) Of(name string) Settings {
	r := s.ruleNamed(name)
	return Settings{r.InDoubt, r.Watch, r.Rate, r.MirrorXDeath}
}

// Named returns the named rule and reports whether the rule exists.
func (s *Set) Named(name string) (*Rule, bool) {
	r := s.ruleNamed(name)
	return r, r.Name == name && name != ""
}

// Group returns the name of the group into which the named rule puts letters. If the rule has no
// group or no longer exists, it returns "".
func (s *Set) Group(name string) string { return s.ruleNamed(name).Group }

// ruleNamed returns the named rule. If the rule no longer exists, it returns an empty rule.
func (s *Set) ruleNamed(name string) *Rule {
	switch name {
	case s.Default.Name:
		return &s.Default
	case trial.Name:
		return &trial
	case observed.Name:
		return &observed
	}
	for i := range s.Rules {
		if s.Rules[i].Name == name {
			return &s.Rules[i]
		}
	}
	return &Rule{}
}

// Told returns the channels on which people are notified about letters of the named rule. If the
// rule names no channels or no longer exists, Told returns the channels of the default rule.
func (s *Set) Told(name string) []string {
	if r := s.ruleNamed(name); r.Notify != nil {
		return r.Notify
	}
	return s.Default.Notify
}

// Pagers returns the channels of all rules with severity "page", without duplicates.
func (s *Set) Pagers() []string {
	var list []string
	for _, r := range append(slices.Clone(s.Rules), s.Default) {
		if cmp.Or(r.Severity, s.Default.Severity) == deadletter.SeverityPage && !r.Discard {
			list = append(list, s.Told(r.Name)...)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Facts contains everything on which a decision may depend.
type Facts struct {
	Broker, VHost, Queue string
	Exchange, Key        string // exchange and routing key with which the letter was first published
	Reason               string // reason of the last death; an earlier death may have another reason
	Type                 string // type of the payload; "" = unknown
	Unread               bool   // no schema reads the payload, so Type is the name that the framework gives
	Error                string // error text, with masked values hidden
	Header               func(name string) (string, bool)
	Field                func(path string) ([]string, bool) // returns the values at a path in the decoded body
	Attempts             int                                // total number of attempts
	Reset                int                                // number of attempts before the retries were restarted
	Age                  time.Duration                      // time since the letter was first received
	// serial of the letter; the jitter depends on it and on Attempts
	Serial int64
	// called between patterns; after it has returned true, nothing matches any more, and the
	// decision must not be used; nil = never stops
	Stop func() bool
}

// Decision says what the rules have decided about a letter.
type Decision struct {
	Rule     string
	Outcome  deadletter.RuleOutcome
	Delay    time.Duration // delay before the retry, including jitter
	Waiter   Waiter        // place where the letter waits for the retry
	Rest     time.Duration // maximum sum of the remaining delays, including jitter; only for a retry
	Severity deadletter.Severity
	Notify   []string // channels on which people are notified when the letter is dead
	// name of the group into which the rule puts the letter; "" = the group is determined by the
	// cause
	Group string
	Why   string // reason as a text for the letter's history
}

// Step says whether a rule matches a letter, and why.
type Step struct {
	Rule    string   `json:"rule"`
	Matched bool     `json:"matched"` // whether all clauses match
	Applies bool     `json:"applies"` // whether this is the first rule that matches
	Clauses []Clause `json:"clauses"`
}

// Condition is one condition of a rule.
type Condition struct {
	Field string `json:"field"` // field that the condition is about, e.g. "queue" or "header x-source"
	Want  string `json:"want"`  // condition as it is written in the rule
}

// Clause is a condition, and whether a letter meets it. It contains no values of the letter's
// headers or fields.
type Clause struct {
	Condition
	Fits bool `json:"fits"`
}

// Book holds the set of rules that is in use. A reload replaces the whole set.
type Book struct{ set atomic.Pointer[Set] }

// NewBook returns a Book that holds the given set.
func NewBook(s *Set) *Book {
	b := &Book{}
	b.set.Store(s)
	return b
}

// Set returns the set that is in use.
func (b *Book) Set() *Set { return b.set.Load() }

// Replace puts another set into use.
func (b *Book) Replace(s *Set) { b.set.Store(s) }
