package view

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// AuditPage is what people, and dlo by itself, did.
type AuditPage struct {
	Shell
	Entries  []deadletter.AuditEntry // newest first
	Next     string                  // cursor of the next page; "" at the end
	Filter   AuditForm
	Kinds    []string          // that can be filtered by
	Mistakes map[string]string // what is wrong in a field of the filter, by its name
	Restore  string            // how long a discarded letter can be restored
}

// AuditForm is the filter as it is written in the form.
type AuditForm struct{ Actor, Kind, Through, Since, Before, After string }

func (p AuditPage) url(path, after string) string {
	f := p.Filter
	return address(path, "actor", f.Actor, "kind", f.Kind, "through", f.Through, "since", f.Since, "before", f.Before, "after", after)
}

// throughs are the ways by which a person acts.
var throughs = []string{"page", "api", "cli"}

func throughWord(t string) string {
	switch t {
	case "api":
		return "API"
	case "cli":
		return "CLI"
	case "":
		return "dlo itself"
	}
	return line(t, 20)
}

// auditMark is how a kind of entry looks.
func auditMark(kind string) mark {
	if v := deadletter.Verb(kind); v.Past() != "" {
		tone := ""
		switch {
		case v.Sends():
			tone = "good"
		case destroys(v):
			tone = "bad"
		}
		return mark{kind, verbIcon(v), tone}
	}
	switch kind {
	case "cancelled":
		return mark{kind, "x", "warn"}
	case "paused":
		return mark{kind, "pause", "warn"}
	case "resumed":
		return mark{kind, "play", ""}
	case "stopped":
		return mark{kind, "stop", "bad"}
	case "done":
		return mark{kind, "check", "good"}
	case "retention":
		return mark{kind, "trash", ""}
	}
	return mark{line(kind, 40), "info", ""}
}

// restorable says whether an entry offers to take a discard back.
func restorable(e deadletter.AuditEntry) bool {
	return e.Kind == string(deadletter.VerbDiscard) && e.Operation != 0 && e.Total > 0
}

func (p AuditPage) filtered() bool { return p.url("", "") != "" }

func (p AuditPage) wrong(name string) string { return p.Mistakes[name] }

// logTime writes the time of an entry as short as its distance from now allows.
func logTime(now, t time.Time) string {
	t = t.UTC()
	if t.Format("2006-01-02") == now.UTC().Format("2006-01-02") {
		return t.Format("15:04:05")
	}
	return t.Format("2 Jan 15:04")
}
