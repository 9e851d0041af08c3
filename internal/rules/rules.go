// Package rules decides what becomes of a letter: when it is retried, when it is dead, how loudly
// it calls; and which queues a letter may be sent to. It is pure: facts in, decisions out.
package rules

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// DefaultName is the name of the rule for letters that no other matches.
const DefaultName = "default"

// Set is what the configuration says about letters. It is not changed once it is in use.
type Set struct {
	Rules   []Rule // in order: the first that matches wins
	Default Rule   // for letters that no other matches; its Match is empty and its Retry is not nil
	Seed    uint64 // of the jitter
	File    string // it was read from; "" = none
	Loaded  time.Time

	Was map[string][]string // the earlier names of brokers: a rule that names one of them goes on to match

	Channels []string // that a rule may name, in the order of the file
}

// Rule says what becomes of the letters that it matches.
type Rule struct {
	Name         string
	Match        Match
	Retry        *Retry              // nil: as the default rule says, and for letters that a worker refused only
	Discard      bool                // known noise: discarded at once
	Severity     deadletter.Severity // of its dead letters; "" = as the default rule says
	Notify       []string            // channels where people are told of them; nil = as the default rule says
	Group        string              // its letters of one origin are one group of this name, whatever they failed of; "" = they are grouped by their causes
	InDoubt      string              // republish or hold; "" = requeue.in_doubt
	Watch        time.Duration       // 0 = requeue.watch
	Rate         *float64            // its automatic retries per queue and second, 0 = no limit; nil = requeue.rate
	MirrorXDeath bool
	YAML         string // as it is in the file
}

// Settings are what a rule changes about the way back.
type Settings struct {
	InDoubt      string        // "" = requeue.in_doubt
	Watch        time.Duration // 0 = requeue.watch
	Rate         *float64      // nil = requeue.rate
	MirrorXDeath bool
}

// Of returns the settings of the rule of a name; those of a rule that is gone are the defaults.
func (s *Set) Of(name string) Settings {
	r := s.named(name)
	return Settings{r.InDoubt, r.Watch, r.Rate, r.MirrorXDeath}
}

// Named returns the rule of a name, and whether there is one.
func (s *Set) Named(name string) (*Rule, bool) {
	r := s.named(name)
	return r, r.Name == name && name != ""
}

// Group returns the group of the rule of a name; "" when it has none, or is gone.
func (s *Set) Group(name string) string { return s.named(name).Group }

// named returns the rule of a name; an empty one when it is gone.
func (s *Set) named(name string) *Rule {
	switch name {
	case s.Default.Name:
		return &s.Default
	case trial.Name:
		return &trial
	}
	for i := range s.Rules {
		if s.Rules[i].Name == name {
			return &s.Rules[i]
		}
	}
	return &Rule{}
}

// Told returns the channels where people are told of what the rule of a name decides; those of the
// default for a rule that is gone, or says nothing of them.
func (s *Set) Told(name string) []string {
	if r := s.named(name); r.Notify != nil {
		return r.Notify
	}
	return s.Default.Notify
}

// Pagers returns the channels that rules with severity page name, each once.
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

// Facts are what a decision may look at.
type Facts struct {
	Broker, VHost, Queue string
	Exchange, Key        string // of its first publish
	Reason               string // of the death, an open set
	Type                 string // of the payload; "" = none is known
	Unread               bool   // no schema reads it: Type is what its framework calls it
	Error                string // masked
	Header               func(name string) (string, bool)
	Field                func(path string) ([]string, bool) // values at a path of the decoded body
	Attempts             int                                // used in all
	Reset                int                                // of these before its retries were begun anew
	Age                  time.Duration                      // since it was received first
	Serial               int64                              // of the letter: what the jitter is drawn from, with Attempts
	Stop                 func() bool                        // asked between patterns: once it says true nothing fits any more, and what is decided is of no use; nil: never
}

// Decision is what becomes of a letter.
type Decision struct {
	Rule     string
	Outcome  deadletter.RuleOutcome
	Delay    time.Duration // of a retry, jitter included
	Waiter   Waiter        // of a retry
	Rest     time.Duration // of a retry: how long all that are left last at most, jitter included
	Severity deadletter.Severity
	Notify   []string // channels where people are told of it once it is dead
	Group    string   // that the rule puts it into; "" = that of its cause
	Why      string   // in words, for the history
}

// Step says of one rule whether it matches a letter, and why not.
type Step struct {
	Rule    string
	Matched bool // all clauses fit
	Applies bool // it is the first that matches
	Clauses []Clause
}

// Clause is one condition of a rule, and whether a letter fits it. What a header or a field of the
// letter holds is not told.
type Clause struct {
	Field string // such as "queue" or "header x-source"
	Want  string // as it is in the rule
	Fits  bool
}

// Book holds the set in use: a reload puts another in its place, whole.
type Book struct{ set atomic.Pointer[Set] }

// NewBook returns a Book with a set.
func NewBook(s *Set) *Book {
	b := &Book{}
	b.set.Store(s)
	return b
}

// Set returns the set in use.
func (b *Book) Set() *Set { return b.set.Load() }

// Replace puts another set in use.
func (b *Book) Replace(s *Set) { b.set.Store(s) }
