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

// renamed is a store that is reopened with different broker names.
type renamed struct {
	*store.Store
	t      *testing.T
	path   string
	c      *clock
	number int64
}

func renaming(t *testing.T, brokers ...store.Broker) *renamed {
	t.Helper()
	r := &renamed{t: t, path: storetest.File(t), c: &clock{time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)}}
	r.reopenWith(brokers...)
	t.Cleanup(func() {
		for _, breach := range breaches(t, r.Reader()) {
			t.Error(breach)
		}
		r.Close()
	})
	return r
}

// reopenWith closes the store and opens it with the given brokers in the configuration.
func (r *renamed) reopenWith(brokers ...store.Broker) {
	r.t.Helper()
	if err := r.try(brokers...); err != nil {
		r.t.Fatal(err)
	}
}

func (r *renamed) try(brokers ...store.Broker) error {
	r.t.Helper()
	if r.Store != nil {
		if err := r.Close(); err != nil {
			r.t.Fatal(err)
		}
		r.Store = nil
	}
	r.c.at = r.c.at.Add(time.Second)
	s, err := store.Open(context.Background(), r.path, store.Options{Now: r.c.now, Brokers: brokers})
	r.Store = s
	return err
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
	origin := deadletter.Origin{Broker: l.Origin.Broker, VHost: "/", Queue: queue}
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

// readAgain records that letters were read again.
func (r *renamed) readAgain(list []deadletter.Letter) {
	r.t.Helper()
	var reads []deadletter.Read
	for i := range list {
		reads = append(reads, deadletter.Read{
			AsOf: list[i].ChangedAt, Classified: r.verdict(&list[i], list[i].Origin.Queue, ""),
		})
	}
	if err := r.Read(context.Background(), reads); err != nil {
		r.t.Fatal(err)
	}
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
		n[d.Letter.Origin.Broker+" "+d.Attempt.Queue]++
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
		found[s.Broker+" "+s.VHost] = strings.TrimSpace(fmt.Sprintf("%d waiting, %d needy, %d watched %s", s.Waiting(), s.Needy(), s.Watched(), s.Called))
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

var asMain, asProd = store.Broker{Name: "main"}, store.Broker{Name: "prod", Was: []string{"main"}}

// TestARenamedBrokerKeepsWhatItHas checks that a renamed broker keeps its letters, pauses,
// redirects, session and open window. The keys of its groups stay the same.
func TestARenamedBrokerKeepsWhatItHas(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	r := renaming(t, asMain)
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
	group := letter(t, r.Store, ids[0]).Group

	// If the configuration of the broker "prod" does not say that its old name was "main", the
	// letters of "main" belong to no configured broker.
	r.reopenWith(store.Broker{Name: "prod"})
	wantSame(t, "due for prod", r.claimDue("prod"), map[string]int{})
	wantSame(t, "strays", r.strays("prod"), map[string]string{"main /": "3 waiting, 2 needy, 0 watched"})

	r.reopenWith(asProd)
	wantSame(t, "strays", r.strays("prod"), map[string]string{})
	wantSame(t, "queues", r.listedCounts(), map[string]int{"prod sms": 3, "prod email": 2})
	for _, q := range []string{"broker:main", "broker:prod", "broker:ma*", "broker:pro* queue:*"} {
		if n := count(t, r.Store, q+" -state:received"); n != 5 {
			t.Errorf("%s finds %d letters", q, n)
		}
	}
	if n := count(t, r.Store, "broker:other"); n != 0 {
		t.Errorf("another name finds %d letters", n)
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
	if err != nil || session.Number != before.Number+1 || session.Marker != "dlo.epoch.m" {
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
	if got := letter(t, r.Store, ids[0]); got.Origin.Broker != "prod" || r.FirstName("prod") != "main" {
		t.Errorf("%+v, first name %s", got.Origin, r.FirstName("prod"))
	}
	classify(t, r.Store, deadletter.ClassifiedDead, time.Time{}) // these are the letters of the open window
	if got := letter(t, r.Store, r.take("prod", "email", 1, deadletter.ClassifiedDead)[0]); got.Group != group {
		t.Errorf("a new letter is in group %s, not in %s", got.Group, group)
	}
	if r := rereading(t, r.Store); r.Left != 0 {
		t.Errorf("%+v is read again for nothing", r)
	}
}

// TestWhatCameInMeanwhile checks a broker that gets a new name, while the configuration does not
// mention its earlier name. For some time, dlo takes it for another broker. When the configuration
// later mentions the earlier name, the letters that were received under the new name must join the
// older letters.
func TestWhatCameInMeanwhile(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	r := renaming(t, asMain)
	old := r.take("main", "sms", 3, deadletter.ClassifiedRetry)
	r.take("main", "email", 1, deadletter.ClassifiedDead)
	if _, err := r.BeginSession(ctx, "main", "/", "dlo.letters"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.AddOverride(ctx, deadletter.Override{
		Broker: "main", VHost: "/", Queue: "sms", To: "early", By: "ann",
	}); err != nil {
		t.Fatal(err)
	}

	r.reopenWith(store.Broker{Name: "prod"})
	young := r.take("prod", "sms", 2, deadletter.ClassifiedRetry)
	fresh := r.take("prod", "push", 4, deadletter.ClassifiedDead)
	for range 3 {
		if _, err := r.BeginSession(ctx, "prod", "/", "dlo.letters"); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Calm(ctx, "prod", "/", "dlo.letters", "dlo.epoch.young"); err != nil {
		t.Fatal(err)
	}
	for _, queue := range []string{"sms", "push"} {
		if _, err := r.Pause(ctx, deadletter.Guard{
			Origin: deadletter.Origin{Broker: "prod", VHost: "/", Queue: queue},
			By:     "ann",
		}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.AddOverride(ctx, deadletter.Override{
		Broker: "prod", VHost: "/", Queue: "sms", To: "late", By: "ann",
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.AddPick(ctx, deadletter.Pick{
		Group: letter(t, r.Store, fresh[0]).Group, Type: "acme.P", By: "ann", Reason: "seen",
	}, func(string, string) bool { return false }); err != nil {
		t.Fatal(err)
	}
	r.readAgain(nextUnread(t, r.Store, 100))
	op := deadletter.Operation{Action: deadletter.VerbHold, By: "ann", Through: "api"}
	if err := r.Freeze(ctx, &op, query.Selection{IDs: young}, 0, anyPlace); err != nil {
		t.Fatal(err)
	}
	group := letter(t, r.Store, old[0]).Group
	if got := letter(t, r.Store, young[0]).Group; got == group {
		t.Fatal("the two names have one group: this test tests nothing")
	}

	r.reopenWith(asProd)
	wantSame(t, "queues", r.listedCounts(), map[string]int{"prod sms": 5, "prod email": 1, "prod push": 4})
	if n := count(t, r.Store, "broker:prod queue:sms"); n != 5 {
		t.Errorf("search finds %d letters", n)
	}
	if list, err := r.Overrides(ctx); err != nil || len(list) != 1 || list[0].To != "late" {
		t.Errorf("redirects: %+v, %v", list, err)
	}
	paused := map[string]bool{}
	for _, g := range guards(t, r.Store) {
		paused[g.Origin.Broker+" "+g.Origin.Queue] = true
	}
	wantSame(t, "paused", paused, map[string]bool{"prod sms": true, "prod push": true})
	if session, err := r.BeginSession(
		ctx, "prod", "/", "dlo.letters",
	); err != nil || session.Number != 4 || session.Marker != "dlo.epoch.young" {
		t.Errorf("session %+v, %v", session, err)
	}

	// Only the letters that were received under the new name are read again, because they must be
	// put into the groups of the first name.
	list := nextUnread(t, r.Store, 100)
	if len(list) != len(young)+len(fresh) {
		t.Fatalf("%d letters are read again, want %d", len(list), len(young)+len(fresh))
	}
	for _, l := range list {
		if l.Origin.Queue == "push" && l.GroupPick != "acme.P" {
			t.Errorf("the pick of its group is forgotten: %q", l.GroupPick)
		}
	}
	r.readAgain(list)
	if got := letter(t, r.Store, young[0]).Group; got != group {
		t.Errorf("the letters are in groups %s and %s", group, got)
	}
	for more := true; more; {
		taken, err := r.Advance(ctx, op.ID, 100, nil)
		if err != nil {
			t.Fatal(err)
		}
		more = taken > 0
	}
	if got := operation(t, r.Store, op.ID); got.Counts[deadletter.ResultChanged] != 2 || len(got.Queues) != 1 {
		t.Errorf("%+v", got)
	}
	if err := r.Resume(ctx, deadletter.Guard{
		Origin: deadletter.Origin{Broker: "prod", VHost: "/", Queue: "sms"},
		By:     "ann",
	}); err != nil {
		t.Error(err)
	}
	wantSame(t, "due", r.claimDue("prod"), map[string]int{"prod late": 3})

	// The first start with this configuration has already done everything. The second start must
	// therefore find nothing to do.
	r.reopenWith(asProd)
	if list := nextUnread(t, r.Store, 100); len(list) != 0 {
		t.Errorf("%d letters are read again for nothing", len(list))
	}
}

// TestWhatWasTakenOverComesBack removes a broker's old name from the configuration. This must
// reverse the takeover, so that the letters belong to no configured broker. If the old name is
// added again, the broker must get all its letters back.
func TestWhatWasTakenOverComesBack(t *testing.T) {
	t.Parallel()
	r := renaming(t, asMain)
	r.take("main", "sms", 3, deadletter.ClassifiedRetry)
	r.reopenWith(asProd)
	r.take("prod", "sms", 1, deadletter.ClassifiedRetry)
	// these letters are stored under the old name, for example by an import
	r.take("main", "sms", 1, deadletter.ClassifiedRetry)
	wantSame(t, "queues", r.listedCounts(), map[string]int{"prod sms": 5})
	wantSame(t, "strays", r.strays("prod"), map[string]string{})

	r.reopenWith(store.Broker{Name: "prod"})
	wantSame(t, "strays", r.strays("prod"), map[string]string{"main /": "5 waiting, 0 needy, 0 watched prod"})
	r.take("prod", "sms", 1, deadletter.ClassifiedRetry)
	r.take("prod", "new", 1, deadletter.ClassifiedRetry)

	r.reopenWith(store.Broker{Name: "prod", Was: []string{"main", "never"}})
	wantSame(t, "strays", r.strays("prod"), map[string]string{})

	// Here, the broker is renamed once more. The configuration may list the earlier names of a
	// broker in any order.
	r.reopenWith(store.Broker{Name: "live", Was: []string{"prod", "main"}})
	wantSame(t, "strays", r.strays("live"), map[string]string{})
	if first := r.FirstName("live"); first != "main" {
		t.Errorf("it is %s now", first)
	}
	r.reopenWith(asMain) // the broker has its first name again
	wantSame(t, "strays", r.strays("main"), map[string]string{})
	wantSame(t, "due", r.claimDue("main"), map[string]int{"main sms": 6, "main new": 1})
}

// TestANameThatHasLettersIsNotGivenAway checks that another broker cannot get the first name of a
// renamed broker. The letters of the renamed broker are stored under that name, so they would be
// sent to the other broker.
func TestANameThatHasLettersIsNotGivenAway(t *testing.T) {
	t.Parallel()
	r := renaming(t, asMain)
	r.take("main", "sms", 3, deadletter.ClassifiedRetry)
	r.reopenWith(asProd)
	r.take("prod", "sms", 2, deadletter.ClassifiedRetry)
	for name, brokers := range map[string][]store.Broker{
		"given to another":      {{Name: "prod"}, asMain},
		"taken by another":      {{Name: "prod"}, {Name: "live", Was: []string{"main"}}},
		"the other comes first": {asMain, {Name: "prod"}},
	} {
		if err := r.try(brokers...); !errors.Is(err, store.ErrNames) ||
			!strings.Contains(err.Error(), "add was: [main] to the entry of broker prod") {
			t.Errorf("%s: %v", name, err)
		}
	}
	r.reopenWith(asProd, store.Broker{Name: "new"})
	wantSame(t, "due for new", r.claimDue("new"), map[string]int{})
	wantSame(t, "due for prod", r.claimDue("prod"), map[string]int{"prod sms": 5})
}

// TestAnotherVHostIsAStray checks letters of a configured broker whose vhost is not configured.
func TestAnotherVHostIsAStray(t *testing.T) {
	t.Parallel()
	r := renaming(t, asMain)
	r.number++
	w := window(t, r.number, "sms", 2)
	w.VHost = "shop"
	receive(t, r.Store, w)
	classify(t, r.Store, deadletter.ClassifiedDead, time.Time{})
	wantSame(t, "strays", r.strays("main"), map[string]string{"main shop": "0 waiting, 2 needy, 0 watched"})
}

// TestTheNewerOfTwoWindowsIsOpen checks a broker that gets another name while a window is open.
// Under the new name, the broker delivers the letters of the open window again, so dlo stores them
// a second time, in a newer window. When dlo later treats both names as one broker, only the newer
// window must count as open.
func TestTheNewerOfTwoWindowsIsOpen(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	r := renaming(t, asMain)
	for i, broker := range []string{"main", "prod"} {
		r.reopenWith(store.Broker{Name: broker})
		if _, err := r.BeginSession(ctx, broker, "/", "dlo.letters"); err != nil {
			t.Fatal(err)
		}
		w := window(t, int64(i), "sms", i+2)
		w.Broker = broker
		if _, err := r.Receive(ctx, w); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.AtStake(ctx, "prod", "/", "dlo.letters", 2); err != nil {
		t.Fatal(err)
	}
	r.reopenWith(asProd)
	if session, err := r.BeginSession(ctx, "prod", "/", "dlo.letters"); err != nil || session.AtStake != 2 {
		t.Errorf("%d letters at stake, %v", session.AtStake, err)
	}
	if look, err := r.Look(ctx, "prod", "/", "dlo.letters"); err != nil || look == nil || len(look.Fingerprints) != 3 {
		t.Errorf("open window %+v, %v", look, err)
	}
	classify(t, r.Store, deadletter.ClassifiedDead, time.Time{})
	wantSame(t, "queues", r.listedCounts(), map[string]int{"prod sms": 5})
}
