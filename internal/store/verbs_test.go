package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/storetest"
)

// TestHoldAndRelease checks that a release puts a held letter back into the state that it had
// before it was held.
func TestHoldAndRelease(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	ctx := context.Background()
	dead := receive(t, s, window(t, 1, "sms", 2)).New
	classify(t, s, deadletter.ClassifiedDead, time.Time{})
	waits := receive(t, s, window(t, 2, "sms", 1)).New[0]
	classify(t, s, deadletter.ClassifiedRetry, c.now().Add(time.Hour))
	guarded := receive(t, s, window(t, 3, "sms", 1)).New[0]
	classify(t, s, deadletter.ClassifiedHold, time.Time{})
	_, due := requeue(t, s, c, dead[1])
	mark(t, s, c, deadletter.OutcomeReturned, due...)

	operate(t, s, deadletter.VerbHold, dead[0], waits)
	for _, id := range []deadletter.ID{dead[0], waits, guarded, dead[1]} {
		if l := letter(t, s, id); l.State != deadletter.StateHeld || !l.DueAt.IsZero() {
			t.Errorf("%s, due %s", l.State, l.DueAt)
		}
	}
	if l := letter(t, s, waits); l.Why != "held by local" {
		t.Errorf("%q", l.Why)
	}
	operate(t, s, deadletter.VerbRelease, dead[0], waits, guarded, dead[1])
	for _, want := range []struct {
		id    deadletter.ID
		state deadletter.State
		due   bool
	}{
		{dead[0], deadletter.StateDead, false},
		{waits, deadletter.StateScheduled, true},
		{guarded, deadletter.StateReceived, false},
		{dead[1], deadletter.StateScheduled, true},
	} {
		if l := letter(t, s, want.id); l.State != want.state || l.DueAt.IsZero() == want.due || l.Why != "" {
			t.Errorf("%s, due %s, %q; want %s", l.State, l.DueAt, l.Why, want.state)
		}
	}
	again, err := s.NextReceived(ctx, 10)
	if err != nil || len(again) != 1 || again[0].ID != guarded || !again[0].Unguarded {
		t.Errorf("%+v, %v", again, err)
	}
	classify(t, s, deadletter.ClassifiedDead, time.Time{})
	if l := letter(t, s, guarded); l.Unguarded || l.State != deadletter.StateDead {
		t.Errorf("%s, unguarded %v", l.State, l.Unguarded)
	}
}

// staysAfterPurge contains the fields of a letter whose texts are kept after a purge. These texts
// describe the letter but are not part of its contents.
var staysAfterPurge = []string{
	"ID", "State", "Broker", "VHost", "Queue", "Exchange", "RoutingKey", "Inbox", "Reason", "Type", "Reading", "Rule",
	"Severity", "Version",
}

// TestPurgeErasesWhatTheClassifierFound checks that a purge keeps only the texts in
// staysAfterPurge, even if the classifier filled every field. A new column must either be erased or
// be added to that list.
func TestPurgeErasesWhatTheClassifierFound(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	id := receive(t, s, window(t, 1, "sms", 1)).New[0]
	v := storetest.Filled[deadletter.Classified]()
	v.Letter, v.To, v.Annotation, v.Tried = id, deadletter.ClassifiedDead, 0, false
	if err := s.Classify(t.Context(), []deadletter.Classified{v}); err != nil {
		t.Fatal(err)
	}
	operate(t, s, deadletter.VerbPurge, id)
	l := reflect.ValueOf(letter(t, s, id))
	for _, field := range reflect.VisibleFields(l.Type()) {
		value := l.FieldByIndex(field.Index)
		if text := fmt.Sprint(value); regexp.MustCompile(`[A-Z][a-z]+`).MatchString(text) &&
			value.Kind() != reflect.Int64 && !field.Anonymous && !slices.Contains(staysAfterPurge, field.Name) {
			t.Errorf("%s stays: %s", field.Name, text)
		}
	}
}

// TestPurgeErases checks that a purged letter keeps its row and its history, but none of its
// contents. When SQLite has freed the space, the contents must no longer be in the file either.
func TestPurgeErases(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	ctx := context.Background()
	const secret = "4111111111111111"
	w := window(t, 1, "sms", 1)
	w.Arrivals[0].Body = []byte("card " + secret)
	w.Arrivals[0].Properties.Headers["x-card"] = secret
	id := receive(t, s, w).New[0]
	classify(t, s, deadletter.ClassifiedDead, time.Time{})
	if err := s.Index(ctx, []deadletter.Indexed{
		{Letter: id, Text: "card " + secret, Fields: []deadletter.IndexedField{{Name: "header.x-card", Value: secret}}},
	}); err != nil {
		t.Fatal(err)
	}
	if n := count(t, s, secret+" header.x-card:"+secret); n != 1 {
		t.Fatal(n)
	}
	operate(t, s, deadletter.VerbPurge, id)
	l := letter(t, s, id)
	if l.State != deadletter.StatePurged || len(l.Body) > 0 || len(l.Properties.Headers) > 0 ||
		l.Properties.MessageID != "" || l.Summary != "" || l.Error != "" || l.Size == 0 || l.Queue != "sms" {
		t.Errorf("%+v", l)
	}
	for _, q := range []string{secret, "header.x-card:*", "message_id:*"} {
		if n := count(t, s, q); n != 0 {
			t.Errorf("%q finds %d letters", q, n)
		}
	}
	history, err := s.History(ctx, id)
	if last := history[len(history)-1]; err != nil || last.Kind != "purged" ||
		!strings.HasPrefix(last.Detail, "21 bytes, SHA-256 ") {
		t.Errorf("%+v, %v", last, err)
	}
	again := operation(t, s, operate(t, s, deadletter.VerbRestore, id))
	if again.Counts[deadletter.ResultSkipped] != 1 {
		t.Errorf("restored: %v", again.Counts)
	}
	if err := s.Writer(ctx, `INSERT INTO words (words) VALUES ('optimize')`); err != nil {
		t.Fatal(err)
	}
	if err := s.Writer(ctx, `VACUUM`); err != nil {
		t.Fatal(err)
	}
	if err := s.Writer(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(s.Path())
	if err != nil || bytes.Contains(file, []byte(secret)) {
		t.Errorf("the file still holds it (%v)", err)
	}
}

func TestRetention(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	ctx := context.Background()
	ids := receive(t, s, window(t, 1, "sms", 6)).New
	classify(t, s, deadletter.ClassifiedDead, time.Time{})
	operate(t, s, deadletter.VerbDiscard, ids[:4]...)
	c.at = c.at.Add(time.Hour)
	operate(t, s, deadletter.VerbRestore, ids[0])
	operate(t, s, deadletter.VerbDiscard, ids[0]) // the letter is discarded once more
	c.at = c.at.Add(time.Hour)
	if n, err := s.Expiring(ctx, deadletter.StateDiscarded, c.at.Add(-90*time.Minute), 2); err != nil || n != 2 {
		t.Errorf("%d, %v", n, err)
	}
	for _, want := range []int{2, 1, 0} {
		if n, err := s.Expire(ctx, deadletter.StateDiscarded, c.at.Add(-90*time.Minute), 2); err != nil || n != want {
			t.Fatalf("%d purged, want %d (%v)", n, want, err)
		}
	}
	if purged, discarded, dead := count(t, s, "state:purged"), count(
		t, s, "state:discarded",
	), count(t, s, "state:dead"); purged != 3 || discarded != 1 || dead != 2 {
		t.Errorf("%d purged, %d discarded, %d dead", purged, discarded, dead)
	}
	if l := letter(t, s, ids[0]); l.State != deadletter.StateDiscarded {
		t.Errorf("the one that was discarded last is %s", l.State)
	}
}

func TestOverridesAndViews(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	ctx := context.Background()
	o, err := s.AddOverride(ctx, deadletter.Override{Broker: "main", VHost: "/", Queue: "sms", To: "sms2", By: "local"})
	if err != nil || o.ID == 0 {
		t.Fatal(o, err)
	}
	if _, err := s.AddOverride(ctx, o); !errors.Is(err, deadletter.ErrConflict) {
		t.Error(err)
	}
	receive(t, s, window(t, 1, "sms", 2))
	classify(t, s, deadletter.ClassifiedRetry, c.now())
	due := claim(t, s, c)
	if len(due) != 2 || due[0].Attempt.Queue != "sms2" || due[0].Letter.Queue != "sms" {
		t.Fatalf("%+v", due)
	}
	mark(t, s, c, deadletter.OutcomeConfirmed, due...)
	c.at = c.at.Add(time.Hour)
	if at, err := s.Watched(ctx, "main", c.at); err != nil || len(at) != 1 || at[0].Queue != "sms2" {
		t.Errorf("watches %v (%v)", at, err)
	}
	if err := s.RemoveOverride(ctx, o.ID, "local"); err != nil {
		t.Error(err)
	}
	if err := s.RemoveOverride(ctx, o.ID, "local"); !errors.Is(err, deadletter.ErrNotFound) {
		t.Error(err)
	}
	if list, err := s.Overrides(ctx); err != nil || len(list) != 0 {
		t.Error(list, err)
	}

	v, err := s.AddView(ctx, deadletter.View{Name: "mine", Query: "state:dead since:2h", By: "local"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.AddView(ctx, v); !errors.Is(err, deadletter.ErrConflict) {
		t.Error(err)
	}
	if list, err := s.Views(ctx, "local"); err != nil || len(list) != 1 || list[0].Query != v.Query {
		t.Error(list, err)
	}
	if err := s.RemoveView(ctx, v.ID, "local"); err != nil {
		t.Error(err)
	}
	if err := s.RemoveView(ctx, v.ID, "local"); !errors.Is(err, deadletter.ErrNotFound) {
		t.Error(err)
	}
}

// TestViewsOfARemovedUser checks that a new user does not get the views of a removed user who had
// the same name.
func TestViewsOfARemovedUser(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	u, err := deadletter.NewUser("Lena", deadletter.Grant{Role: deadletter.RoleViewer}, "test")
	if err != nil {
		t.Fatal(err)
	}
	for n := range 2 {
		if err := s.AddUser(t.Context(), u, [32]byte{byte(n)}, time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		if list, err := s.Views(t.Context(), "Lena"); err != nil || len(list) != 0 {
			t.Errorf("%+v %v", list, err)
		}
		for _, owner := range []string{"Lena", "ana"} {
			if _, err := s.AddView(t.Context(), deadletter.View{
				Name: fmt.Sprint("of ", owner, n), Query: "state:dead", By: owner, Mine: true,
			}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.RemoveUser(t.Context(), "lena", "test"); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := s.Views(t.Context(), "ana"); err != nil || len(list) != 2 {
		t.Errorf("%+v %v", list, err)
	}
}
