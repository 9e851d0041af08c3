package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/google/go-cmp/cmp"
)

// withGrants returns a context whose scope consists of the places in the given grants.
func withGrants(t *testing.T, grants ...deadletter.Grant) context.Context {
	t.Helper()
	for i := range grants {
		grants[i].Role = deadletter.RoleReader
	}
	return deadletter.Within(t.Context(), deadletter.Principal{Name: "ana", Grants: grants}.Sees())
}

func queues(globs ...string) deadletter.Grant { return places(deadletter.Places{Queues: globs}) }

func places(p deadletter.Places) deadletter.Grant { return deadletter.Grant{Places: p} }

// TestEachTableHasAScope checks that the store has a rule for each table, which applies to requests
// with a scope. Such a request reads only a part of the table, reads it as an empty table, or, in a
// few justified cases, reads all of it.
func TestEachTableHasAScope(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	rows, err := s.Reader().Query(`SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'
		AND name NOT LIKE 'goose_%' AND name NOT LIKE 'words_%' ORDER BY name`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	ctx := withGrants(t, queues("sms"))
	n := 0
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		n++
		if !store.HasScope(name) {
			t.Errorf("the table %s is in no list of scope.go", name)
		}
		if _, err := s.Reader().ExecContext(ctx, `SELECT 1`); err != nil {
			t.Fatal(err)
		}
		var count int
		if err := s.Reader().QueryRowContext(ctx, `SELECT count(*) FROM `+name).Scan(&count); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n < 40 {
		t.Errorf("there are %d tables, which cannot be all", n)
	}
}

// TestARollbackWidensNoScope adds a queue in a transaction. During the transaction, it reads the
// letters of a scope that includes this queue. Then the transaction is rolled back, and a queue
// outside the scope gets the same id. The scope must not include this second queue.
func TestARollbackWidensNoScope(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	ctx := withGrants(t, queues("a.*"))
	count := func() int {
		n, _, err := s.Count(ctx, query.Query{}, 0)
		if err != nil {
			t.Error(err)
		}
		return n
	}
	new := receive(t, s, window(t, 1, "b.one", 1)).New
	if err := s.RollBack(t.Context(), deadletter.Origin{
		Broker: "main", VHost: "/", Queue: "a.one",
	}, func() { count() }); err != nil {
		t.Fatal(err)
	}
	if err := s.Classify(t.Context(), []deadletter.Classified{
		{
			Letter:   new[0],
			To:       deadletter.ClassifiedDead,
			Origin:   deadletter.Origin{Broker: "main", VHost: "/", Queue: "b.one"},
			GroupKey: [32]byte{1},
			Severity: deadletter.SeverityNotify,
		},
	}); err != nil {
		t.Fatal(err)
	}
	if n := count(); n != 0 {
		t.Errorf("the scope a.* includes %d letters of the queue b.one", n)
	}
}

// TestAWriteBeforeAQueryRunsWidensNoScope compiles a query for a scope. Before the query runs, a
// write changes the names of queues or inboxes, so that all letters are outside the scope. The
// query must then find no letters.
func TestAWriteBeforeAQueryRunsWidensNoScope(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(s *store.Store, compile func()) error{
		"a rollback gives the id of a queue to another queue": func(s *store.Store, compile func()) error {
			new := receive(t, s, window(t, 1, "b.one", 1)).New
			a, b := deadletter.Origin{
				Broker: "main", VHost: "/", Queue: "a.one",
			}, deadletter.Origin{Broker: "main", VHost: "/", Queue: "b.one"}
			return errors.Join(s.RollBack(t.Context(), a, compile),
				s.Classify(t.Context(), []deadletter.Classified{
					{
						Letter:   new[0],
						To:       deadletter.ClassifiedDead,
						Origin:   b,
						GroupKey: [32]byte{1},
						Severity: deadletter.SeverityNotify,
					},
				}))
		},
		"a letter arrives in a new inbox": func(s *store.Store, compile func()) error {
			w := window(t, 1, "b.one", 1)
			w.Inbox = "a.inbox"
			receive(t, s, w)
			compile()
			w.Inbox = "b.inbox"
			receive(t, s, w)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := open(t)
			ctx := withGrants(t, queues("a.*"))
			conn, err := s.Reader().Conn(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			var query *sql.Stmt
			if err := write(
				s, func() { query, err = conn.PrepareContext(ctx, `SELECT count(*) FROM letters`) },
			); err != nil {
				t.Fatal(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer query.Close()
			var n int
			if err := query.QueryRowContext(ctx).Scan(&n); err != nil || n != 0 {
				t.Errorf("the scope a.* includes %d letters (%v)", n, err)
			}
		})
	}
}

// TestOnlyTheScopeReadsWholeTables checks that only scope.go names tables with the schema main. It
// also checks that queries name tables in lower case, as scope.go expects. A query that breaks one
// of these rules would read all rows of a table, even the rows outside the scope.
func TestOnlyTheScopeReadsWholeTables(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 50 {
		t.Fatal(len(files), err)
	}
	schema := regexp.MustCompile(`(?i:\bmain"?\.[a-z_"]+)|\b(FROM|JOIN) +[a-z_]*[A-Z]`)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || file == "scope.go" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if found := schema.Find(text); found != nil {
			t.Errorf("%s names %s", file, found)
		}
	}
}

// TestQueriesKeepToTheScope runs queries with and without a scope. With the scope, each query must
// find the same letters as without it, except for the letters outside the scope.
func TestQueriesKeepToTheScope(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	all := fillLibrary(t, s, c, 11)
	texts := append([]string{""}, terms...)
	for i, term := range terms {
		texts = append(texts, []string{"-" + term, term + " " + terms[(i*7+3)%len(terms)]}[i%2])
	}
	for i, grants := range [][]deadletter.Grant{
		{queues("sms")},
		{queues("email*"), places(deadletter.Places{VHosts: []string{"blue"}, Queues: []string{"sms"}})},
		{queues("nothing")},
		{places(deadletter.Places{Brokers: []string{"main"}})},
		{places(deadletter.Places{Brokers: []string{"other"}})},
	} {
		if testing.Short() && i > 1 {
			break
		}
		ctx := withGrants(t, grants...)
		scope := deadletter.ScopeOf(ctx)
		sees := func(l deadletter.Letter) bool {
			o := l.Origin()
			if o.Queue == "" {
				o = deadletter.Origin{Broker: "main", VHost: "/", Queue: "dlo.letters"}
			}
			return scope.Includes(o)
		}
		seen := 0
		for _, text := range texts {
			q, err := query.Parse(text, query.Options{
				Now: c.now(), Body: func(path string) bool { return path == "tier" },
			})
			if err != nil {
				t.Fatal(err)
			}
			visible := slices.DeleteFunc(slices.Clone(all), func(f found) bool { return !sees(f.letter) })
			var want []deadletter.ID
			for id := range oracle(visible, q) {
				want = append(want, id)
			}
			seen += len(want)
			n, exact, err := s.Count(ctx, q, 0)
			if err != nil || !exact || n != len(want) {
				t.Errorf("%s: %q counts %d, want %d (%v)", scope.Key(), text, n, len(want), err)
			}
			rows, _, older, err := s.Letters(ctx, q, deadletter.Page{Limit: 500})
			if err != nil || older != "" {
				t.Fatal(err)
			}
			var got []deadletter.ID
			for _, r := range rows {
				got = append(got, r.ID)
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("%s: %q lists %d letters, want %d", scope.Key(), text, len(got), len(want))
			}
			shares, _, err := s.Survey(ctx, query.Selection{Query: &q}, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			n = 0
			for _, share := range shares {
				n += share.Letters
			}
			if n != len(want) {
				t.Errorf("%s: a plan for %q has %d letters, want %d", scope.Key(), text, n, len(want))
			}
			facets, err := s.Facets(ctx, q)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range facets.Fields {
				for _, v := range f.Values {
					if f.Field == "queue" &&
						!slices.ContainsFunc(visible, func(x found) bool { return x.letter.Queue == v.Value }) {
						t.Errorf("%s: %q has a facet for queue %s", scope.Key(), text, v.Value)
					}
				}
			}
			if h, err := s.Histogram(ctx, q, c.now().Add(-24*60*60*1e9), c.now(), 48); err != nil {
				t.Fatal(err)
			} else if bars := total(h); bars > len(want) && !strings.Contains(text, "age:") {
				// a bar covers a whole quarter of an hour
				t.Errorf("%s: the histogram of %q has %d letters, want at most %d", scope.Key(), text, bars, len(want))
			}
		}
		t.Logf("%s: %d letters found", scope.Key(), seen)
		for _, f := range all {
			if sees(f.letter) {
				continue
			}
			if _, err := s.Letter(ctx, f.letter.ID); !errors.Is(err, deadletter.ErrNotFound) {
				t.Errorf("%s: letter %s of %s can be read: %v", scope.Key(), f.letter.ID, f.letter.Queue, err)
			}
			if _, _, err := s.Survey(ctx, query.Selection{
				IDs: []deadletter.ID{f.letter.ID},
			}, 1<<20); !errors.Is(err, deadletter.ErrNotFound) {
				t.Errorf("%s: letter %s of %s can be planned: %v", scope.Key(), f.letter.ID, f.letter.Queue, err)
			}
			for what, read := range map[string]func() (int, error){
				"history":   func() (int, error) { list, err := s.History(ctx, f.letter.ID); return len(list), err },
				"attempts":  func() (int, error) { list, err := s.Attempts(ctx, f.letter.ID); return len(list), err },
				"revisions": func() (int, error) { list, err := s.Revisions(ctx, f.letter.ID); return len(list), err },
				"rows": func() (int, error) {
					list, err := s.Rows(
						ctx, []deadletter.ID{f.letter.ID},
					)
					return len(list), err
				},
				"whole": func() (int, error) {
					list, err := s.Whole(
						ctx, []deadletter.ID{f.letter.ID},
					)
					return len(list), err
				},
				"siblings": func() (int, error) { list, err := s.Siblings(ctx, &f.letter); return len(list), err },
			} {
				if n, err := read(); n > 0 || err != nil && !errors.Is(err, deadletter.ErrNotFound) {
					t.Fatalf("%s: %s of a letter of %s: %d, %v", scope.Key(), what, f.letter.Queue, n, err)
				}
			}
			break
		}
	}
}

func total(h deadletter.Histogram) (n int) {
	for _, b := range h.Bars {
		n += b.Waiting + b.Recovered + b.Dead + b.Discarded
	}
	return n
}

// TestGroupsKeepToTheScope checks merged groups that are only partly in the scope of a request. The
// merged group must show and count only the groups in the scope. If its head is outside the scope,
// the oldest group in the scope must take the place of the head, with the title of that oldest
// group.
func TestGroupsKeepToTheScope(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.die("b.one", 1, 3)
	g.die("a.one", 2, 4)
	g.die("a.two", 3, 5)
	g.die("b.two", 4, 6)
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{2, 3, 4}, Into: 1, By: "admin"})
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{1}, Note: "only for b", By: "admin"})
	g.die("b.three", 5, 7)
	ctx := withGrants(t, queues("a.*"))

	list, next, err := g.Groups(ctx, query.Query{}, deadletter.GroupPage{Limit: 10})
	if err != nil || next != "" || len(list) != 1 {
		t.Fatalf("%d groups, %q, %v", len(list), next, err)
	}
	row := list[0]
	if row.ID != 2 || row.Title != "title of a.one" || row.Queue != "a.one" || row.Count != 9 || row.Note != "" {
		t.Errorf("the group is %+v", row)
	}
	spark := 0
	for _, n := range row.Spark {
		spark += n
	}
	if spark != 9 {
		t.Errorf("the spark has %d letters, want 9", spark)
	}
	one, err := g.Group(ctx, 2)
	if err != nil || one.Count != 9 || len(one.Merged) != 1 || one.Head != 0 || one.Merged[0].ID != 3 {
		t.Errorf("the group alone is %+v, %v", one, err)
	}
	for _, id := range []deadletter.GroupID{1, 4, 5, 99} {
		if _, err := g.Group(ctx, id); !errors.Is(err, deadletter.ErrNotFound) ||
			err.Error() != fmt.Sprintf("group %s: not found: there is no group %s", id, id) {
			t.Errorf("%s: %v", id, err)
		}
		if _, err := g.GroupTitle(ctx, id); !errors.Is(err, deadletter.ErrNotFound) {
			t.Errorf("the title of %s: %v", id, err)
		}
	}
	counts, err := g.GroupCounts(ctx, "")
	if err != nil || counts.Inbox != 1 || counts.Letters != 9 {
		t.Errorf("%+v, %v", counts, err)
	}
	q, err := query.Parse("group:G-2", query.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if n, _, err := g.Count(ctx, q, 0); err != nil || n != 9 {
		t.Errorf("group:G-2 finds %d letters, %v", n, err)
	}
	if list, err := g.Decisions(ctx, g.clock.now().Add(-1e12), 10); err != nil || len(list) != 0 {
		t.Errorf("decisions of others: %+v, %v", list, err)
	}
	digest, err := g.Digest(ctx, g.clock.now().Add(-24*60*60*1e9), g.clock.now().Add(60*1e9), 10)
	if err != nil {
		t.Fatal(err)
	}
	if len(digest.Lines) != 1 || digest.Letters != 9 {
		t.Errorf("the digest is %+v", digest)
	}
	for _, line := range digest.Lines {
		if line.Group.Queue != "a.one" {
			t.Errorf("the digest names %s", line.Group.Queue)
		}
	}
	whole, _, err := g.Groups(t.Context(), query.Query{}, deadletter.GroupPage{Limit: 10})
	if err != nil || len(whole) != 2 || whole[0].Count+whole[1].Count != 25 {
		t.Errorf("without a scope: %+v, %v", whole, err)
	}
}

// TestOperationsKeepToTheScope checks an operation on letters of several owners. Each owner must
// see only the part of the operation on his or her own letters. The query, the target and the
// reason for a stop must be shown only to people who see the whole operation.
func TestOperationsKeepToTheScope(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	b, a := g.die("b.one", 1, 3), g.die("a.one", 2, 4)
	operate := func(ids ...deadletter.ID) deadletter.OperationID {
		op := deadletter.Operation{
			Action: deadletter.VerbDiscard, By: "admin", Through: deadletter.WayAPI, Reason: "why",
		}
		if err := g.Freeze(t.Context(), &op, query.Selection{IDs: ids}, 0, anyPlace); err != nil {
			t.Fatal(err)
		}
		if _, err := g.Advance(t.Context(), op.ID, len(ids), nil); err != nil {
			t.Fatal(err)
		}
		return op.ID
	}
	both := operate(append(slices.Clone(b[:2]), a[:3]...)...)
	others := operate(b[2])
	own := operate(a[3])
	ctx := withGrants(t, queues("a.*"))
	list, err := g.Operations(ctx, 0, 10)
	if err != nil || len(list) != 2 || list[0].ID != own || list[1].ID != both {
		t.Fatalf("%+v, %v", list, err)
	}
	if op := list[1]; op.Total != 3 || op.Reason != "why" || len(op.Queues) != 1 || op.Queues[0].Queue != "a.one" ||
		op.Counts[deadletter.ResultChanged] != 3 {
		t.Errorf("the operation on both is %+v", op)
	}
	if list[0].Reason == "" {
		t.Errorf("one's own operation has no reason: %+v", list[0])
	}
	if _, err := g.Operation(ctx, others); !errors.Is(err, deadletter.ErrNotFound) {
		t.Errorf("the operation of others: %v", err)
	}
	letters, _, err := g.OperationLetters(ctx, both, deadletter.Results, "", 10)
	if err != nil || len(letters) != 3 {
		t.Errorf("%d letters, %v", len(letters), err)
	}
	acts, _, err := g.Audit(ctx, query.Query{}, "", 100)
	if err != nil {
		t.Fatal(err)
	}
	var shown []deadletter.OperationID
	for _, act := range acts {
		if act.Operation != 0 && !slices.Contains(shown, act.Operation) {
			shown = append(shown, act.Operation)
		}
	}
	if diff := cmp.Diff([]deadletter.OperationID{own}, shown); diff != "" {
		t.Errorf("the audit shows operations: %s", diff)
	}
}

// TestChannelsKeepToTheScope checks channels with a scope. Such a channel must get only notices
// about groups and operations in its queues, and its digest must cover only these queues. Other
// channels must get all notices.
func TestChannelsKeepToTheScope(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	both := func(c *deadletter.Classified) { c.Channels = []string{"team", "all"} }
	g.die("a.one", 1, 4, both)
	g.advance(time.Hour)
	g.die("b.one", 2, 3, both)
	from, to := g.clock.now().Add(-24*time.Hour), g.clock.now().Add(time.Minute)
	digest, err := g.Digest(t.Context(), from, to, 10)
	if err != nil || digest.Letters != 7 {
		t.Fatal(digest, err)
	}
	if sent, err := g.SendDigest(
		t.Context(), "2026-11-20", "dlo", digest, []string{"team", "all"},
	); err != nil || !sent {
		t.Fatal(sent, err)
	}
	if err := g.Tell(t.Context(), deadletter.Notice{
		Kind:     deadletter.NoticeProblem,
		Key:      "disk",
		Severity: deadletter.SeverityPage,
		Text:     "the disk is full",
		Channels: []string{"team", "all"},
	}); err != nil {
		t.Fatal(err)
	}
	g.advance(time.Hour)
	told := func(ctx context.Context, channel string) (groups, letters int, others []deadletter.NoticeKind) {
		t.Helper()
		list, err := g.Due(ctx, channel, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range list {
			switch {
			case d.Group != nil:
				if groups++; d.Group.Queue == "b.one" && channel == "team" {
					t.Errorf("the team is told of %+v", d.Group)
				}
			case d.Digest != nil:
				letters += d.Digest.Letters
			default:
				others = append(others, d.Notice.Kind)
			}
		}
		return groups, letters, others
	}
	scope := deadletter.Within(t.Context(), deadletter.ScopeFor(deadletter.Places{Queues: []string{"a.*"}}))
	if groups, letters, others := told(scope, "team"); groups != 1 || letters != 4 || len(others) != 0 {
		t.Errorf("the team is told of %d groups, %d letters in the digest, and %v", groups, letters, others)
	}
	if groups, letters, others := told(t.Context(), "all"); groups != 2 || letters != 7 || len(others) != 1 {
		t.Errorf("all are told of %d groups, %d letters in the digest, and %v", groups, letters, others)
	}
	if groups, _, _ := told(t.Context(), "team"); groups != 1 {
		t.Errorf("what is outside of the scope of the team is still due: %d groups", groups)
	}
}
