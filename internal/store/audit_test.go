package store_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

// audit reads all pages of a filter and returns what they say, newest first.
func auditWords(t *testing.T, audit func(deadletter.AuditFilter) ([]deadletter.AuditEntry, string, error), f deadletter.AuditFilter) string {
	t.Helper()
	var words []string
	for f.Limit = 2; ; {
		list, next, err := audit(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			words = append(words, fmt.Sprintf("%s %s %s", e.Actor, e.Kind, e.Operation))
		}
		if f.After = next; next == "" {
			return strings.Join(words, ", ")
		}
	}
}

func TestTheAuditIsWhatPeopleDid(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	ctx := t.Context()
	ids := receive(t, s, window(t, 1, "sms", 3)).New
	classify(t, s, deadletter.ClassifiedDead, time.Time{})
	q, err := query.Parse("state:dead", query.Options{})
	if err != nil {
		t.Fatal(err)
	}
	first := deadletter.Operation{Action: deadletter.VerbDiscard, By: "ann", Through: "cli", Reason: "noise", Query: "state:dead"}
	if err := s.Freeze(ctx, &first, query.Selection{Query: &q}, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Advance(ctx, first.ID, 10, nil); err != nil {
		t.Fatal(err)
	}
	c.at = c.at.Add(time.Hour)
	second := deadletter.Operation{Action: deadletter.VerbRestore, By: "bob", Through: "page"}
	if err := s.Freeze(ctx, &second, query.Selection{IDs: ids}, 0); err != nil {
		t.Fatal(err)
	}
	if err := s.CancelOperation(ctx, second.ID, "ann"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.AddOverride(ctx, deadletter.Override{Broker: "main", VHost: "/", Queue: "sms", To: "sms2", By: "bob"}); err != nil {
		t.Fatal(err)
	}
	audit := func(f deadletter.AuditFilter) ([]deadletter.AuditEntry, string, error) { return s.Audit(ctx, f) }
	all := "bob redirect O-0, ann cancelled O-2, bob restore O-2, dlo done O-1, ann discard O-1"
	for _, test := range []struct {
		name string
		f    deadletter.AuditFilter
		want string
	}{
		{"all, newest first, without what happened to letters", deadletter.AuditFilter{}, all},
		{"one person", deadletter.AuditFilter{Actor: "ann"}, "ann cancelled O-2, ann discard O-1"},
		{"one kind", deadletter.AuditFilter{Kind: "redirect"}, "bob redirect O-0"},
		{"one way", deadletter.AuditFilter{Through: "cli"}, "dlo done O-1, ann discard O-1"},
		{"one operation", deadletter.AuditFilter{Operation: second.ID}, "ann cancelled O-2, bob restore O-2"},
		{"since", deadletter.AuditFilter{Since: c.now()}, "bob redirect O-0, ann cancelled O-2, bob restore O-2"},
		{"before", deadletter.AuditFilter{Before: c.now()}, "dlo done O-1, ann discard O-1"},
		{"all at once", deadletter.AuditFilter{Actor: "bob", Since: c.now().Add(-time.Minute), Through: "page", Kind: "restore"}, "bob restore O-2"},
		{"nobody", deadletter.AuditFilter{Actor: "' OR 1=1 --"}, ""},
	} {
		if got := auditWords(t, audit, test.f); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
	list, _, err := s.Audit(ctx, deadletter.AuditFilter{Kind: "discard", Limit: 1})
	if err != nil || list[0].Query != "state:dead" || list[0].Total != 3 || list[0].Through != "cli" || list[0].Detail != "noise" || !list[0].At.Equal(c.now().Add(-time.Hour)) {
		t.Errorf("%+v %v", list, err)
	}
	for _, f := range []deadletter.AuditFilter{{Limit: 0}, {Limit: 501}, {Limit: 1, After: "no cursor!"}} {
		if _, _, err := s.Audit(ctx, f); !errors.Is(err, deadletter.ErrInvalid) {
			t.Errorf("%+v: %v", f, err)
		}
	}
}
