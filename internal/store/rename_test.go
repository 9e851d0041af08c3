package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/deadletteroffice/dlo/internal/storetest"
)

// renamed is a store whose brokers are renamed.
type renamed struct {
	*store.Store
	t      *testing.T
	path   string
	c      *clock
	number int64
}

func renaming(t *testing.T) *renamed {
	t.Helper()
	r := &renamed{t: t, path: storetest.File(t), c: &clock{time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)}}
	r.reopen()
	t.Cleanup(func() {
		for _, breach := range breaches(t, r.Reader()) {
			t.Error(breach)
		}
		r.Close()
	})
	return r
}

// reopen closes the store and opens it again.
func (r *renamed) reopen() {
	r.t.Helper()
	if r.Store != nil {
		if err := r.Close(); err != nil {
			r.t.Fatal(err)
		}
	}
	r.c.at = r.c.at.Add(time.Second)
	s, err := store.Open(context.Background(), r.path, store.Options{Now: r.c.now})
	if err != nil {
		r.t.Fatal(err)
	}
	r.Store = s
}

// rename renames a broker, and opens the store again.
func (r *renamed) rename(from, to string) {
	r.t.Helper()
	if err := r.RenameBroker(r.t.Context(), from, to); err != nil {
		r.t.Fatal(err)
	}
	r.reopen()
}

// take receives letters that died in a queue of a broker, and classifies them. As in the
// classifier, the key of the letters' group contains the first name that the broker had.
func (r *renamed) take(broker, queue string, n int, to deadletter.Trigger) []deadletter.ID {
	r.t.Helper()
	r.number++
	w := window(r.t, r.number, queue, n)
	w.Broker = broker
	got := receive(r.t, r.Store, w)
	letters, err := r.NextReceived(context.Background(), 500)
	if err != nil || len(letters) != n {
		r.t.Fatal(len(letters), err)
	}
	var verdicts []deadletter.Classified
	for _, l := range letters {
		verdicts = append(verdicts, r.verdict(&l, queue, to))
	}
	if err := r.Classify(context.Background(), verdicts); err != nil {
		r.t.Fatal(err)
	}
	return got.New
}

func (r *renamed) verdict(l *deadletter.Letter, queue string, to deadletter.Trigger) deadletter.Classified {
	origin := deadletter.Origin{Broker: l.Broker, VHost: "/", Queue: queue}
	v := deadletter.Classified{
		Letter: l.ID, To: to, Origin: origin, Reason: "rejected", Type: "acme.T", Summary: "s", Error: "e",
		GroupTitle: "g " + queue, GroupVersion: 2, Severity: deadletter.SeverityDigest,
		GroupKey: deadletter.Hash(r.FirstName(origin.Broker), queue),
	}
	if to == deadletter.ClassifiedRetry {
		v.DueAt = r.c.now().Add(10 * time.Second)
	}
	return v
}

// claimDue claims due letters of a broker and returns the number of claimed letters by origin.
func (r *renamed) claimDue(broker string) map[string]int {
	r.t.Helper()
	list, err := r.ClaimDue(context.Background(), broker, r.c.now().Add(time.Minute), 100, deadletter.Allowance{
		Allow: func(deadletter.Origin, string) (int, bool) { return 100, false },
	})
	if err != nil {
		r.t.Fatal(err)
	}
	n := map[string]int{}
	for _, d := range list {
		n[d.Letter.Broker+" "+d.Attempt.Queue]++
	}
	return n
}

// strays returns the numbers of unfinished letters whose broker is not configured, by broker and
// vhost. Unfinished letters wait, need people or are watched.
func (r *renamed) strays(configured ...string) map[string]string {
	r.t.Helper()
	list, err := r.Strays(context.Background(), func(broker, vhost string) bool {
		return vhost == "/" && strings.Contains(" "+strings.Join(configured, " ")+" ", " "+broker+" ")
	})
	if err != nil {
		r.t.Fatal(err)
	}
	found := map[string]string{}
	for _, s := range list {
		counts := fmt.Sprintf("%d waiting, %d needy, %d watched", s.Waiting(), s.Needy(), s.Watched())
		found[s.Broker+" "+s.VHost] = counts
	}
	return found
}

// listedCounts returns, for each queue in the list of queues, the number of its letters.
func (r *renamed) listedCounts() map[string]int {
	r.t.Helper()
	list, err := r.Queues(context.Background())
	if err != nil {
		r.t.Fatal(err)
	}
	found := map[string]int{}
	for _, q := range list {
		for _, n := range q.Counts {
			found[q.Origin.Broker+" "+q.Origin.Queue] += n
		}
	}
	return found
}

func wantSame[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// TestARenamedBrokerKeepsWhatItHas checks that a renamed broker keeps its letters, pauses,
// redirects, policies, progress mark, session and open window. The keys of its groups stay the
// same. Meanwhile dlo has connected under the new name, without taking in a letter.
func TestARenamedBrokerKeepsWhatItHas(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	r := renaming(t)
	r.take("main", "sms", 3, deadletter.ClassifiedRetry)
	ids := r.take("main", "email", 2, deadletter.ClassifiedDead)
	before, err := r.BeginSession(ctx, "main", "/", "dlo.letters")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Calm(ctx, "main", "/", "dlo.letters", "dlo.epoch.m"); err != nil {
		t.Fatal(err)
	}
	open := window(t, 9, "push", 2)
	if _, err := r.Receive(ctx, open); err != nil {
		t.Fatal(err)
	}
	at := func(broker, queue string) deadletter.Origin {
		return deadletter.Origin{Broker: broker, VHost: "/", Queue: queue}
	}
	if _, err := r.Pause(ctx, deadletter.Guard{Origin: at("main", "email"), By: "ann"}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.AddOverride(ctx, deadletter.Override{
		Broker: "main", VHost: "/", Queue: "email", To: "post", By: "ann",
	}); err != nil {
		t.Fatal(err)
	}
	if err := r.SetBreaker(ctx, deadletter.Breaker{
		Origin: at("main", "sms"), State: deadletter.GuardTripped, Since: r.c.now(),
	}, nil); err != nil {
		t.Fatal(err)
	}
	r.declarePolicy("main")
	group := letter(t, r.Store, ids[0]).Group

	// Until the broker is renamed, its letters belong to no configured broker.
	wantSame(t, "due for prod", r.claimDue("prod"), map[string]int{})
	wantSame(t, "strays", r.strays("prod"), map[string]string{"main /": "3 waiting, 2 needy, 0 watched"})
	if _, err := r.BeginSession(ctx, "prod", "/", "dlo.letters"); err != nil {
		t.Fatal(err)
	}
	err = r.Calm(ctx, "prod", "/", "dlo.letters", "dlo.epoch.p")
	if err := errors.Join(err, r.AtStake(ctx, "prod", "/", "dlo.letters", 2)); err != nil {
		t.Fatal(err)
	}
	r.noteMark("main", 3, false)
	r.noteMark("prod", 5, true)

	r.rename("main", "prod")
	wantSame(t, "strays", r.strays("prod"), map[string]string{})
	wantSame(t, "queues", r.listedCounts(), map[string]int{"prod sms": 3, "prod email": 2})
	for q, want := range map[string]int{"broker:prod": 5, "broker:pro* queue:*": 5, "broker:main": 0} {
		if n := count(t, r.Store, q+" -state:received"); n != want {
			t.Errorf("%s finds %d letters", q, n)
		}
	}
	if list, err := r.Declared(ctx); err != nil || len(list) != 1 || list[0].Broker != "prod" {
		t.Errorf("policies: %+v, %v", list, err)
	}
	if m, err := r.Remembered(ctx, "prod", "/"); err != nil || m.Marked != 5 || !m.Unproved || m.Lock != m.Store+"\nmain" {
		t.Errorf("mark: %+v, %v", m, err)
	}
	if list, _, err := r.Audit(ctx, query.Query{}, "", 1); err != nil || len(list) != 1 ||
		list[0].Kind != deadletter.ActBrokerRenamed || list[0].Detail != "broker prod has everything of broker main" {
		t.Errorf("audit: %+v, %v", list, err)
	}
	var kept []string
	for _, g := range guards(t, r.Store) {
		kept = append(kept, g.Origin.Broker+" "+g.Origin.Queue+" "+string(g.State))
	}
	wantSame(t, "guards", kept, []string{"prod sms tripped", "prod email paused"})
	if list, err := r.Breakers(ctx, "prod"); err != nil || len(list) != 1 || list[0].Origin != at("prod", "sms") {
		t.Errorf("breakers: %+v, %v", list, err)
	}
	if err := r.Resume(ctx, deadletter.Guard{Origin: at("prod", "email"), By: "ann"}); err != nil {
		t.Error(err)
	}
	if list, err := r.Overrides(ctx); err != nil || len(list) != 1 || list[0].Broker != "prod" || list[0].To != "post" {
		t.Errorf("redirects: %+v, %v", list, err)
	}
	if list, err := r.OpenInboxes(ctx); err != nil || len(list) != 1 || list[0].Broker != "prod" {
		t.Errorf("open windows: %+v, %v", list, err)
	}
	if reached, err := r.Reached(ctx); err != nil || !reached[[2]string{"prod", "/"}] {
		t.Errorf("connected once: %v, %v", reached, err)
	}
	session, err := r.BeginSession(ctx, "prod", "/", "dlo.letters")
	if err != nil || session.Number != before.Number+1 || session.Marker != "dlo.epoch.m" || session.AtStake != 2 {
		t.Errorf("session %+v after %+v, %v", session, before, err)
	}
	look, err := r.Look(ctx, "prod", "/", "dlo.letters")
	if err != nil || look == nil || len(look.Fingerprints) != 2 {
		t.Fatalf("open window %+v, %v", look, err)
	}
	if err := r.SettleWindow(ctx, look.ID); err != nil {
		t.Fatal(err)
	}
	wantSame(t, "due for prod", r.claimDue("prod"), map[string]int{"prod sms": 3})
	if got := letter(t, r.Store, ids[0]); got.Broker != "prod" || r.FirstName("prod") != "main" {
		t.Errorf("%+v, first name %s", got.Origin(), r.FirstName("prod"))
	}
	classify(t, r.Store, deadletter.ClassifiedDead, time.Time{}) // these are the letters of the open window
	if got := letter(t, r.Store, r.take("prod", "email", 1, deadletter.ClassifiedDead)[0]); got.Group != group {
		t.Errorf("a new letter is in group %s, not in %s", got.Group, group)
	}
	if r := rereading(t, r.Store); r.Left != 0 {
		t.Errorf("%+v is read again for nothing", r)
	}
}

// noteMark writes what dlo remembers of its mark at a broker.
func (r *renamed) noteMark(broker string, claims int, unproved bool) {
	r.t.Helper()
	const text = `INSERT INTO marks (broker, vhost, claims, unproved) VALUES ('%s', '/', %d, %t)`
	if err := r.Writer(r.t.Context(), fmt.Sprintf(text, broker, claims, unproved)); err != nil {
		r.t.Fatal(err)
	}
}

// declarePolicy records that people have set a policy of dlo at a broker.
func (r *renamed) declarePolicy(broker string) {
	r.t.Helper()
	policy := deadletter.Declared{Broker: broker, VHost: "/", Kind: deadletter.DeclaredPolicy, Name: "dlo-1"}
	if err := r.Declare(r.t.Context(), []deadletter.Declared{policy}, deadletter.Act{}); err != nil {
		r.t.Fatal(err)
	}
}

// TestARenameThatIsRefused checks that the store refuses to rename a broker of which it has
// nothing, and to make two brokers one. A rename that fails halfway must change nothing.
func TestARenameThatIsRefused(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	r := renaming(t)
	r.take("main", "sms", 3, deadletter.ClassifiedRetry)
	w := window(t, 7, "sms", 1)
	w.Broker = "received" // this broker has only a letter that is not classified yet
	if _, err := r.Receive(ctx, w); err != nil {
		t.Fatal(err)
	}
	redirect := deadletter.Override{Broker: "redirected", VHost: "/", Queue: "a", To: "b", By: "ann"}
	if _, err := r.AddOverride(ctx, redirect); err != nil {
		t.Fatal(err)
	}
	r.declarePolicy("adopted")
	refused := func(from, to string, texts ...string) {
		t.Helper()
		err := r.RenameBroker(ctx, from, to)
		for _, text := range texts {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%s to %s: %v, want %s", from, to, err, text)
			}
		}
	}
	refused("typo", "prod", deadletter.ErrNotFound.Error(), "it has brokers: adopted, main, received, redirected")
	for _, taken := range []string{"received", "redirected", "adopted", "main"} {
		refused("main", taken, deadletter.ErrConflict.Error(), "of broker "+taken+" already", "{name: main, url:")
	}
	const halfway = `CREATE TRIGGER broken BEFORE INSERT ON event_targets BEGIN SELECT RAISE(ABORT, 'the end'); END`
	if err := r.Writer(ctx, halfway); err != nil {
		t.Fatal(err)
	}
	refused("main", "prod", "the end")
	if err := r.Writer(ctx, `DROP TRIGGER broken`); err != nil {
		t.Fatal(err)
	}
	r.reopen()
	wantSame(t, "due for main", r.claimDue("main"), map[string]int{"main sms": 3})
}

// TestADamagedNameIsNotRenamed checks a store in which the name of a queue changed on the disk. Its
// letters are held. A rename must not give the changed name a valid checksum.
func TestADamagedNameIsNotRenamed(t *testing.T) {
	t.Parallel()
	r := renaming(t)
	r.take("main", "sms", 1, deadletter.ClassifiedRetry)
	if err := r.Writer(t.Context(), `UPDATE origins SET queue = 'sns' WHERE queue = 'sms'`); err != nil {
		t.Fatal(err)
	}
	r.reopen()
	err := r.RenameBroker(t.Context(), "main", "prod")
	if !errors.Is(err, deadletter.ErrConflict) || !strings.Contains(err.Error(), "changed on the disk") {
		t.Error(err)
	}
}

// TestTwoBrokersOfOneNameShareNothing renames a broker, and gives its old name to another broker.
// Each must keep its own letters and groups, whatever names they get later.
func TestTwoBrokersOfOneNameShareNothing(t *testing.T) {
	t.Parallel()
	r := renaming(t)
	group := func(broker string) deadletter.GroupID {
		t.Helper()
		return letter(t, r.Store, r.take(broker, "sms", 1, deadletter.ClassifiedDead)[0]).Group
	}
	first := group("main")
	r.rename("main", "prod")
	second := group("main")
	r.rename("main", "test")
	r.rename("prod", "live")
	third := group("main")
	r.rename("live", "prod")
	groups := []deadletter.GroupID{group("prod"), group("test"), group("main")}
	wantSame(t, "groups", groups, []deadletter.GroupID{first, second, third})
	wantSame(t, "queues", r.listedCounts(), map[string]int{"prod sms": 2, "test sms": 2, "main sms": 2})
	r.rename("main", "other")
	r.rename("prod", "main") // this broker has its first name again
	if got := group("main"); got != first || first == second || second == third || r.FirstName("main") != "main" {
		t.Errorf("group %s of %s, %s and %s, first name %q", got, first, second, third, r.FirstName("main"))
	}
}

// TestAnotherVHostIsAStray checks letters of a configured broker whose vhost is not configured.
func TestAnotherVHostIsAStray(t *testing.T) {
	t.Parallel()
	r := renaming(t)
	r.number++
	w := window(t, r.number, "sms", 2)
	w.VHost = "shop"
	receive(t, r.Store, w)
	classify(t, r.Store, deadletter.ClassifiedDead, time.Time{})
	wantSame(t, "strays", r.strays("main"), map[string]string{"main shop": "0 waiting, 2 needy, 0 watched"})
}
