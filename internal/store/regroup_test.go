package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestLettersAreRegroupedByANewVersion checks a change of the grouping version. Letters in groups
// of an older version must be read again, each exactly once, even if the process dies in between.
// If people picked a type for an old group, the new group must get this type too.
func TestLettersAreRegroupedByANewVersion(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := start(t)
	regroup := func(version int, want bool) {
		t.Helper()
		if got, err := p.Regroup(ctx, version, ""); err != nil || got != want {
			t.Fatalf("letters to be regrouped: %v, want %v; %v", got, want, err)
		}
	}
	regroup(1, false) // the store is empty
	ids := receive(t, p.Store, window(t, 1, "sms", 3)).New
	classify(t, p.Store, deadletter.ClassifiedDead, time.Time{}) // version 1 makes these groups
	p.restart(t)
	regroup(1, false)
	was := letter(t, p.Store, ids[0])
	if was.GroupVersion != 1 {
		t.Fatalf("%+v", was)
	}
	if _, err := p.AddPick(ctx, deadletter.Pick{
		Group: was.Group, Binding: deadletter.Binding{Type: "acme.G"}, By: "local", Reason: "seen",
	}, nil); err != nil {
		t.Fatal(err)
	}
	recordRead(t, p.Store, "acme.G", deadletter.ReadByPick, 1, nextUnread(t, p.Store, 10)...)

	regroup(2, true)
	if r := rereading(t, p.Store); r.Why != "grouping version 2" {
		t.Errorf("%+v", r)
	}
	p.restart(t) // no letter is listed yet
	regroup(2, true)
	got := nextUnread(t, p.Store, 10)
	if len(got) != 3 || got[0].GroupPick != "acme.G" {
		t.Fatalf("%+v", got)
	}
	var list []deadletter.Read
	for i, l := range got {
		list = append(list, deadletter.Read{AsOf: l.ChangedAt, Classified: deadletter.Classified{
			Letter:       l.ID,
			Type:         "acme.G",
			Reading:      deadletter.ReadByPick,
			Summary:      l.Summary,
			Error:        "X: boom",
			GroupKey:     [32]byte{9, byte(i / 2)},
			GroupTitle:   "X: boom",
			GroupVersion: 2,
			Reason:       l.Reason,
		}})
	}
	if err := p.Read(ctx, list); err != nil {
		t.Fatal(err)
	}
	groups := map[deadletter.GroupID]bool{}
	for _, id := range ids {
		l := letter(t, p.Store, id)
		if groups[l.Group] = true; l.Group == was.Group || l.GroupVersion != 2 || l.Error != "X: boom" ||
			l.GroupPick != "acme.G" || l.State != deadletter.StateDead {
			t.Errorf("%+v", l)
		}
	}
	if len(groups) != 2 {
		t.Errorf("%d groups", len(groups))
	}
	p.restart(t)
	regroup(2, false)
	if more, err := p.ListUnread(ctx); more || err != nil {
		t.Errorf("asked for a second time: %v %v", more, err)
	}
}

// TestLettersAreReadAgainForOtherSettings checks that letters are read again once if the settings
// have changed, and not if an older dlo did not record them.
func TestLettersAreReadAgainForOtherSettings(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := start(t)
	receive(t, p.Store, window(t, 1, "sms", 3))
	classify(t, p.Store, deadletter.ClassifiedDead, time.Time{})
	if err := p.Writer(ctx, `INSERT INTO meta (key, value) VALUES ('grouping', '1')`); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		settings string
		want     int
	}{{"", 0}, {"", 0}, {"message: x-why", 3}, {"message: x-why", 0}, {"", 3}} {
		left, err := p.Regroup(ctx, 1, c.settings)
		if err != nil || left != (c.want > 0) {
			t.Errorf("%q: letters to be read: %v; %v", c.settings, left, err)
		}
		got := nextUnread(t, p.Store, 10)
		if len(got) != c.want {
			t.Errorf("%q: %d letters are read again, want %d", c.settings, len(got), c.want)
		}
		recordRead(t, p.Store, "", deadletter.ReadUnknown, 1, got...)
		p.restart(t)
	}
}

// TestStoredLettersGetTheTypeOfTheirFramework checks letters that an older version stored without
// the type that their framework names. When such a letter is read again, it must get this type. It
// must stay in its group, which is renamed after the type. Other bodies must not be matched with
// the type, because no schema defines it.
func TestStoredLettersGetTheTypeOfTheirFramework(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	ctx := context.Background()
	id := receive(t, s, window(t, 1, "sms", 1)).New[0]
	verdict := deadletter.Classified{
		Letter:       id,
		To:           deadletter.ClassifiedDead,
		Origin:       deadletter.Origin{Broker: "main", VHost: "/", Queue: "sms"},
		Reason:       "rejected",
		Reading:      deadletter.ReadAsJSON,
		GroupKey:     [32]byte{1},
		GroupTitle:   "letters rejected",
		GroupVersion: 2,
	}
	if _, err := s.NextReceived(ctx, 10); err != nil {
		t.Fatal(err)
	}
	if err := s.Classify(ctx, []deadletter.Classified{verdict}); err != nil {
		t.Fatal(err)
	}
	was := letter(t, s, id)
	if again, err := s.Regroup(ctx, 3, ""); err != nil || !again {
		t.Fatalf("read again: %v %v", again, err)
	}
	l := nextUnread(t, s, 10)[0]
	verdict.Type, verdict.GroupTitle, verdict.GroupVersion = "shop.charge", "shop.charge rejected", 3
	if err := s.Read(ctx, []deadletter.Read{{AsOf: l.ChangedAt, Classified: verdict}}); err != nil {
		t.Fatal(err)
	}
	title, err := s.GroupTitle(ctx, was.Group)
	if is := letter(
		t, s, id,
	); err != nil || is.Type != "shop.charge" || is.Group != was.Group || title != "shop.charge rejected" {
		t.Errorf("%q in %s, %q; %v", is.Type, is.Group, title, err)
	}
	if n := count(t, s, "type:shop.charge"); n != 1 {
		t.Errorf("%d letters of the type", n)
	}
	if priors, err := s.Priors(ctx, verdict.Origin); err != nil || len(priors) > 0 {
		t.Errorf("bodies are matched by %v; %v", priors, err)
	}
	if counts, err := s.TypeCounts(ctx, nil); err != nil || len(counts) > 0 {
		t.Errorf("a schema reads %v; %v", counts, err)
	}
	if err := s.Reread(ctx, deadletter.Reread{Why: "set other 1", Types: []string{"acme.Other"}}); err != nil {
		t.Fatal(err)
	}
	if got := nextUnread(t, s, 10); len(got) != 1 {
		t.Errorf("%d letters may be of a type that a new set has", len(got))
	}
}
