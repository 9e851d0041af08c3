// Package rules decides the outcome of a letter: when it is retried, when it is dead, and with
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

// Set is the part of the configuration that decides about letters. A set that is in use never
// changes.
type Set struct {
	Rules   []Rule // in order: the first match applies
	Default Rule   // for letters that match no other rule; its Match is empty and its Retry is not nil
	Seed    uint64 // for the jitter
	File    string // file that the set was read from; "" = none
	Loaded  time.Time

	Was map[string][]string // earlier names of brokers: rules that use them still match

	Channels []string // channels that rules may name, in the order of the file
}

// Rule defines the outcome of the letters that it matches.
type Rule struct {
	Name         string
	Match        Match
	Retry        *Retry              // nil = the retry of the default rule, only for letters that a worker rejected
	Discard      bool                // known noise: discarded immediately
	Severity     deadletter.Severity // severity of the rule's dead letters; "" = that of the default rule
	Notify       []string            // channels that notify people of its dead letters; nil = those of the default rule
	Group        string              // its letters of one origin are one group of this name, whatever their cause; "" = they are grouped by their causes
	InDoubt      string              // republish or hold; "" = requeue.in_doubt
	Watch        time.Duration       // 0 = requeue.watch
	Rate         *float64            // its automatic retries per second and queue, 0 = no limit; nil = requeue.rate
	MirrorXDeath bool
	YAML         string // as written in the file
}

// Settings are the requeue options that a rule can override.
type Settings struct {
	InDoubt      string        // "" = requeue.in_doubt
	Watch        time.Duration // 0 = requeue.watch
	Rate         *float64      // nil = requeue.rate
	MirrorXDeath bool
}

// Of returns the settings of the named rule, or the defaults if the rule no longer exists.
func (s *Set) Of(name string) Settings {
	r := s.named(name)
	return Settings{r.InDoubt, r.Watch, r.Rate, r.MirrorXDeath}
}

// Named returns the named rule, and whether it exists.
func (s *Set) Named(name string) (*Rule, bool) {
	r := s.named(name)
	return r, r.Name == name && name != ""
}

// Group returns the named rule's group. It returns "" if the rule has no group or no longer exists.
func (s *Set) Group(name string) string { return s.named(name).Group }

// named returns the named rule, or an empty one if it no longer exists.
func (s *Set) named(name string) *Rule {
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

// Told returns the channels that notify people about the named rule's decisions. If the rule no
// longer exists or names no channels, Told returns the channels of the default rule.
func (s *Set) Told(name string) []string {
	if r := s.named(name); r.Notify != nil {
		return r.Notify
	}
	return s.Default.Notify
}

// Pagers returns the channels named by rules with severity page, without duplicates.
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

// Facts contains everything that a decision may depend on.
type Facts struct {
	Broker, VHost, Queue string
	Exchange, Key        string // exchange and key of the letter's first publication
	Reason               string // reason of the death; further reasons may exist
	Type                 string // type of the payload; "" = none is known
	Unread               bool   // no schema reads the payload: Type is the name that the framework gives
	Error                string // masked
	Header               func(name string) (string, bool)
	Field                func(path string) ([]string, bool) // values at a path in the decoded body
	Attempts             int                                // total attempts
	Reset                int                                // how many of the attempts came before the retries were restarted
	Age                  time.Duration                      // since the letter was first received
	Serial               int64                              // the letter's serial; the jitter depends on it and on Attempts
	Stop                 func() bool                        // checked between patterns: after it returns true, nothing matches and the decision is useless; nil = never
}

// Decision is the outcome that the rules have for a letter.
type Decision struct {
	Rule     string
	Outcome  deadletter.RuleOutcome
	Delay    time.Duration // delay of a retry, including jitter
	Waiter   Waiter        // of a retry
	Rest     time.Duration // for a retry: maximum total of the remaining delays, including jitter
	Severity deadletter.Severity
	Notify   []string // channels that notify people once the letter is dead
	Group    string   // group that the rule puts the letter into; "" = the group of its cause
	Why      string   // reason in words, for the letter's history
}

// Step reports whether a rule matches a letter. If the rule does not match, its clauses show why.
type Step struct {
	Rule    string
	Matched bool // all clauses match
	Applies bool // the rule is the first that matches
	Clauses []Clause
}

// Clause is one condition of a rule, and whether a letter meets it. It does not disclose the values
// of the letter's headers or fields.
type Clause struct {
	Field string // such as "queue" or "header x-source"
	Want  string // as written in the rule
	Fits  bool
}

// Book holds the current set. A reload replaces the whole set.
type Book struct{ set atomic.Pointer[Set] }

// NewBook returns a Book with a set.
func NewBook(s *Set) *Book {
	b := &Book{}
	b.set.Store(s)
	return b
}

// Set returns the current set.
func (b *Book) Set() *Set { return b.set.Load() }

// Replace replaces the current set.
func (b *Book) Replace(s *Set) { b.set.Store(s) }
