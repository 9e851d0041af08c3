package store_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/store"
	"pgregory.net/rapid"
)

// invariants are queries that return a row for each breach; every number that the store keeps is counted anew.
var invariants = map[string]string{
	"counters are a recount of the letters": `
		WITH kept AS (SELECT state, origin, type, reason, grp, severity, n FROM counters WHERE n <> 0),
			truth AS (SELECT state, origin, type, reason, grp, severity, count(*) AS n FROM letters GROUP BY 1, 2, 3, 4, 5, 6)
		SELECT 'kept', * FROM (SELECT * FROM kept EXCEPT SELECT * FROM truth) UNION ALL SELECT 'truth', * FROM (SELECT * FROM truth EXCEPT SELECT * FROM kept)`,
	"rollups are a recount of the letters": `
		WITH kept AS (SELECT bucket, grp, outcome, n FROM rollups WHERE n <> 0),
			truth AS (SELECT received_at / 900000 AS bucket, grp, CASE state WHEN 'settled' THEN 'recovered' WHEN 'dead' THEN 'dead' WHEN 'held' THEN 'dead' WHEN 'discarded' THEN 'discarded'
				WHEN 'purged' THEN 'discarded' ELSE 'waiting' END AS outcome, count(*) AS n FROM letters GROUP BY 1, 2, 3)
		SELECT 'kept', * FROM (SELECT * FROM kept EXCEPT SELECT * FROM truth) UNION ALL SELECT 'truth', * FROM (SELECT * FROM truth EXCEPT SELECT * FROM kept)`,
	"operation counts are a recount of their letters": `
		WITH kept AS (SELECT operation, origin, result, n FROM operation_counts WHERE n <> 0),
			truth AS (SELECT operation, origin, result, count(*) AS n FROM operation_letters GROUP BY 1, 2, 3)
		SELECT 'kept', * FROM (SELECT * FROM kept EXCEPT SELECT * FROM truth) UNION ALL SELECT 'truth', * FROM (SELECT * FROM truth EXCEPT SELECT * FROM kept)`,
	"the total of an operation is its letters": `
		SELECT id, total FROM operations o WHERE total <> (SELECT count(*) FROM operation_letters WHERE operation = o.id)`,
	"an operation that is done has nothing open": `
		SELECT o.id, ol.letter, ol.result FROM operations o JOIN operation_letters ol ON ol.operation = o.id WHERE o.state = 'done' AND ol.result IN ('pending', 'released')`,
	"of a cancelled operation only what is on its way is open": `
		SELECT o.id, ol.letter, ol.result, l.state FROM operations o JOIN operation_letters ol ON ol.operation = o.id JOIN letters l ON l.id = ol.letter
		WHERE o.state = 'cancelled' AND ol.result IN ('pending', 'released') AND l.state <> 'publishing'`,
	"a letter belongs to an operation while that has released it": `
		SELECT l.id, l.state, l.operation, ol.result, o.state FROM letters l LEFT JOIN operations o ON o.id = l.operation LEFT JOIN operation_letters ol ON ol.operation = l.operation AND ol.letter = l.id
		WHERE l.operation IS NOT NULL AND (ol.result IS NOT 'released' OR l.state NOT IN ('scheduled', 'publishing') OR o.state <> 'running' AND l.state <> 'publishing')`,
	"what an operation has released belongs to it": `
		SELECT ol.operation, l.id, l.state, l.operation FROM operation_letters ol JOIN letters l ON l.id = ol.letter WHERE ol.result = 'released' AND l.operation IS NOT ol.operation`,
	"every letter is in one state": `
		SELECT id, state FROM letters WHERE state NOT IN ('received', 'scheduled', 'dead', 'held', 'publishing', 'requeued', 'settled', 'discarded', 'purged')`,
	"due are the scheduled and the watched, and no others": `
		SELECT id, state, due_at FROM letters WHERE (due_at IS NOT NULL) <> (state IN ('scheduled', 'requeued'))`,
	"what is on its way has an open attempt, a lease and a process": `
		SELECT l.id, a.outcome, l.epoch, l.lease_until FROM letters l LEFT JOIN attempts a ON a.letter = l.id AND a.n = l.tries
		WHERE l.state = 'publishing' AND (a.outcome IS NULL OR a.outcome NOT IN ('open', 'in doubt', 'unsent') OR l.epoch IS NULL OR l.lease_until IS NULL)`,
	"nothing else has a lease": `
		SELECT id, state FROM letters WHERE state <> 'publishing' AND (epoch IS NOT NULL OR lease_until IS NOT NULL)`,
	"an attempt that is open is of a letter on its way": `
		SELECT a.letter, a.n, l.state FROM attempts a JOIN letters l ON l.id = a.letter WHERE a.outcome = 'open' AND (l.state <> 'publishing' OR a.n <> l.tries)`,
	"the newest attempt of a watched letter is confirmed": `
		SELECT l.id, l.state, a.outcome FROM letters l LEFT JOIN attempts a ON a.letter = l.id AND a.n = l.tries WHERE l.state IN ('requeued', 'settled') AND a.outcome IS NOT 'confirmed'`,
	"attempts used are those that reached a queue": `
		SELECT l.id, l.attempts FROM letters l WHERE l.attempts <> (SELECT count(*) FROM attempts a WHERE a.letter = l.id AND a.outcome IN ('confirmed', 'came back'))`,
	"tokens are used once": `
		SELECT token FROM attempts GROUP BY token HAVING count(*) > 1`,
	"every letter has its body": `
		SELECT l.id FROM letters l LEFT JOIN bodies b ON b.letter = l.id WHERE b.letter IS NULL OR length(b.body) <> l.size`,
	"an inbox has one open window at most": `
		SELECT inbox FROM windows WHERE settled_at IS NULL GROUP BY inbox HAVING count(*) > 1`,
	"a letter that left received has a history": `
		SELECT l.id, l.state FROM letters l WHERE l.state <> 'received' AND NOT EXISTS (SELECT 1 FROM events e WHERE e.letter = l.id)`,
}

// breaches checks the invariants of a store, and says what breaks them.
func breaches(t interface{ Fatal(args ...any) }, db *sql.DB) []string {
	var list []string
	for name, text := range invariants {
		rows, err := db.Query(text)
		if err != nil {
			t.Fatal(name, err)
		}
		columns, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			values := make([]any, len(columns))
			for i := range values {
				values[i] = new(any)
			}
			if err := rows.Scan(values...); err != nil {
				t.Fatal(err)
			}
			line := name + ":"
			for i, v := range values {
				line += fmt.Sprintf(" %s=%v", columns[i], *v.(*any))
			}
			list = append(list, line)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(name, err)
		}
		rows.Close()
	}
	return list
}

// machine is a store under a random sequence of what the rooms do with it.
type machine struct {
	path   string
	c      *clock
	s      *store.Store
	db     *sql.DB
	w      deadletter.Window   // the last one
	open   bool                // it is not settled
	sent   []deadletter.Due    // everything that was ever claimed
	flying []deadletter.Due    // claims of this process without an outcome
	old    []deadletter.Window // everything that was ever received
	ids    []deadletter.ID
	ops    []deadletter.OperationID
	next   int
}

func (m *machine) start(t *rapid.T) {
	m.c.at = m.c.at.Add(time.Second)
	s, err := store.Open(context.Background(), m.path, store.Options{Now: m.c.now})
	if err != nil {
		t.Fatal(err)
	}
	m.s, m.flying = s, nil
}

func fail(t *rapid.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// window draws a window: fresh letters, some of them twins of others, copies of attempts, and after a restart letters of before.
func (m *machine) window(t *rapid.T) deadletter.Window {
	w := deadletter.Window{
		Session: m.w.Session, Number: m.w.Number + 1, Broker: "main", VHost: "/", Inbox: "dlo.letters", Horizon: 10 * time.Minute, HorizonRows: 1000,
		Uncertain: rapid.SampledFrom([]deadletter.Uncertain{deadletter.UncertainHold, deadletter.UncertainKeep, deadletter.UncertainMerge}).Draw(t, "uncertain"),
		Restarted: m.w.Restarted, RedeliveredLeaks: rapid.Bool().Draw(t, "leaks"), DeliveryCountTells: rapid.Bool().Draw(t, "tells"),
	}
	for range rapid.IntRange(1, 4).Draw(t, "letters") {
		m.next++
		queue := rapid.SampledFrom([]string{"sms", "email", ""}).Draw(t, "queue")
		a := deadletter.Arrival{RoutingKey: queue, Tag: uint64(m.next), Body: []byte(fmt.Sprint("body ", m.next)), Properties: deadletter.Properties{Headers: deadletter.Table{}}}
		if queue != "" {
			a.Properties.Headers["x-death"] = []any{deadletter.Table{"queue": queue, "reason": rapid.SampledFrom([]string{"rejected", "expired"}).Draw(t, "reason")}}
		}
		switch kind := rapid.IntRange(0, 9).Draw(t, "kind"); {
		case kind < 3:
			a.Body = []byte("twin")
			a.Properties.MessageID = rapid.SampledFrom([]string{"", "m"}).Draw(t, "message id")
		case kind < 7 && len(m.sent) > 0:
			d := rapid.SampledFrom(m.sent).Draw(t, "attempt")
			if a.Body = d.Letter.Body; rapid.IntRange(0, 4).Draw(t, "edited") == 0 {
				a.Body = []byte("edited")
			}
			a.Properties.Headers[deadletter.HeaderID], a.Properties.Headers[deadletter.HeaderToken] = string(d.Letter.ID), string(d.Attempt.Token)
		case kind < 9 && len(m.old) > 0:
			a = rapid.SampledFrom(rapid.SampledFrom(m.old).Draw(t, "window").Arrivals).Draw(t, "delivery")
			a.Redelivered = rapid.Bool().Draw(t, "redelivered")
		}
		f, err := a.Print()
		fail(t, err)
		a.Fingerprint = f
		w.Arrivals = append(w.Arrivals, a)
	}
	return w
}

func (m *machine) settle(t *rapid.T) {
	open, err := m.s.OpenWindow(context.Background(), "main", "/", "dlo.letters")
	fail(t, err)
	if (open != nil) != m.open {
		t.Fatalf("open window %+v, want one: %v", open, m.open)
	}
	if open != nil {
		fail(t, m.s.Settle(context.Background(), open.ID))
	}
	m.open = false
}

func (m *machine) took(t *rapid.T, w deadletter.Window, r deadletter.Receipt) {
	if got := len(r.New) + r.CameBack + r.Copies + r.Merged; got != len(w.Arrivals) {
		t.Fatalf("%d deliveries became %+v", len(w.Arrivals), r)
	}
	m.ids = append(m.ids, r.New...)
	m.w, m.open = w, true
	m.old = append(m.old, w)
	if rapid.Bool().Draw(t, "settle") {
		m.settle(t)
	}
}

func (m *machine) actions() map[string]func(*rapid.T) {
	ctx := context.Background()
	allow := func(deadletter.Origin) int { return 2 }
	pick := func(t *rapid.T) []deadletter.ID {
		if len(m.ids) == 0 {
			return nil
		}
		return rapid.SliceOfN(rapid.SampledFrom(m.ids), 0, 5).Draw(t, "ids")
	}
	return map[string]func(*rapid.T){
		"receive": func(t *rapid.T) {
			m.settle(t)
			w := m.window(t)
			r, err := m.s.Receive(ctx, w)
			fail(t, err)
			m.took(t, w, r)
		},
		"session": func(t *rapid.T) {
			session, err := m.s.BeginSession(ctx, "main", "/", "dlo.letters")
			fail(t, err)
			came := m.open && rapid.Bool().Draw(t, "came back whole")
			again := m.w
			again.Session, again.Number = session.Number, 1
			switch rapid.IntRange(0, 3).Draw(t, "broker") {
			case 0:
				fail(t, m.s.Restarted(ctx, "main", "/", "dlo.letters", "dlo.epoch.test"))
				again.Restarted = true
			case 1:
				fail(t, m.s.Calm(ctx, "main", "/", "dlo.letters", "marker"))
				again.Restarted = false
			}
			if !came {
				m.settle(t)
				m.w.Session, m.w.Number, m.w.Restarted = again.Session, 0, again.Restarted
				return
			}
			again.Arrivals = slices.Clone(again.Arrivals)
			again.RedeliveredLeaks, again.DeliveryCountTells = rapid.Bool().Draw(t, "leaks"), rapid.Bool().Draw(t, "tells")
			for i := range again.Arrivals {
				again.Arrivals[i].Redelivered = true
			}
			open, err := m.s.OpenWindow(ctx, "main", "/", "dlo.letters")
			fail(t, err)
			r, err := m.s.Claim(ctx, *open, again)
			fail(t, err)
			m.took(t, again, r)
		},
		"classify": func(t *rapid.T) {
			letters, err := m.s.ClaimReceived(ctx, rapid.IntRange(1, 5).Draw(t, "n"))
			fail(t, err)
			switch rapid.IntRange(0, 9).Draw(t, "end") {
			case 0:
				return // the process dies, if it is opened again before the next batch
			case 1:
				fail(t, m.s.Unclaim(ctx))
				return
			}
			var verdicts []deadletter.Classified
			for _, l := range letters {
				deaths, origin := deadletter.ReadDeaths(l.Arrived.Headers, deadletter.OwnQueue)
				origin.Broker, origin.VHost = l.Origin.Broker, l.Origin.VHost
				v := deadletter.Classified{
					Letter: l.ID, Origin: origin, Type: rapid.SampledFrom([]string{"", "acme.A"}).Draw(t, "type"), GroupKey: [32]byte{byte(rapid.IntRange(0, 3).Draw(t, "group"))}, GroupTitle: "g", GroupVersion: 1,
					Severity: deadletter.SeverityDigest, To: rapid.SampledFrom([]deadletter.Trigger{
						deadletter.ClassifiedRetry, deadletter.ClassifiedRetry, deadletter.ClassifiedDead, deadletter.ClassifiedHold, deadletter.ClassifiedDiscard,
					}).Draw(t, "verdict"),
				}
				v.Reason, _ = deadletter.LastDeath(l.Arrived.Headers, deaths, origin.Queue)
				if origin.Queue == "" && v.To == deadletter.ClassifiedRetry {
					v.To = deadletter.ClassifiedHold
				}
				if v.To == deadletter.ClassifiedRetry {
					v.DueAt = m.c.now().Add(time.Duration(rapid.IntRange(0, 60).Draw(t, "delay")) * time.Second)
				}
				verdicts = append(verdicts, v)
			}
			fail(t, m.s.Classify(ctx, verdicts))
		},
		"freeze": func(t *rapid.T) {
			op := deadletter.Operation{Action: rapid.SampledFrom([]deadletter.Verb{deadletter.VerbRequeue, deadletter.VerbRequeue, deadletter.VerbDiscard, deadletter.VerbRestore}).Draw(t, "verb"), By: "local"}
			fail(t, m.s.Freeze(ctx, &op, query.Selection{IDs: pick(t)}))
			m.ops = append(m.ops, op.ID)
		},
		"advance": func(t *rapid.T) {
			if len(m.ops) > 0 {
				_, err := m.s.Advance(ctx, rapid.SampledFrom(m.ops).Draw(t, "operation"), rapid.IntRange(1, 3).Draw(t, "n"))
				fail(t, err)
			}
		},
		"cancel": func(t *rapid.T) {
			if len(m.ops) > 0 {
				m.s.CancelOperation(ctx, rapid.SampledFrom(m.ops).Draw(t, "operation"), "local") // a conflict where it is not running
			}
		},
		"claim": func(t *rapid.T) {
			due, err := m.s.ClaimDue(ctx, "main", m.c.now(), rapid.IntRange(1, 4).Draw(t, "n"), time.Minute, allow)
			fail(t, err)
			m.sent, m.flying = append(m.sent, due...), append(m.flying, due...)
		},
		"claim doubtful": func(t *rapid.T) {
			due, err := m.s.ClaimDoubtful(ctx, "main", m.c.now(), rapid.IntRange(1, 4).Draw(t, "n"), time.Minute)
			fail(t, err)
			for _, d := range due {
				if !slices.ContainsFunc(m.sent, func(s deadletter.Due) bool {
					return s.Attempt.Token == d.Attempt.Token && s.Letter.ID == d.Letter.ID && bytes.Equal(s.Letter.Body, d.Letter.Body)
				}) {
					t.Fatalf("an attempt out of nowhere: %+v", d)
				}
			}
			m.flying = append(m.flying, due...)
		},
		"mark": func(t *rapid.T) {
			n := rapid.IntRange(0, len(m.flying)).Draw(t, "n")
			var marks []deadletter.Mark
			for _, d := range m.flying[:n] {
				k := deadletter.Mark{Letter: d.Letter.ID, Token: d.Attempt.Token, Detail: "because", Outcome: rapid.SampledFrom([]deadletter.OutcomeKind{
					deadletter.OutcomeConfirmed, deadletter.OutcomeConfirmed, deadletter.OutcomeReturned, deadletter.OutcomeNacked, deadletter.OutcomeRefused, deadletter.OutcomeInDoubt, deadletter.OutcomeUnsent,
				}).Draw(t, "outcome")}
				k.Resend = k.Outcome == deadletter.OutcomeInDoubt && rapid.Bool().Draw(t, "resend")
				if k.Outcome == deadletter.OutcomeConfirmed || k.Outcome == deadletter.OutcomeNacked {
					k.DueAt = m.c.now().Add(time.Duration(rapid.IntRange(0, 60).Draw(t, "due")) * time.Second)
				}
				marks = append(marks, k)
			}
			fail(t, m.s.Mark(ctx, marks))
			m.flying = m.flying[n:]
		},
		"watch": func(t *rapid.T) {
			origins, err := m.s.Watched(ctx, "main", m.c.now())
			fail(t, err)
			for _, o := range origins {
				if rapid.IntRange(0, 3).Draw(t, "go on") == 0 {
					fail(t, m.s.WatchOn(ctx, o, m.c.now(), m.c.now().Add(time.Minute)))
				}
				_, err := m.s.SettleQuiet(ctx, o, m.c.now(), 3, deadletter.UnknownQueue)
				fail(t, err)
			}
		},
		"requeue": func(t *rapid.T) { // the whole way at once, as a random walk seldom finds it
			op := deadletter.Operation{Action: deadletter.VerbRequeue, By: "local"}
			fail(t, m.s.Freeze(ctx, &op, query.Selection{IDs: pick(t)}))
			_, err := m.s.Advance(ctx, op.ID, 10)
			fail(t, err)
			due, err := m.s.ClaimDue(ctx, "main", m.c.now(), 10, time.Minute, allow)
			fail(t, err)
			m.sent, m.ops = append(m.sent, due...), append(m.ops, op.ID)
			for _, d := range due {
				fail(t, m.s.Mark(ctx, []deadletter.Mark{{Letter: d.Letter.ID, Token: d.Attempt.Token, Outcome: deadletter.OutcomeConfirmed, DueAt: m.c.now().Add(time.Second)}}))
			}
			if rapid.Bool().Draw(t, "quiet") {
				m.c.at = m.c.at.Add(time.Second)
				for _, d := range due {
					_, err := m.s.SettleQuiet(ctx, d.Letter.Origin, m.c.now(), 3, deadletter.UnknownQueue)
					fail(t, err)
				}
			}
		},
		"time passes": func(t *rapid.T) {
			m.c.at = m.c.at.Add(time.Duration(rapid.IntRange(1, 600).Draw(t, "seconds")) * time.Second)
		},
		"the process ends": func(t *rapid.T) {
			fail(t, m.s.Close())
			m.start(t)
		},
		"": m.check,
	}
}

func (m *machine) check(t *rapid.T) {
	for _, breach := range breaches(t, m.db) {
		t.Error(breach)
	}
	var n int
	fail(t, m.db.QueryRow(`SELECT count(*) FROM letters`).Scan(&n))
	if n != len(m.ids) {
		t.Errorf("%d rows, and the receipts name %d", n, len(m.ids))
	}
	text := rapid.SampledFrom(queries).Draw(t, "query")
	q, err := query.Parse(text)
	fail(t, err)
	counted, err := m.s.Count(context.Background(), q)
	fail(t, err)
	rows, _, older, err := m.s.Letters(context.Background(), q, deadletter.Page{Limit: 500})
	fail(t, err)
	if len(rows) != counted || older != "" {
		t.Errorf("%q: %d counted, %d listed", text, counted, len(rows))
	}
}

// Whatever the rooms do, in whatever order, and wherever the process ends: every number is a recount, and every letter is where its history says.
func TestTheStoreKeepsItsNumbers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	runs := 40 // of rapid's 100: SQLite is slow under the race detector
	if os.Getenv("DLO_SOAK") == "1" {
		runs = math.MaxInt
	}
	n, failed := 0, false
	rapid.Check(t, func(t *rapid.T) {
		if n++; n > runs && !failed { // a failure is shrunk by further runs
			return
		}
		defer func() { failed = failed || t.Failed() }()
		m := &machine{path: filepath.Join(dir, fmt.Sprintf("%d.db", n)), c: &clock{time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)}}
		m.w.Session = 1
		m.start(t)
		defer func() { m.s.Close() }()
		var err error
		if m.db, err = sql.Open("sqlite", "file:"+m.path+"?mode=ro&_pragma=busy_timeout(10000)"); err != nil {
			t.Fatal(err)
		}
		defer m.db.Close()
		t.Repeat(m.actions())
	})
}
