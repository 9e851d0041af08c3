package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/deadletteroffice/dlo/internal/storetest"
	"github.com/google/go-cmp/cmp"
)

// audited reads all pages of an audit query, newest first.
func audited(t *testing.T, s *store.Store, text string, now time.Time) (acts []deadletter.Act) {
	t.Helper()
	q, err := query.Parse(text, query.Options{Fields: query.ActFields, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	for after := ""; ; {
		list, next, err := s.Audit(t.Context(), q, after, 2)
		if err != nil {
			t.Fatal(err)
		}
		acts = append(acts, list...)
		if after = next; next == "" {
			return acts
		}
	}
}

func words(acts []deadletter.Act) string {
	list := make([]string, len(acts))
	for i, a := range acts {
		list[i] = strings.TrimSpace(fmt.Sprintf("%s %s %s", a.Actor, a.Kind, a.Operation))
	}
	return strings.Join(list, ", ")
}

func TestTheAuditIsWhatPeopleDid(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	cli, page := deadletter.Through(t.Context(), deadletter.WayCLI), deadletter.Through(t.Context(), deadletter.WayPage)
	ids := receive(t, s, window(t, 1, "sms", 3)).New
	classify(t, s, deadletter.ClassifiedDead, time.Time{})
	q, err := query.Parse("state:dead", query.Options{})
	if err != nil {
		t.Fatal(err)
	}
	first := deadletter.Operation{
		Action: deadletter.VerbDiscard, By: "ann", Through: deadletter.WayCLI, Reason: "noise", Query: "state:dead",
	}
	if err := s.Freeze(cli, &first, query.Selection{Query: &q}, 0, anyPlace); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Advance(t.Context(), first.ID, 10, nil); err != nil {
		t.Fatal(err)
	}
	c.at = c.at.Add(time.Hour)
	second := deadletter.Operation{Action: deadletter.VerbRestore, By: "bob", Through: deadletter.WayPage}
	if err := s.Freeze(page, &second, query.Selection{IDs: ids}, 0, anyPlace); err != nil {
		t.Fatal(err)
	}
	if err := s.CancelOperation(cli, second.ID, "ann"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.AddOverride(deadletter.Through(t.Context(), deadletter.WayAPI), deadletter.Override{
		Broker: "main", VHost: "/", Queue: "sms", To: "sms2", By: "bob",
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Decide(page, deadletter.Decision{
		Groups: []deadletter.GroupID{1},
		By:     "Ann Lee",
		Owner:  new("bob"),
	}); err != nil {
		t.Fatal(err)
	}
	now := c.now().Format("2006-01-02T15:04:05")
	for text, want := range map[string]string{
		"": "Ann Lee assigned, bob redirect, ann cancelled O-2, bob restore O-2, dlo done O-1, ann discard O-1",
		// Queries with one field.
		"who:ann": "ann cancelled O-2, ann discard O-1", `who:"Ann Lee"`: "Ann Lee assigned",
		"who:a*": "Ann Lee assigned, ann cancelled O-2, ann discard O-1", "who:dlo": "dlo done O-1",
		"action:redirect": "bob redirect", "action:assigned,done": "Ann Lee assigned, dlo done O-1",
		"via:cli": "ann cancelled O-2, ann discard O-1", "via:dlo": "dlo done O-1", "via:API": "bob redirect",
		"via:not-recorded": "",
		"target:O-2":       "ann cancelled O-2, bob restore O-2", "target:g-1": "Ann Lee assigned",
		"target:operation": "ann cancelled O-2, bob restore O-2, dlo done O-1, ann discard O-1",
		"target:sm*":       "bob redirect",
		"since:" + now:     "Ann Lee assigned, bob redirect, ann cancelled O-2, bob restore O-2",
		"until:" + now:     "dlo done O-1, ann discard O-1", "since:30m who:ann": "ann cancelled O-2",
		// that day is included
		"until:" + now[:10]: "Ann Lee assigned, bob redirect, ann cancelled O-2, bob restore O-2, dlo done O-1, ann discard O-1",
		// In the following queries, a word without a field is compared with the kind of an act, its
		// actor, its targets, and the query of its operation.
		"noise": "ann discard O-1", "NOISE": "ann discard O-1", "state": "dlo done O-1, ann discard O-1",
		"sms2": "bob redirect", "G-1": "Ann Lee assigned", "cancel": "ann cancelled O-2",
		// Queries with several terms.
		"-via:dlo -who:ann,bob": "Ann Lee assigned",
		"-state":                "Ann Lee assigned, bob redirect, ann cancelled O-2, bob restore O-2",
		"who:bob via:page since:1m action:restore": "bob restore O-2", `who:"' OR 1=1 --"`: "",
	} {
		if got := words(audited(t, s, text, c.now())); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	for _, page := range []struct {
		after string
		limit int
	}{{"", 0}, {"", 501}, {"no cursor!", 1}} {
		if _, _, err := s.Audit(
			t.Context(), query.Query{}, page.after, page.limit,
		); !errors.Is(err, deadletter.ErrInvalid) {
			t.Errorf("%+v: %v", page, err)
		}
	}
	if _, _, err := s.Audit(t.Context(), q, "", 1); !errors.Is(err, deadletter.ErrInvalid) {
		t.Errorf("a query of letters: %v", err)
	}
}

// TestTheAuditSaysWhatWasAskedAndWhatWasDone checks that the audit shows two numbers for an action:
// how many letters were requested, and how many were completed. The numbers differ in this test,
// because another operation had some of the letters.
func TestTheAuditSaysWhatWasAskedAndWhatWasDone(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	ids := receive(t, s, window(t, 1, "sms", 30)).New
	classify(t, s, deadletter.ClassifiedDead, time.Time{})
	holds := deadletter.Operation{Action: deadletter.VerbRequeue, By: "ann", Through: deadletter.WayPage}
	if err := s.Freeze(t.Context(), &holds, query.Selection{IDs: ids[:21]}, 0, anyPlace); err != nil {
		t.Fatal(err)
	}
	if err := s.StopOperation(t.Context(), holds.ID, "too many came back"); err != nil {
		t.Fatal(err)
	}
	op := deadletter.Operation{Action: deadletter.VerbDiscard, By: "bob", Through: deadletter.WayAPI}
	if err := s.Freeze(
		deadletter.Through(t.Context(), deadletter.WayAPI), &op, query.Selection{IDs: ids}, 0, anyPlace,
	); err != nil {
		t.Fatal(err)
	}
	if acts := audited(t, s, "action:discard", c.now()); acts[0].Asked != 30 || acts[0].Done != 0 {
		t.Errorf("before it begins: %+v", acts)
	}
	if _, err := s.Advance(t.Context(), op.ID, 100, nil); err != nil {
		t.Fatal(err)
	}
	got := audited(t, s, "target:"+op.ID.String(), c.now())
	for i := range got {
		got[i].At, got[i].ID = time.Time{}, 0
	}
	target := []deadletter.Target{{Kind: deadletter.TargetOperation, Name: "O-2"}}
	want := []deadletter.Act{
		{
			Kind: "done", Actor: "dlo", Through: deadletter.WayService, Operation: 2, Targets: target,
			Detail: "9 discarded, 21 skipped", Asked: 30, Done: 9, Action: deadletter.VerbDiscard, Total: 30,
		},
		{
			Kind: "discard", Actor: "bob", Through: deadletter.WayAPI, Operation: 2, Targets: target, Asked: 30,
			Done: 9, Action: deadletter.VerbDiscard, Total: 30,
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if acts := audited(
		t, s, "action:stopped", c.now(),
	); acts[0].Asked != 21 || acts[0].Done != 0 || acts[0].Detail != "too many came back" {
		t.Errorf("the one that holds the others: %+v", acts)
	}
	if err := s.CancelOperation(t.Context(), holds.ID, "ann"); err != nil {
		t.Fatal(err)
	}
	if acts := audited(t, s, "action:cancelled", c.now()); acts[0].Asked != 21 || acts[0].Done != 0 {
		t.Errorf("and its end: %+v", acts)
	}
}

// TestADecisionIsOneAct checks that a decision about several groups is recorded as one act. The act
// must be in the history of each group that it changed.
func TestADecisionIsOneAct(t *testing.T) {
	t.Parallel()
	s := withGroups(t)
	s.die("sms", 1, 1)
	s.die("email", 2, 1)
	const into, other = deadletter.GroupID(1), deadletter.GroupID(2)
	page := deadletter.Through(t.Context(), deadletter.WayPage)
	// the decision skips the group into which the others are merged
	d, err := s.Decide(page, deadletter.Decision{Groups: []deadletter.GroupID{other, into}, Into: into, By: "ann"})
	if err != nil || len(d.Skipped) != 1 {
		t.Fatalf("%+v, %v", d, err)
	}
	if _, err := s.Undo(page, d.ID, "bob"); err != nil {
		t.Fatal(err)
	}
	got := audited(t, s.Store, "action:merged,undone", s.clock.now())
	if len(got) != 2 || got[0].Actor != "bob" || got[0].Detail != "merged" || got[0].Asked != 1 || got[1].Asked != 2 ||
		got[1].Done != 1 || got[1].Detail != "into "+into.String() {
		t.Errorf("%+v", got)
	}
	for _, a := range got {
		if len(a.Targets) != 1 || a.Targets[0].Name != other.String() || a.Targets[0].Title == "" ||
			a.Through != deadletter.WayPage {
			t.Errorf("%+v", a)
		}
	}
	for id, want := range map[deadletter.GroupID]int{into: 0, other: 2} {
		if g := s.load(id); len(g.History) != want {
			t.Errorf("%s: %+v", id, g.History)
		}
	}
}

// TestTheAuditOfTheVersionBefore checks entries that an older version wrote. The audit must show
// only what was recorded then. It must guess nothing and change no entry.
func TestTheAuditOfTheVersionBefore(t *testing.T) {
	t.Parallel()
	path := storetest.FileOf(t, 17)
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		`INSERT INTO origins (id, broker, vhost, queue) VALUES (1, 'main', '/', 'sms')`,
		`INSERT INTO groups (id, key, version, title, origin, type, reason, error, severity, first_at, last_at)
			VALUES (4, x'01', 1, 'no such tenant', 1, 0, 'rejected', '', 'page', 0, 0)`,
		`INSERT INTO operations (id, action, state, by, through, reason, created_at, total)
			VALUES (1, 'discard', 'done', 'ann', 'cli', '', 0, 30)`,
		`INSERT INTO operation_counts (operation, origin, result, n) VALUES (1, 1, 'done', 9), (1, 1, 'skipped', 21)`,
		`INSERT INTO events (operation, at, kind, actor, detail)
			VALUES (1, 1, 'discard', 'ann', 'noise'), (1, 2, 'paused', 'bob', ''), (1, 3, 'done', 'dlo', '')`,
		`INSERT INTO events (grp, at, kind, actor, detail) VALUES (4, 4, 'resolved', 'ann', '')`,
		`INSERT INTO events (at, kind, actor, detail) VALUES (5,
			'deploy', 'ci', 'mailer 1.4.1'), (6, 'redirect', 'ann', 'letters of a go to b')`,
		`INSERT INTO events (letter, at, kind, actor, detail) VALUES (7, 7, 'dead', 'dlo', '')`,
	} {
		if _, err := db.Exec(text); err != nil {
			t.Fatal(err, text)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(context.Background(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	const unknown = deadletter.UnknownAmount
	operation := []deadletter.Target{{Kind: deadletter.TargetOperation, Name: "O-1"}}
	of := deadletter.Act{
		Operation: 1, Targets: operation, Action: deadletter.VerbDiscard, Total: 30, Asked: unknown, Done: unknown,
	}
	act := func(a deadletter.Act, id int64, kind, actor, detail string, through deadletter.Way) deadletter.Act {
		a.ID, a.At, a.Kind, a.Actor, a.Detail, a.Through = id, time.UnixMilli(id).UTC(), kind, actor, detail, through
		return a
	}
	started := of
	started.Asked, started.Done = 30, 9
	bare := deadletter.Act{Asked: unknown, Done: unknown}
	group, deploy := bare, bare
	group.Targets = []deadletter.Target{{Kind: deadletter.TargetGroup, Name: "G-4", Title: "no such tenant"}}
	deploy.Targets = []deadletter.Target{{Kind: deadletter.TargetDeploy, Name: "mailer 1.4.1"}}
	want := []deadletter.Act{
		act(bare, 6, "redirect", "ann", "letters of a go to b", ""),
		act(deploy, 5, "deploy", "ci", "mailer 1.4.1", ""),
		act(group, 4, "resolved", "ann", "", ""),
		act(of, 3, "done", "dlo", "", deadletter.WayService),
		act(of, 2, "paused", "bob", "", ""),
		act(started, 1, "discard", "ann", "noise", deadletter.WayCLI),
	}
	if diff := cmp.Diff(want, audited(t, s, "", time.Time{})); diff != "" {
		t.Error(diff)
	}
	if got := words(audited(t, s, "via:not-recorded", time.Time{})); got != "ann redirect, ci deploy, ann resolved, bob paused O-1" {
		t.Error(got)
	}
	if g, err := s.Group(t.Context(), 4); err != nil || len(g.History) != 1 {
		t.Errorf("%+v, %v", g.History, err)
	}
}
