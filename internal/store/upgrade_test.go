package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/deadletteroffice/dlo/internal/storetest"
	"github.com/google/go-cmp/cmp"
)

// TestOperationsOfTheVersionBefore checks operations that an older version of dlo began. They must
// continue at the point where the older version stopped. If the older version did not record what
// became of the letters, the present version must record it. No operation may stay unfinished.
func TestOperationsOfTheVersionBefore(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	path := storetest.FileOf(t, 1)
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	run := func(text string, args ...any) {
		t.Helper()
		if _, err := db.Exec(text, args...); err != nil {
			t.Fatal(err, text)
		}
	}
	run(`INSERT INTO origins (id, broker, vhost, queue) VALUES (1, 'main', '/', 'sms')`)
	run(`INSERT INTO inboxes (id, broker, vhost, queue) VALUES (1, 'main', '/', 'dlo.letters')`)
	c := &clock{time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)}
	none, err := deadletter.Properties{}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	var serials int64
	// the parameter operation is the operation of the letter's newest attempt
	letter := func(state string, operation, owner int64, outcome string) int64 {
		serials++
		id := c.at.UnixMilli()<<12 + serials
		var due, resend, own any
		if state == "scheduled" || state == "requeued" {
			due = c.at.UnixMilli()
		}
		if state == "publishing" {
			resend = c.at.UnixMilli()
		}
		if owner > 0 {
			own = owner
		}
		tries := 0
		used := 0
		if outcome != "" {
			tries = 1
		}
		if outcome == "confirmed" {
			used = 1
		}
		run(`INSERT INTO letters (id, random, state, inbox, origin,
			received_at, changed_at, size, tries, attempts, due_at, epoch, lease_until, operation)
			VALUES ($1, 1, $2, 1, 1, $3, $3, 1, $4, $5, $6, $7, $7, $8)`,
			id, state, c.at.UnixMilli(), tries, used, due, resend, own)
		run(`INSERT INTO bodies (letter, exchange, routing_key, properties, body)
			VALUES ($1, '', '', $2, x'41')`, id, none)
		run(`INSERT INTO events (letter, at, kind, actor, detail) VALUES ($1, 0, 'dead', 'dlo', '')`, id)
		run(`INSERT INTO counters (state, origin, type, reason, grp, severity, n) VALUES ($1, 1, 0, '', 0, '', 1)
			ON CONFLICT DO UPDATE SET n = n + 1`, state)
		if outcome != "" {
			run(`INSERT INTO attempts (letter, n, number, token, queue, operation, outcome, at)
				VALUES ($1, 1, 1, $2, 'sms', $3, $4, 0)`, id, fmt.Appendf(nil, "%016d", serials), operation, outcome)
		}
		return id
	}
	operations := func(id int64, state string, results map[int64]string) {
		var finished any
		if state != "running" {
			finished = c.at.UnixMilli()
		}
		run(`INSERT INTO operations (id, action, state, by, through, reason, created_at, finished_at, total)
			VALUES ($1, 'requeue', $2, 'local', 'cli', '', $3,
			$4, $5)`, id, state, c.at.UnixMilli(), finished, len(results))
		for letter, result := range results {
			run(`INSERT INTO operation_letters (operation, letter, origin, result, was)
				VALUES ($1, $2, 1, $3, 'dead')`, id, letter, result)
		}
	}
	shared := letter("dead", 0, 0, "")
	operations(1, "running", map[int64]string{
		shared: "pending", letter("scheduled", 0, 1, ""): "released",
		letter("requeued", 1, 0, "confirmed"): "confirmed",
	})
	operations(2, "running", map[int64]string{shared: "pending"}) // the shared letter belongs to the first operation
	operations(3, "done", map[int64]string{
		letter("requeued", 3, 0, "confirmed"): "confirmed", letter("settled", 3, 0, "confirmed"): "confirmed",
	})
	operations(4, "done", map[int64]string{letter("settled", 4, 0, "confirmed"): "confirmed"})
	operations(5, "cancelled", map[int64]string{
		letter("publishing", 5, 5, "open"): "released", letter("dead", 0, 0, ""): "cancelled",
	})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	s, err := store.Open(ctx, path, store.Options{Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for id, want := range map[deadletter.OperationID]string{
		1: "running sending map[confirmed:1 pending:1 released:1]", 2: "done over map[skipped:1]",
		3: "running watching map[confirmed:1 quiet:1]", 4: "done over map[quiet:1]",
		5: "cancelled sending map[cancelled:1 released:1]",
	} {
		op := operation(t, s, id)
		if diff := cmp.Diff(want, fmt.Sprint(op.State, " ", op.Phase, " ", op.Counts)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", id, diff)
		}
	}
	if db, err = sql.Open("sqlite", "file:"+path+"?mode=ro"); err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, breach := range breaches(t, db) {
		t.Error(breach)
	}
	if _, err := s.Advance(ctx, 1, 10, nil); err != nil {
		t.Fatal(err)
	}
	doubtful, err := s.ClaimDoubtful(ctx, "main", c.now(), 10)
	if err != nil {
		t.Fatal(err)
	}
	mark(t, s, c, deadletter.OutcomeConfirmed, append(doubtful, claim(t, s, c)...)...)
	c.at = c.at.Add(time.Hour)
	if _, err := s.SettleQuiet(ctx, deadletter.Origin{
		Broker: "main", VHost: "/", Queue: "sms",
	}, c.now(), 100, deadletter.QueueFacts{Known: true, Exists: true, Consumers: 1}); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[deadletter.OperationID]string{
		1: "done over map[quiet:3]", 3: "done over map[quiet:2]", 5: "cancelled over map[cancelled:1 quiet:1]",
	} {
		op := operation(t, s, id)
		counts := counted{}
		for r, n := range op.Counts {
			if n > 0 {
				counts[r] = n
			}
		}
		if diff := cmp.Diff(want, fmt.Sprint(op.State, " ", op.Phase, " ", counts)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", id, diff)
		}
	}
}

// TestContentsOfTheVersionBefore covers a store of a version that left masked values of JSON in the
// search index, the facets and the summaries. They must be gone, and the letter must be read again.
func TestContentsOfTheVersionBefore(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	path := storetest.FileOf(t, 31)
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	none, err := deadletter.Properties{}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		`INSERT INTO origins (id, broker, vhost, queue) VALUES (1, 'main', '/', 'sms')`,
		`INSERT INTO inboxes (id, broker, vhost, queue) VALUES (1, 'main', '/', 'dlo.letters')`,
		`INSERT INTO letters (id, random, state, inbox, origin, received_at, changed_at, size, summary)
			VALUES (4096, 1, 'dead', 1, 1, 1, 1, 1, 'canary')`,
		`INSERT INTO counters (state, origin, type, reason, grp, severity, n) VALUES ('dead', 1, 0, '', 0, '', 1)`,
		`INSERT INTO words (rowid, text) VALUES (4096, 'canary')`,
		`INSERT INTO body_fields (letter, field, value) VALUES (4096, 'note', 'canary')`,
	} {
		if _, err := db.Exec(text); err != nil {
			t.Fatal(err, text)
		}
	}
	if _, err := db.Exec(`INSERT INTO bodies (letter, exchange, routing_key, properties, body)
		VALUES (4096, '', '', $1, x'41')`, none); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(ctx, path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	again := nextUnread(t, s, 10)
	n, err := s.Unindexed(ctx)
	if err != nil || n != 1 || len(again) != 1 || again[0].Summary != "" || count(t, s, "canary") != 0 {
		t.Errorf("%d letters are indexed again, and these are read again: %+v, %v", n, again, err)
	}
}

// TestRegressedGroupsOfTheVersionBefore checks a group that came back in a version that recorded
// this only in the history. The group must have the time of its last return.
func TestRegressedGroupsOfTheVersionBefore(t *testing.T) {
	t.Parallel()
	path := storetest.FileOf(t, 33)
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		`INSERT INTO origins (id, broker, vhost, queue) VALUES (1, 'main', '/', 'sms')`,
		`INSERT INTO groups (id, key, version, title, origin, type, reason, error, severity, status, first_at, last_at)
			VALUES (1, x'01', 1, 't', 1, 0, '', '', 'page', 'regressed', 1, 1)`,
		`INSERT INTO events (id, at, kind, actor, detail) VALUES (1, 1000, 'regressed', 'dlo', ''),
			(2, 2000, 'regressed', 'dlo', ''), (3, 3000, 'noted', 'ana', '')`,
		`INSERT INTO event_targets (event, kind, name) VALUES (1, 'group', 'G-1'), (2, 'group', 'G-1'),
			(3, 'group', 'G-1')`,
	} {
		if _, err := db.Exec(text); err != nil {
			t.Fatal(err, text)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	g, err := s.Group(t.Context(), 1)
	if want := (deadletter.Back{Since: time.UnixMilli(2000).UTC()}); err != nil || g.Back != want {
		t.Errorf("%+v, %v, want %+v", g.Back, err, want)
	}
}
