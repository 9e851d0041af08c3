package deadletter

import (
	"slices"
	"strconv"
	"strings"
)

// SettingKey names one of the settings that people can change in a browser.
type SettingKey string

// These are the settings that people can change in a browser.
const (
	SettingDelays SettingKey = "delays" // delays of the retries of a rule, or of a queue
	SettingDead   SettingKey = "dead"   // severity of the dead letters of a rule, and who is notified
	SettingFields SettingKey = "fields" // body fields that queries can name
)

// Setting is the new value of a setting in the configuration file.
type Setting struct {
	Key  SettingKey `json:"setting"`
	Rule string     `json:"rule,omitzero"` // rule that gets the delays, or the severity and the channels
	// queue that gets the delays; a rule for it is added, so the rule default must decide about it
	Queue    string   `json:"queue,omitzero"`
	Broker   string   `json:"broker,omitzero"`
	VHost    string   `json:"vhost,omitzero"`
	Delays   []string `json:"delays,omitzero"`   // such as 10s; an empty list = no retry
	Severity Severity `json:"severity,omitzero"` // missing = it stays as it is
	Notify   []string `json:"notify,omitzero"`   // channels; missing = they stay as they are
	Fields   []string `json:"fields,omitzero"`   // paths of the body, such as customer.id
}

// maxSettingItems is the maximum number of texts in the value of a setting.
const maxSettingItems = 503

// Wrong returns the error for the value of a setting that is not valid, at the field that has it.
func (s *Setting) Wrong(why string) error {
	field := string(s.Key)
	if s.Key == SettingDead {
		field = "notify"
	}
	return FieldErrors{{Field: field, Why: why}}
}

// Check rejects values that a configuration file could not have as they are, or that a program
// which fills in a template would replace. The error is a FieldErrors.
func (s *Setting) Check() error {
	switch {
	case !slices.Contains([]SettingKey{SettingDelays, SettingDead, SettingFields}, s.Key):
		return FieldErrors{{Field: "setting", Why: "the settings are delays, dead and fields"}}
	case !slices.Contains([]Severity{"", SeverityPage, SeverityNotify, SeverityDigest}, s.Severity):
		return FieldErrors{{Field: "severity", Why: "the severities are page, notify and digest"}}
	case s.Key == SettingDelays && s.Delays == nil, s.Key == SettingFields && s.Fields == nil:
		return s.Wrong("give a list; it may be empty")
	case s.Rule != "" && s.Queue != "":
		return s.Wrong("give a rule or a queue, not both")
	case strings.Contains(s.Queue+s.Broker+s.VHost, "*"):
		return s.Wrong("in a rule, a star in the name of the queue, vhost or broker would match others too")
	}
	all := slices.Concat(s.Delays, s.Notify, s.Fields, []string{s.Queue, s.Broker, s.VHost})
	if len(all) > maxSettingItems {
		return s.Wrong("a list has at most " + strconv.Itoa(maxSettingItems-3) + " items here; for more, edit the file")
	}
	for _, v := range all {
		if Visible(v) != v || strings.Contains(v, "${") || strings.Contains(v, "$$") {
			return s.Wrong("give visible characters only, without ${ and $$, and not " + Visible(Cut(v, 100)))
		}
	}
	return nil
}

// SettingChange is how a new value of a setting changes the configuration file.
type SettingChange struct {
	File    string `json:"file"`    // "" = dlo runs without a configuration file
	Changes string `json:"changes"` // each changed key with its new value and the one before, as the audit has it
	YAML    string `json:"yaml"`    // the changed part as a whole, to copy
	Place   string `json:"place"`   // where the text in "yaml" belongs
	Plain   string `json:"-"`       // "yaml" without comments, for people who may not see those of the file
	Unsaved string `json:"unsaved"` // why dlo cannot save the change; "" = it can, or it has
	Digest  string `json:"digest"`  // of the file that was read
	Saved   bool   `json:"saved"`
	Reindex bool   `json:"reindex"` // the change lets dlo index all letters again
	Was     string `json:"-"`       // the text of the file
	Now     string `json:"-"`       // its text after the change; "" if Unsaved says why there is none
}
