package store_test

import (
	"bytes"
	by "cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/google/go-cmp/cmp"
)

// fillVaried fills a store with letters of many states, queues, types, reasons and groups. Every
// seventh letter has no origin.
func fillVaried(t testing.TB, s *store.Store, c *clock, n int) {
	t.Helper()
	ctx := context.Background()
	w := window(t, 1, "sms", n)
	for i := range w.Arrivals {
		w.Arrivals[i].Properties.Headers = nil
		w.Arrivals[i].Body = bytes.Repeat([]byte("x"), i%5) // many letters have the same size
	}
	fillFingerprints(t, &w)
	receive(t, s, w)
	triggers := []deadletter.Trigger{
		deadletter.ClassifiedDead, deadletter.ClassifiedRetry, deadletter.ClassifiedHold, deadletter.ClassifiedDiscard,
	}
	letters, err := s.NextReceived(ctx, n)
	if err != nil {
		t.Fatal(err)
	}
	var verdicts []deadletter.Classified
	for i, l := range letters[:n-n/10] { // the other letters remain received
		v := deadletter.Classified{
			Letter:       l.ID,
			To:           triggers[i%len(triggers)],
			Reason:       []string{"rejected", "expired", ""}[i%3],
			Type:         []string{"acme.A", "acme.B", ""}[i/2%3],
			GroupKey:     [32]byte{byte(i % 11)},
			GroupTitle:   "g",
			GroupVersion: 1,
			Severity:     deadletter.SeverityDigest,
		}
		if i%3 > 0 {
			v.DiedAt = c.now().Add(-time.Duration(i%4) * time.Hour).Truncate(time.Second)
		}
		if i%7 > 0 {
			v.Origin = deadletter.Origin{Broker: "main", VHost: "/", Queue: []string{"sms", "email", "a b"}[i%3]}
		}
		if v.To == deadletter.ClassifiedRetry {
			v.DueAt = c.now().Add(time.Duration(i%5) * time.Minute) // many letters have the same due time
		}
		verdicts = append(verdicts, v)
	}
	if err := s.Classify(ctx, verdicts); err != nil {
		t.Fatal(err)
	}
}

var queries = []string{
	"", "state:dead", "state:scheduled", "state:dead,held", "state:received", "state:purged", "queue:sms",
	"queue:sms,email", `queue:"a b"`, `queue:""`, "queue:nowhere", "type:acme.A", "type:none",
	"type:acme.A,none", "type:nothing", "reason:rejected", `reason:""`, "reason:unheard", "group:G-1",
	"group:G-1,G-2,G-3", "group:G-999", "state:dead queue:sms", "queue:sms type:acme.A reason:rejected",
	"state:scheduled queue:email", "state:dead state:held", "queue:sms queue:email",
	"group:G-2 state:dead,scheduled type:acme.B",
}

func parse(t testing.TB, text string) query.Query {
	t.Helper()
	q, err := query.Parse(text, query.Options{Body: func(string) bool { return true }})
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// walk reads a list page by page, from the first page to the last and back. It returns the ids that
// it read in each direction.
func walk(
	t testing.TB, s *store.Store, q query.Query, order deadletter.Order, limit int,
) (there, back []deadletter.ID) {
	t.Helper()
	page := deadletter.Page{Limit: limit, Order: order}
	for {
		rows, newer, older, err := s.Letters(context.Background(), q, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			there = append(there, r.ID)
		}
		if (newer != "") != (page.After != "" && len(rows) > 0) || len(rows) > limit ||
			older != "" && len(rows) < limit {
			t.Fatalf("a page of %d rows after %q has the neighbours %q and %q", len(rows), page.After, newer, older)
		}
		if older == "" {
			page = deadletter.Page{Limit: limit, Order: order, Before: newer}
			for _, r := range rows {
				back = append(back, r.ID)
			}
			break
		}
		page.After = older
	}
	for page.Before != "" {
		rows, newer, older, err := s.Letters(context.Background(), q, page)
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) != limit && newer != "" || older == "" {
			t.Fatalf("a page of %d rows before %q has the neighbours %q and %q", len(rows), page.Before, newer, older)
		}
		var ids []deadletter.ID
		for _, r := range rows {
			ids = append(ids, r.ID)
		}
		back = append(ids, back...)
		page.Before = newer
	}
	return there, back
}

// matchingIDs checks every letter against a query. It returns the matching letters in the order of
// the list.
func matchingIDs(t testing.TB, s *store.Store, q query.Query, order deadletter.Order) []deadletter.ID {
	t.Helper()
	all, err := s.Rows(context.Background(), everyID(t, s))
	if err != nil {
		t.Fatal(err)
	}
	all = slices.DeleteFunc(all, func(r deadletter.Row) bool {
		for _, term := range q.Terms {
			has := map[query.Field]string{
				query.State: string(r.State), query.Queue: r.Queue, query.Type: r.Type, query.Reason: r.Reason,
				query.Group: r.Group.String(),
			}[term.Field]
			if term.Field == query.Type && has == "" {
				has = query.NoType
			}
			if !slices.Contains(query.Query{Terms: []query.Term{term}}.Values(term.Field), has) {
				return true
			}
		}
		return order == deadletter.OrderDue && r.DueAt.IsZero()
	})
	died := func(r deadletter.Row) time.Time {
		if r.DiedAt.IsZero() {
			return r.ReceivedAt
		}
		return r.DiedAt
	}
	slices.SortFunc(all, func(a, b deadletter.Row) int {
		younger := strings.Compare(string(b.ID), string(a.ID))
		switch order {
		case deadletter.OrderDue:
			return by.Or(a.DueAt.Compare(b.DueAt), -younger)
		case deadletter.OrderOldest:
			return -younger
		case deadletter.OrderDied:
			return by.Or(died(b).Compare(died(a)), younger)
		case deadletter.OrderAttempts:
			return by.Or(b.Attempts-a.Attempts, younger)
		case deadletter.OrderSize:
			return by.Or(b.Size-a.Size, younger)
		}
		return younger
	})
	var ids []deadletter.ID
	for _, r := range all {
		ids = append(ids, r.ID)
	}
	return ids
}

func everyID(t testing.TB, s *store.Store) []deadletter.ID {
	t.Helper()
	rows, err := s.Reader().Query(`SELECT id, random FROM letters`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var ids []deadletter.ID
	for rows.Next() {
		var serial, random int64
		if err := rows.Scan(&serial, &random); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, deadletter.NewID(serial, uint64(random)))
	}
	return ids
}

// TestListsAndCounts checks every letter against a query one by one. Lists must contain exactly the
// letters that match, in the right order and in both directions. Counts must agree with the lists.
func TestListsAndCounts(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	fillVaried(t, s, c, 80)
	for _, text := range queries {
		q := parse(t, text)
		for _, order := range deadletter.Orders {
			want := matchingIDs(t, s, q, order)
			for _, limit := range []int{3, 500} {
				there, back := walk(t, s, q, order, limit)
				if !slices.Equal(there, want) {
					t.Errorf(
						"%q by %s, %d a page: %d letters, want %d in this order", text, order, limit, len(there),
						len(want),
					)
				}
				if !slices.Equal(back, want) {
					t.Errorf(
						"%q by %s, %d a page, backwards: %d letters, want %d in this order", text, order, limit,
						len(back), len(want),
					)
				}
			}
			if n := count(t, s, text); order == deadletter.OrderReceived && n != len(want) {
				t.Errorf("%q: %d counted, %d listed", text, n, len(want))
			}
		}
	}
}

// TestFacetsCountWhatTheyWouldSelect checks the number that a facet shows beside each value. A
// search with this value must find exactly this number of letters.
func TestFacetsCountWhatTheyWouldSelect(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	fillVaried(t, s, c, 200)
	for _, text := range queries {
		q := parse(t, text)
		facets, err := s.Facets(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, facet := range facets.Fields {
			field, values := facet.Field, facet.Values
			for i, v := range values {
				if i > 0 && values[i-1].Count < v.Count {
					t.Errorf("%q: %s is not sorted", text, field)
				}
				if n, _, err := s.Count(
					context.Background(), q.With(query.Field(facet.Field), v.Value), 0,
				); err != nil || n != v.Count {
					t.Errorf("%q: %s %q says %d and selects %d (%v)", text, field, v.Value, v.Count, n, err)
				}
			}
		}
	}
}

func TestNeighbours(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	fillVaried(t, s, c, 40)
	q := parse(t, "state:dead")
	for _, order := range append(slices.Clone(deadletter.Orders), "") {
		list, _ := walk(t, s, q, order, 500)
		for i, id := range list {
			before, after, err := s.Neighbours(context.Background(), q, id, order)
			if err != nil {
				t.Fatal(err)
			}
			var want [2]deadletter.ID
			if i > 0 {
				want[0] = list[i-1]
			}
			if i+1 < len(list) {
				want[1] = list[i+1]
			}
			if before != want[0] || after != want[1] {
				t.Errorf("%d by %s: %q and %q, want %q", i, order, before, after, want)
			}
			if ahead, listed, err := s.Ahead(
				context.Background(), q, id, order, 500,
			); ahead != i || !listed || err != nil {
				t.Errorf("%d by %s: %d letters ahead, %v, %v", i, order, ahead, listed, err)
			}
			if ahead, _, err := s.Ahead(context.Background(), q, id, order, 3); ahead != min(i, 3) || err != nil {
				t.Errorf("%d by %s: %d letters ahead, counted to 3: %v", i, order, ahead, err)
			}
			if _, listed, err := s.Ahead(
				context.Background(), parse(t, "state:discarded"), id, order, 3,
			); listed || err != nil {
				t.Errorf("%d by %s is in a list of other letters: %v", i, order, err)
			}
		}
	}
}

func TestPagesThatAreRefused(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	fillVaried(t, s, c, 20)
	ctx := context.Background()
	_, _, older, err := s.Letters(ctx, query.Query{}, deadletter.Page{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []deadletter.Page{
		{},
		{Limit: -1},
		{Limit: 501},
		{Limit: 1, After: "x"},
		{Limit: 1, After: "%%%"},
		{Limit: 1, After: older, Before: older},
		{Limit: 1, After: older, Order: deadletter.OrderDue},
		{Limit: 1, After: older, Order: deadletter.OrderOldest},
		{Limit: 1, After: older, Order: deadletter.OrderSize},
		{Limit: 1, Before: older + "AA"},
		{Limit: 1, After: "' OR 1=1"},
	} {
		if rows, _, _, err := s.Letters(ctx, query.Query{}, p); !errors.Is(err, deadletter.ErrInvalid) {
			t.Errorf("%+v: %d rows, %v", p, len(rows), err)
		}
	}
	if rows, newer, older, err := s.Letters(
		ctx, parse(t, "queue:nowhere"), deadletter.Page{Limit: 5},
	); err != nil || len(rows) != 0 || newer+older != "" {
		t.Error(rows, newer, older, err)
	}
}

func TestRowsKeepTheOrderThatWasAskedFor(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	w := window(t, 1, "sms", 450)
	ids := receive(t, s, w).New
	slices.Reverse(ids)
	rows, err := s.Rows(context.Background(), append([]deadletter.ID{deadletter.NewID(1, 1)}, ids...))
	if err != nil {
		t.Fatal(err)
	}
	var got []deadletter.ID
	for _, r := range rows {
		got = append(got, r.ID)
	}
	if diff := cmp.Diff(ids, got); diff != "" {
		t.Error(diff)
	}
}

// recorder is an SQLite driver that records every query.
type recorder struct {
	driver.Driver
	mu   sync.Mutex
	seen map[string]bool
}

func (r *recorder) Open(name string) (driver.Conn, error) {
	c, err := r.Driver.Open(name)
	return &recordingConn{c, r}, err
}

type recordingConn struct {
	driver.Conn
	r *recorder
}

func (c *recordingConn) Prepare(text string) (driver.Stmt, error) {
	c.r.mu.Lock()
	c.r.seen[text] = true
	c.r.mu.Unlock()
	return c.Conn.Prepare(text)
}

// recording registers the driver once, because a driver cannot be unregistered.
var recording = sync.OnceValue(func() *recorder {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		panic(err)
	}
	defer db.Close()
	r := &recorder{Driver: db.Driver(), seen: map[string]bool{}}
	sql.Register("sqlite recorded", r)
	return r
})

// TestQuestionsUseAnIndex checks that no query on letters reads the whole table. If no other index
// is suitable, the query must read the index by state.
func TestQuestionsUseAnIndex(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	fillVaried(t, s, c, 200)
	r := recording()
	if err := s.ReadThrough("sqlite recorded"); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	for _, text := range slices.Concat(queries, terms) {
		for _, text := range []string{text, "-" + text, "state:dead " + text} {
			if strings.HasPrefix(text, "-") && strings.Contains(text, " ") || text == "-" {
				continue // a minus can negate only one term
			}
			q := parse(t, text)
			// in every other order, a list sorts its letters in memory
			for _, order := range []deadletter.Order{
				deadletter.OrderReceived, deadletter.OrderOldest, deadletter.OrderDue,
			} {
				_, _, older, err := s.Letters(ctx, q, deadletter.Page{Limit: 10, Order: order})
				if err == nil && older != "" {
					_, _, _, err = s.Letters(ctx, q, deadletter.Page{Limit: 10, Order: order, After: older})
				}
				if err == nil && older != "" {
					_, _, _, err = s.Letters(ctx, q, deadletter.Page{Limit: 10, Order: order, Before: older})
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if _, _, err := s.Count(ctx, q, 10); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Facets(ctx, q); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Histogram(ctx, q, time.Time{}, time.Time{}, 10); err != nil {
				t.Fatal(err)
			}
			if _, _, err := s.Survey(ctx, query.Selection{Query: &q, Until: c.now()}, 1000); err != nil {
				t.Fatal(err)
			}
		}
	}
	ids := everyID(t, s)
	rows, err := s.Rows(ctx, ids[:3])
	if err != nil || len(rows) != 3 {
		t.Fatal(rows, err)
	}
	c.at = c.at.Add(time.Hour)
	op, due := requeue(t, s, c, ids[0], ids[1], ids[2])
	mark(t, s, c, deadletter.OutcomeConfirmed, due...)
	c.at = c.at.Add(time.Hour)
	for _, ask := range []func() error{
		func() error { _, err := s.Watched(ctx, "main", c.now()); return err },
		func() error { _, err := s.ClaimDoubtful(ctx, "main", c.now(), 10); return err },
		func() error { _, err := s.NextReceived(ctx, 10); return err },
		func() error { _, err := s.Letter(ctx, ids[0]); return err },
		func() error { _, err := s.History(ctx, ids[0]); return err },
		func() error { _, err := s.Attempts(ctx, ids[0]); return err },
		func() error {
			_, _, err := s.Neighbours(ctx, parse(t, "state:dead"), ids[0], deadletter.OrderOldest)
			return err
		},
		func() error { _, err := s.ActiveOperations(ctx); return err },
		func() error {
			_, _, err := s.OperationLetters(ctx, op, []deadletter.Result{deadletter.ResultConfirmed}, "", 10)
			return err
		},
	} {
		if err := ask(); err != nil {
			t.Fatal(err)
		}
	}
	db := rawDB(t, s.Path())
	explained := 0
	for text := range r.seen {
		if !strings.Contains(text, "letters") || text == `SELECT id, random FROM letters` {
			continue
		}
		explained++
		for _, step := range explain(t, db, text) {
			if step == "SCAN l" || step == "SCAN letters" || step == "SCAN operation_letters" || step == "SCAN ol" {
				t.Errorf("%s\n\t%s", step, text)
			}
			if strings.Contains(step, "TEMP B-TREE FOR ORDER BY") && strings.Contains(text, "INDEXED BY") {
				t.Errorf("%s: sorts what its index has in order\n\t%s", step, text)
			}
		}
	}
	if explained < 20 {
		t.Errorf("only %d statements were seen", explained)
	}
}

// explain returns the query plan of a statement.
func explain(t testing.TB, db *sql.DB, text string) []string {
	t.Helper()
	rows, err := db.Query(`EXPLAIN QUERY PLAN `+text, make([]any, strings.Count(text, "$"))...)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	defer rows.Close()
	var steps []string
	for rows.Next() {
		var id, parent, unused int
		var step string
		if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
			t.Fatal(err)
		}
		steps = append(steps, step)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if len(steps) == 0 {
		t.Fatalf("no plan for %s", text)
	}
	return steps
}
