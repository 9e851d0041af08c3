package view

import (
	"net/url"
	"slices"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/rules"
)

// SettingsPage has a form for each setting of the configuration file that people can change in a
// browser. It can also show a change before it is saved, or after it.
type SettingsPage struct {
	Shell
	Set      *rules.Set
	Rule     *rules.Rule               // the rule whose settings are shown
	Retries  int                       // the number of its retries
	Queue    deadletter.Origin         // the queue that gets a rule with its delays, if it is not empty
	Form     url.Values                // the values as they are, or as typed
	Posted   url.Values                // the form that was sent, which the button sends again to save the change
	Change   *deadletter.SettingChange // nil = no form was sent, or it has a mistake
	Diff     []payload.DiffLine
	WhatIf   *rules.WhatIf
	Mistakes map[string]string // the mistakes by field
	Problem  string            // why the last form was refused, if not because of a field
}

const (
	DelaysTyped  = 200 // the maximum number of retries of a rule whose delays can be typed
	rulesChosen  = 200 // the maximum number of rules to choose from; the page Rules leads to all
	settingShown = 500 // the maximum size of the name of a rule, or of a path, in a link in bytes
)

// SettingsURL returns the URL of the page Settings for a value of the parameter "rule" or "field".
func SettingsURL(name, value string) string {
	return "/settings?" + url.Values{name: {line(value, settingShown)}}.Encode()
}

// delaysURL returns the URL of the form for the delays of a queue. If the default decides about the
// queue, the queue gets a rule.
func delaysURL(q WatchedQueue) string {
	if q.Rule == rules.DefaultName {
		return "/settings?" + PlaceOf(q.Origin) + "#delays"
	}
	return SettingsURL("rule", q.Rule) + "#delays"
}

// delaysOf says which letters get the delays.
func (p SettingsPage) delaysOf() string {
	if p.Queue.Queue != "" {
		return "Delays of queue " + queueName(p.Queue.Queue)
	}
	return "Delays of rule " + ruleLabel(p.Rule.Name)
}

// delaysHint says what else changes with the delays.
func (p SettingsPage) delaysHint() string {
	switch {
	case p.Queue.Queue != "":
		return "The default decides about this queue. A rule for the queue is added after all others."
	case p.Rule.Retry == nil:
		return "The rule uses the delays of the default, and only for rejected letters. " +
			"With delays of its own, letters that expired or overflowed their queue are retried too."
	case len(p.Rule.Retry.Delays) == 0 && p.Rule.Retry.Count() > 0:
		return "The delays grow from retry to retry. A list replaces them."
	}
	return "The jitter and the place where letters wait stay as they are."
}

// channels returns the channels of the form: those of the configuration, and those that were typed.
func (p SettingsPage) channels() []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(p.Set.Channels, p.Form["notify"]))))
}

// title says what has become of the change.
func (p SettingsPage) title() string {
	switch {
	case p.Change.Unsaved != "":
		return "dlo cannot save this"
	case !p.Change.Saved:
		return "Nothing is saved yet"
	}
	return "Saved, and in use"
}
