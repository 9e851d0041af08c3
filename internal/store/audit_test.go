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

func TestGroupsByWhatNeedsAPerson(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	ctx := t.Context()
	if list, err := s.Groups(ctx, 10); err != nil || len(list) != 0 {
		t.Fatal(list, err)
	}
	group := func(number int64, queue string, n int, key byte, to deadletter.Trigger) {
		t.Helper()
		receive(t, s, window(t, number, queue, n))
		letters, err := s.ClaimReceived(ctx, 500)
		if err != nil {
			t.Fatal(err)
		}
		var verdicts []deadletter.Classified
		for _, l := range letters {
			verdicts = append(verdicts, deadletter.Classified{
				Letter: l.ID, To: to, Origin: deadletter.Origin{Broker: "main", VHost: "/", Queue: queue}, Reason: "rejected", Type: "acme.T", Error: "e", GroupKey: [32]byte{key},
				GroupTitle: "title of " + queue, GroupVersion: 1, Severity: deadletter.SeverityPage,
			})
		}
		if err := s.Classify(ctx, verdicts); err != nil {
			t.Fatal(err)
		}
	}
	group(1, "old", 3, 1, deadletter.ClassifiedDead)
	c.at = c.at.Add(25 * time.Hour)
	group(2, "sms", 2, 2, deadletter.ClassifiedDead)
	group(3, "sms", 1, 2, deadletter.ClassifiedHold)
	group(4, "sms", 4, 2, deadletter.ClassifiedDiscard)
	c.at = c.at.Add(90 * time.Minute)
	group(5, "sms", 2, 2, deadletter.ClassifiedDead)
	group(6, "quiet", 9, 3, deadletter.ClassifiedDiscard)
	list, err := s.Groups(ctx, 10)
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	sms, old := list[0], list[1]
	if sms.ID != 2 || sms.Count != 5 || sms.Title != "title of sms" || sms.Queue != "sms" || sms.Broker != "main" || sms.VHost != "/" || sms.Type != "acme.T" || sms.Reason != "rejected" || sms.Severity != deadletter.SeverityPage ||
		!sms.LastAt.Equal(c.now()) || !sms.FirstAt.Equal(c.now().Add(-90*time.Minute)) {
		t.Errorf("%+v", sms)
	}
	if len(sms.Spark) != 24 || sms.Spark[23] != 2 || sms.Spark[22] != 7 || sms.Spark[21] != 0 {
		t.Errorf("the hours of sms: %v", sms.Spark)
	}
	if sum := 0; old.Count != 3 {
		t.Errorf("%+v", old)
	} else {
		for _, n := range old.Spark {
			sum += n
		}
		if sum != 0 {
			t.Errorf("the hours of old: %v", old.Spark)
		}
	}
	if list, err := s.Groups(ctx, 1); err != nil || len(list) != 1 || list[0].ID != 2 {
		t.Error(list, err)
	}
	if _, err := s.Groups(ctx, 0); !errors.Is(err, deadletter.ErrInvalid) {
		t.Error(err)
	}
}
