package classify_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/deadletteroffice/dlo/internal/classify"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
	"github.com/deadletteroffice/dlo/internal/payload"
)

// unread is a store with letters that must be read again.
type unread struct {
	list    int // how many more times ListUnread has letters to list
	letters []deadletter.Letter
	read    []deadletter.Read
	fail    error
	noted   []deadletter.ID
}

func (u *unread) ListUnread(context.Context) (bool, error) {
	u.list--
	return u.list >= 0, nil
}

func (u *unread) NextUnread(_ context.Context, n int) ([]deadletter.Letter, error) {
	letters := u.letters[:min(n, len(u.letters))]
	u.letters = u.letters[len(letters):]
	return letters, nil
}

func (u *unread) Rereading(id deadletter.ID) error {
	u.noted = append(u.noted, id)
	return nil
}

func (u *unread) Read(_ context.Context, list []deadletter.Read) error {
	u.read = append(u.read, list...)
	return u.fail
}

// twins returns a registry with two types that can both decode the same bodies.
func twins(t *testing.T) *descriptor.Registry {
	t.Helper()
	types := descriptor.NewRegistry()
	if _, err := types.AddSource("acme", fstest.MapFS{"acme.proto": {Data: []byte(`syntax = "proto3"; package acme;
message Left { string id = 1; int64 at = 2; string text = 3; }
message Right { string id = 1; int64 at = 2; string text = 3; }`)}}); err != nil {
		t.Fatal(err)
	}
	return types
}

const twin = "\n\x0cabcdefghijkl\x10\x85\xa6\x03\x1a\x11hello good friend"

// TestPriorsAndPicks covers types that decode a body equally well. The types of a queue's earlier
// letters must decide. If there are no earlier letters, no type may be chosen. A type that a person
// picked for the group must be used, and the letter must stay in its group.
func TestPriorsAndPicks(t *testing.T) {
	t.Parallel()
	decoder := &payload.Decoder{Types: twins(t)}
	verdict := func(
		change func(*classify.Options), priors map[string]float64, l deadletter.Letter,
	) deadletter.Classified {
		t.Helper()
		o := options()
		o.Decoder = func() *payload.Decoder { return decoder }
		change(&o)
		l.Body = []byte(twin)
		f := &fake{letters: []deadletter.Letter{l}, priors: priors}
		if _, err := classify.New(f, o).Step(context.Background()); err != nil {
			t.Fatal(err)
		}
		return f.verdicts[0]
	}
	none := func(*classify.Options) {}
	l := deadLetter("sms", "rejected", nil)
	unsure := verdict(none, nil, l)
	if unsure.Type != "" || unsure.Reading != deadletter.ReadAmbiguous {
		t.Fatalf("%q by %q", unsure.Type, unsure.Reading)
	}
	if v := verdict(none, map[string]float64{
		"acme.Right": 0.98, "acme.Left": 0.02,
	}, l); v.Type != "acme.Right" || v.Reading != deadletter.ReadByMatch {
		t.Errorf("%q by %q", v.Type, v.Reading)
	}
	if v := verdict(none, map[string]float64{
		"acme.Right": 0.6, "acme.Left": 0.4,
	}, l); v.Type != "" || v.Reading != deadletter.ReadAmbiguous {
		t.Errorf("both are common here: %q by %q", v.Type, v.Reading)
	}
	picks := func(o *classify.Options) {
		o.Picks = func() map[[32]byte]string { return map[[32]byte]string{unsure.GroupKey: "acme.Left"} }
	}
	if v := verdict(
		picks, nil, l,
	); v.Type != "acme.Left" || v.Reading != deadletter.ReadByPick || v.GroupKey != unsure.GroupKey {
		t.Errorf("%q by %q, in its group: %v", v.Type, v.Reading, v.GroupKey == unsure.GroupKey)
	}
	own := l
	own.Picked = "acme.Right"
	if v := verdict(picks, nil, own); v.Type != "acme.Right" || v.Reading != deadletter.ReadByPick {
		t.Errorf("%q by %q", v.Type, v.Reading)
	}
}

// TestTheOnlyTypeOfAQueueReadsNewFields covers a body with a field that no type knows. If all of
// the newest letters of a queue have one type, the body must get that type.
func TestTheOnlyTypeOfAQueueReadsNewFields(t *testing.T) {
	t.Parallel()
	decoder := &payload.Decoder{Types: twins(t)}
	for only, want := range map[string]string{"": "", "acme.Right": "acme.Right"} {
		o := options()
		o.Decoder = func() *payload.Decoder { return decoder }
		l := deadLetter("sms", "rejected", nil)
		l.Body = []byte(twin + "\x8a\x01\x06abcdef")
		f := &fake{letters: []deadletter.Letter{l}, only: only}
		if _, err := classify.New(f, o).Step(context.Background()); err != nil {
			t.Fatal(err)
		}
		if v := f.verdicts[0]; v.Type != want || (len(v.Added) == 1 && v.Added[0].Number == 17) != (want != "") {
			t.Errorf("of a queue of %q: %q by %q, new fields %v", only, v.Type, v.Reading, v.Added)
		}
	}
}

func TestTheReaderReadsAgain(t *testing.T) {
	t.Parallel()
	o := options()
	decoder := &payload.Decoder{Types: twins(t), Bindings: []deadletter.Binding{{Queue: "sms", Type: "acme.Left"}}}
	o.Decoder = func() *payload.Decoder { return decoder }
	letter := func(change func(*deadletter.Letter)) deadletter.Letter {
		l := deadLetter("sms", "rejected", nil)
		l.State, l.Queue, l.Body, l.Reason, l.Error, l.ChangedAt = deadletter.StateDead, "sms", []byte(
			twin,
		), "rejected", "boom", now
		change(&l)
		return l
	}
	u := &unread{list: 2, letters: []deadletter.Letter{
		letter(func(*deadletter.Letter) {}),
		letter(func(l *deadletter.Letter) { l.Crashes = deadletter.MaxCrashes }),
		letter(func(l *deadletter.Letter) {
			l.Revised = &deadletter.Revision{
				Body:       []byte(`{"a":1}`),
				Properties: deadletter.Properties{ContentType: "application/json"},
			}
		}),
	}}
	woken := 0
	r := classify.NewReader(u, classify.New(&fake{}, o), func() { woken++ })
	for _, want := range []bool{true, true, true, false} {
		if more, err := r.Step(context.Background()); more != want || err != nil {
			t.Fatal(more, err)
		}
	}
	if len(u.read) != 3 || woken != 1 {
		t.Fatal(u.read, woken)
	}
	for i, want := range []deadletter.Classified{
		{Type: "acme.Left", Reading: deadletter.ReadByBinding},
		{Reading: deadletter.ReadCrashed},
		{Reading: deadletter.ReadAsJSON},
	} {
		if got := u.read[i]; got.Type != want.Type || got.Reading != want.Reading || !got.AsOf.Equal(now) ||
			got.GroupTitle != "boom" || got.To != "" {
			t.Errorf("%d: %+v", i, got)
		}
	}
	if want := u.read[0].Letter; !slices.Equal(u.noted, []deadletter.ID{want, "", want, "", want, ""}) {
		t.Errorf("noted as being read: %v", u.noted)
	}
	stopped, cancel := context.WithCancel(context.Background())
	cancel()
	u.letters = []deadletter.Letter{letter(func(*deadletter.Letter) {})}
	if _, err := r.Step(stopped); err != nil || len(u.noted) != 6 {
		t.Errorf("a clean stop reads on: %v, %v", err, u.noted)
	}
	u.letters, u.fail = []deadletter.Letter{letter(func(*deadletter.Letter) {})}, errors.New("no room")
	if more, err := r.Step(context.Background()); more || !errors.Is(err, u.fail) {
		t.Error(more, err)
	}
	if err := r.Between(func() error { return u.fail }); !errors.Is(err, u.fail) {
		t.Error(err)
	}
}
