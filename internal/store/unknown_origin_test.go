package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/deadletteroffice/dlo/internal/storetest"
)

// TestLettersOfUnknownOriginBelongToTheirInbox checks letters of unknown origin. People who may see
// an inbox see the letters of that inbox in every count, and they see the letters of no other
// inbox.
func TestLettersOfUnknownOriginBelongToTheirInbox(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	var verdicts []deadletter.Classified
	for i, inbox := range []string{"dlo.a", "dlo.b"} {
		w := window(t, 1, "sms", 3-i)
		w.Inbox = inbox
		for _, l := range receive(t, s, w).New {
			verdicts = append(verdicts, deadletter.Classified{
				Letter:       l,
				To:           deadletter.ClassifiedDead,
				Origin:       deadletter.Origin{Broker: "main", VHost: "/"},
				Reason:       "rejected",
				GroupKey:     [32]byte{byte(i)},
				GroupTitle:   "title of " + inbox,
				GroupVersion: 4,
				Severity:     deadletter.SeverityNotify,
			})
		}
	}
	a, b := withGrants(t, queues("dlo.a")), withGrants(t, queues("dlo.b"))
	if n, _, err := s.Count(a, query.Query{}, 0); n != 0 || err != nil {
		t.Errorf("%d letters are seen before dlo has decided where they died, %v", n, err)
	}
	if err := s.Classify(t.Context(), verdicts); err != nil {
		t.Fatal(err)
	}
	for _, v := range verdicts {
		if err := s.Index(t.Context(), []deadletter.Indexed{{Letter: v.Letter, Text: "rejected"}}); err != nil {
			t.Fatal(err)
		}
	}
	places, err := s.GroupPlaces(a, 1)
	if want := (deadletter.Origin{
		Broker: "main", VHost: "/", Queue: "dlo.a",
	}); err != nil || len(places) != 1 || places[0] != want {
		t.Errorf("a decision on the group needs a right for %v, %v", places, err)
	}
	if _, err := s.GroupPlaces(a, 2); !errors.Is(err, deadletter.ErrNotFound) {
		t.Errorf("the group of another inbox: %v", err)
	}
	for _, scope := range []struct {
		ctx     context.Context
		inboxes []string
		letters int
	}{
		{a, []string{"dlo.a"}, 3},
		{b, []string{"dlo.b"}, 2},
		{withGrants(t, queues("dlo.*")), []string{"dlo.a", "dlo.b"}, 5},
		{withGrants(t, queues("sms")), nil, 0},
		{t.Context(), []string{"dlo.a", "dlo.b"}, 5},
	} {
		seesOnly(t, s, c, scope.ctx, scope.letters, scope.inboxes...)
	}
}

// seesOnly checks that a request sees n dead letters, all of unknown origin. It must see only the
// given inboxes and their groups.
func seesOnly(t *testing.T, s *store.Store, c *clock, ctx context.Context, n int, inboxes ...string) {
	t.Helper()
	for _, text := range []string{"", "state:dead", "-queue:sms", "rejected"} {
		q, err := query.Parse(text, query.Options{Now: c.now()})
		if err != nil {
			t.Fatal(err)
		}
		if got, _, err := s.Count(ctx, q, 0); got != n || err != nil {
			t.Errorf("%q counts %d letters, want %d (%v)", text, got, n, err)
		}
		rows, _, _, err := s.Letters(ctx, q, deadletter.Page{Limit: 100})
		if err != nil || len(rows) != n {
			t.Errorf("%q lists %d letters, want %d (%v)", text, len(rows), n, err)
		}
		for _, r := range rows {
			if r.Broker != "main" || r.VHost != "/" || r.Queue != "" {
				t.Errorf("a letter of unknown origin is shown at %q, %q, %q", r.Broker, r.VHost, r.Queue)
			}
		}
	}
	shares, _, err := s.Survey(ctx, query.Selection{Query: &query.Query{}}, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	var from []string
	for _, share := range shares {
		from = append(from, share.Inbox)
	}
	if slices.Sort(from); !slices.Equal(from, inboxes) {
		t.Errorf("a plan has letters of %q, want %q", from, inboxes)
	}
	groups, _, err := s.Groups(ctx, query.Query{}, deadletter.GroupPage{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	var titles, want []string
	for _, g := range groups {
		titles = append(titles, g.Title)
	}
	for _, inbox := range inboxes {
		want = append(want, "title of "+inbox)
	}
	if slices.Sort(titles); !slices.Equal(titles, want) {
		t.Errorf("groups %q, want %q", titles, want)
	}
	facets, err := s.Facets(ctx, query.Query{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range facets.Fields {
		for _, v := range f.Values {
			if slices.Contains([]string{string(query.Queue), string(query.VHost), string(query.Broker)}, f.Field) {
				t.Errorf("a facet names %s %q", f.Field, v.Value)
			} else if f.Field == string(query.State) && v.Count != n {
				t.Errorf("the facet of states counts %d letters, want %d", v.Count, n)
			}
		}
	}
}

// TestLettersOfUnknownOriginOfTheVersionBefore checks letters of unknown origin from an earlier
// version, which stored them without an origin. When they are read again, they get the origin that
// belongs to their inbox.
func TestLettersOfUnknownOriginOfTheVersionBefore(t *testing.T) {
	t.Parallel()
	path := storetest.FileOf(t, 27)
	c := &clock{time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)}
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	none, err := deadletter.Properties{}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	ms := c.at.UnixMilli()
	for _, text := range []string{
		`INSERT INTO inboxes (id, broker, vhost, queue) VALUES (1, 'main', '/', 'dlo.a'), (2, 'main', '/', 'dlo.b')`,
		`INSERT INTO groups (id, key, version, title, origin, type, reason, error, severity, first_at, last_at)
			VALUES (1, x'01', 3, 'title of both', 0, 0, 'rejected', '', 'notify', 0, 0)`,
		fmt.Sprintf(`INSERT INTO letters (id, random, state,
			inbox, origin, grp, reason, severity, reading, received_at, changed_at, size)
			VALUES (%[1]d, 1, 'dead', 1, 0, 1, 'rejected', 'notify',
			'bytes', %[2]d, %[2]d, 1), (%[3]d, 1, 'dead', 2,
			0, 1, 'rejected', 'notify', 'bytes', %[2]d, %[2]d, 1)`, ms<<12+1, ms, ms<<12+2),
		fmt.Sprintf(`INSERT INTO bodies (letter, exchange, routing_key, properties, body)
			SELECT id, '', '', x'%x', x'41' FROM letters`, none),
		`INSERT INTO events (letter, at, kind, actor, detail) SELECT id, 0, 'dead', 'dlo', '' FROM letters`,
		`INSERT INTO counters (state, origin, type, reason, grp, severity, n)
			VALUES ('dead', 0, 0, 'rejected', 1, 'notify', 2)`,
		`INSERT INTO readings (origin, type, reading, n) VALUES (0, 0, 'bytes', 2)`,
		fmt.Sprintf(`INSERT INTO rollups (bucket, grp, state, n) VALUES (%d, 1, 'dead', 2)`, ms/900_000),
	} {
		if _, err := db.Exec(text); err != nil {
			t.Fatal(err, text)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), path, store.Options{Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	a := withGrants(t, queues("dlo.a"))
	if n, _, err := s.Count(a, query.Query{}, 0); n != 0 || err != nil {
		t.Errorf("%d letters of a group that belongs to all inboxes, %v", n, err)
	}
	if left, err := s.Regroup(t.Context(), 4, ""); !left || err != nil {
		t.Fatal(left, err)
	}
	for i, inbox := range []string{"dlo.a", "dlo.b"} {
		v := deadletter.Classified{
			Letter:       deadletter.NewID(ms<<12+int64(i)+1, 1),
			Origin:       deadletter.Origin{Broker: "main", VHost: "/"},
			Reason:       "rejected",
			Reading:      "bytes",
			Severity:     deadletter.SeverityNotify,
			GroupKey:     [32]byte{byte(i)},
			GroupTitle:   "title of " + inbox,
			GroupVersion: 4,
		}
		if err := s.Read(t.Context(), []deadletter.Read{{AsOf: c.at, Classified: v}}); err != nil {
			t.Fatal(err)
		}
		if err := s.Index(t.Context(), []deadletter.Indexed{{Letter: v.Letter, Text: "rejected"}}); err != nil {
			t.Fatal(err)
		}
	}
	seesOnly(t, s, c, a, 1, "dlo.a")
	seesOnly(t, s, c, withGrants(t, queues("dlo.b")), 1, "dlo.b")
	for _, breach := range breaches(t, s.Reader()) {
		t.Error(breach)
	}
}
