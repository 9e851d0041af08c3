package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/store"
)

// listUnread lists all letters that must be read again.
func listUnread(t *testing.T, s *store.Store) {
	t.Helper()
	for {
		more, err := s.ListUnread(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			return
		}
	}
}

// nextUnread returns the next n letters that must be read again.
func nextUnread(t *testing.T, s *store.Store, n int) []deadletter.Letter {
	t.Helper()
	listUnread(t, s)
	letters, err := s.NextUnread(context.Background(), n)
	if err != nil {
		t.Fatal(err)
	}
	return letters
}

// recordRead records that letters were read as the given type.
func recordRead(
	t *testing.T, s *store.Store, typ string, by deadletter.Reading, group byte, letters ...deadletter.Letter,
) {
	t.Helper()
	var list []deadletter.Read
	for _, l := range letters {
		list = append(list, deadletter.Read{AsOf: l.ChangedAt, Classified: deadletter.Classified{
			Letter:       l.ID,
			Type:         typ,
			Reading:      by,
			Summary:      "again",
			GroupKey:     [32]byte{group},
			GroupTitle:   "g",
			GroupVersion: 1,
			Reason:       l.Reason,
			Error:        l.Error,
			Severity:     l.Severity,
		}})
	}
	if err := s.Read(context.Background(), list); err != nil {
		t.Fatal(err)
	}
}

func rereading(t *testing.T, s *store.Store) deadletter.RereadProgress {
	t.Helper()
	r, err := s.RereadProgress(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestLettersAreReadAgain checks which letters are read again after a schema set has changed types:
// letters of these types, and letters without a type. The type, the reading, the summary and the
// group of these letters may change, but not their state.
func TestLettersAreReadAgain(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	ctx := context.Background()
	typed := receive(t, s, window(t, 1, "sms", 3)).New
	classify(t, s, deadletter.ClassifiedDead, time.Time{}) // the letters get the type acme.T
	receive(t, s, window(t, 2, "email", 2))
	var verdicts []deadletter.Classified
	letters, err := s.NextReceived(ctx, 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range letters {
		verdicts = append(verdicts, deadletter.Classified{
			Letter:       l.ID,
			To:           deadletter.ClassifiedRetry,
			DueAt:        c.now().Add(time.Hour),
			Origin:       deadletter.Origin{Broker: "main", VHost: "/", Queue: "email"},
			Reading:      deadletter.ReadUnknown,
			GroupKey:     [32]byte{2},
			GroupTitle:   "g",
			GroupVersion: 1,
		})
	}
	if err := s.Classify(ctx, verdicts); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Pause(ctx, deadletter.Guard{
		Group: letter(t, s, letters[0].ID).Group, By: "local", Why: "wait",
	}); err != nil {
		t.Fatal(err)
	}
	c.at = c.at.Add(time.Second)

	if err := s.Reread(ctx, deadletter.Reread{Why: "set other 1", Types: []string{"acme.Other"}}); err != nil {
		t.Fatal(err)
	}
	got := nextUnread(t, s, 10)
	if len(got) != 2 || got[0].Queue != "email" || got[1].Queue != "email" {
		t.Fatalf("%+v", got)
	}
	if r := rereading(t, s); r != (deadletter.RereadProgress{Why: "set other 1", Total: 2, Left: 2}) {
		t.Errorf("%+v", r)
	}
	recordRead(t, s, "acme.Other", deadletter.ReadByMatch, 3, got[0])
	recordRead(t, s, "", deadletter.ReadUnknown, 2, got[1])
	if r := rereading(t, s); r != (deadletter.RereadProgress{}) {
		t.Errorf("%+v", r)
	}
	l := letter(t, s, got[0].ID)
	if l.Type != "acme.Other" || l.Reading != deadletter.ReadByMatch || l.State != deadletter.StateScheduled ||
		l.Summary != "again" || l.Group == got[0].Group || !l.DueAt.Equal(
		got[0].DueAt,
	) {
		t.Errorf("%+v", l)
	}
	if due, err := s.ClaimDue(ctx, "main", c.now().Add(2*time.Hour), 10, deadletter.Allowance{
		Allow: func(deadletter.Origin, string) (int, bool) { return 10, false },
	}); err != nil || len(due) != 0 {
		t.Errorf("a letter of a paused group left, as its group has another name now: %+v %v", due, err)
	}
	if n := count(t, s, "type:acme.Other"); n != 1 {
		t.Errorf("%d letters of the new type", n)
	}

	if err := s.Reread(ctx, deadletter.Reread{Why: "set t 2", Types: []string{"acme.T"}}); err != nil {
		t.Fatal(err)
	}
	if got := nextUnread(t, s, 10); len(got) != 4 { // three letters with the type, one without a type
		t.Errorf("%d letters", len(got))
	}
	if _, err := s.AddPick(ctx, deadletter.Pick{Letter: typed[0], Binding: deadletter.Binding{Type: "acme.P"}, By: "local"}, nil); err != nil {
		t.Fatal(err)
	}
	if l := letter(t, s, typed[0]); l.Picked != "acme.P" || l.GroupPick != "" {
		t.Errorf("picked %q, for the group %q", l.Picked, l.GroupPick)
	}
	if _, err := s.AddPick(ctx, deadletter.Pick{Group: l.Group, Binding: deadletter.Binding{Type: "acme.G"}, By: "local"}, nil); err != nil {
		t.Fatal(err)
	}
	if l := letter(t, s, l.ID); l.Picked != "" || l.GroupPick != "acme.G" {
		t.Errorf("picked %q, for the group %q", l.Picked, l.GroupPick)
	}
	if priors, err := s.Priors(ctx, deadletter.Origin{
		Broker: "main", VHost: "/", Queue: "email",
	}); err != nil || priors["acme.Other"] != 1 {
		t.Errorf("%v %v", priors, err)
	}
}

// TestWhatIsReadAgainIsIndexedAgain covers letters of which a new reading changes nothing that the
// store has. Their bodies may still hide more than before, or have fields with other names: JSON
// that names a type has itself no type. They must be indexed again. If the change may hide more,
// nothing must show their contents until they are read, and letters whose type is a guess must be
// read too.
func TestWhatIsReadAgainIsIndexedAgain(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for _, tt := range []struct {
		why         string
		reread      deadletter.Reread // if it names no types, a binding or a setting is changed instead
		read, shown int               // how many of the three letters are read again, and are shown until then
	}{
		{"a type becomes known", deadletter.Reread{Types: []string{"acme.New"}}, 1, 3},
		{"a type that hides becomes known", deadletter.Reread{Types: []string{"acme.New"}, Hides: true}, 2, 1},
		{why: "a binding", read: 3},
		{why: "a setting", read: 3},
	} {
		s, _ := open(t)
		receive(t, s, window(t, 1, "sms", 3))
		letters, err := s.NextReceived(ctx, 10)
		if err != nil {
			t.Fatal(err)
		}
		readings := []deadletter.Reading{deadletter.ReadAsJSON, deadletter.ReadByMatch, deadletter.ReadByProperty}
		typeOf := func(i int) string {
			if readings[i].Typed() {
				return "acme.Old"
			}
			return ""
		}
		var verdicts []deadletter.Classified
		var entries []deadletter.Indexed
		for i, l := range letters {
			verdicts = append(verdicts, deadletter.Classified{
				Letter: l.ID, To: deadletter.ClassifiedDead, Type: typeOf(i), Reading: readings[i], Summary: "again",
				Origin:   deadletter.Origin{Broker: "main", VHost: "/", Queue: "sms"},
				GroupKey: [32]byte{1}, GroupTitle: "g", GroupVersion: 1,
			})
			entries = append(entries, deadletter.Indexed{
				Letter: l.ID, Text: "canary", Fields: []deadletter.IndexedField{{Name: "body.note", Value: "canary"}},
			})
		}
		if err := s.Classify(ctx, verdicts); err != nil {
			t.Fatal(err)
		}
		if err := s.Index(ctx, entries); err != nil {
			t.Fatal(err)
		}
		if n := count(t, s, "canary"); n != 3 {
			t.Fatalf("%d letters are found by a word", n)
		}
		tt.reread.Why = tt.why
		switch {
		case tt.reread.Types != nil:
			err = s.Reread(ctx, tt.reread)
		case tt.why == "a setting":
			for _, settings := range []string{"old", "new"} {
				if _, err := s.Regroup(ctx, 1, settings); err != nil {
					t.Fatal(err)
				}
			}
		default:
			p := deadletter.Pick{Binding: deadletter.Binding{Queue: "sms", Type: "acme.New"}, By: "local"}
			_, err = s.AddPick(ctx, p, func(string, string) bool { return true })
		}
		if err != nil {
			t.Fatal(err)
		}
		again := nextUnread(t, s, 10)
		shown := 0
		for _, l := range letters {
			if letter(t, s, l.ID).Summary != "" {
				shown++
			}
		}
		facets, err := s.Facets(ctx, query.Query{}, "note")
		if err != nil {
			t.Fatal(err)
		}
		counted := 0
		for _, v := range facets.Fields[len(facets.Fields)-1].Values {
			counted += v.Count
		}
		found := count(t, s, "canary")
		if len(again) != tt.read || shown != tt.shown || found != tt.shown || counted != tt.shown {
			t.Errorf(
				"%s: %d letters are read again; until then, lists show %d, a search finds %d, facets count %d",
				tt.why, len(again), shown, found, counted,
			)
		}
		for _, l := range again {
			recordRead(t, s, l.Type, l.Reading, 1, l)
			if letter(t, s, l.ID).Summary != "again" {
				t.Errorf("%s: a letter that was read again has no summary", tt.why)
			}
		}
		if n, err := s.Unindexed(ctx); n != tt.read || err != nil {
			t.Errorf("%s: %d letters are indexed again: %v", tt.why, n, err)
		}
	}
}

// TestALetterThatKillsTheReader checks a letter that kills the process when it is read again. A
// crash must be added to the letter, and the letter must then be read alone, after all other
// letters. After MaxCrashes crashes, it must count as undecodable. The list of letters to read
// again must survive the death of the process.
func TestALetterThatKillsTheReader(t *testing.T) {
	t.Parallel()
	p := start(t)
	ids := receive(t, p.Store, window(t, 1, "sms", 3)).New
	classify(t, p.Store, deadletter.ClassifiedDead, time.Time{})
	if err := p.Reread(context.Background(), deadletter.Reread{Why: "set a 1"}); err != nil {
		t.Fatal(err)
	}
	p.restart(t) // no letter is listed yet
	if got := nextUnread(t, p.Store, 10); len(got) != 3 {
		t.Fatalf("%+v", got)
	}
	rereading := func(id deadletter.ID) {
		t.Helper()
		if err := p.Rereading(id); err != nil {
			t.Fatal(err)
		}
	}
	rereading(ids[2])
	p.restart(t)

	got := nextUnread(t, p.Store, 10)
	if len(got) != 2 || got[0].Crashes != 0 || got[1].Crashes != 0 {
		t.Fatalf("%+v", got)
	}
	recordRead(t, p.Store, "", deadletter.ReadAsText, 1, got...)
	if got = nextUnread(t, p.Store, 10); len(got) != 1 || got[0].ID != ids[2] || got[0].Crashes != 1 {
		t.Fatalf("%+v", got)
	}
	for range deadletter.MaxCrashes - 1 {
		if got[0].Undecodable() {
			t.Fatalf("given up after %d crashes", got[0].Crashes)
		}
		rereading(ids[2])
		p.restart(t)
		got = nextUnread(t, p.Store, 10)
	}
	if len(got) != 1 || got[0].ID != ids[2] || !got[0].Undecodable() {
		t.Fatalf("%+v", got)
	}
	recordRead(t, p.Store, "", deadletter.ReadCrashed, 1, got...)
	if l := letter(t, p.Store, ids[2]); !l.Undecodable() || l.Reading != deadletter.ReadCrashed {
		t.Errorf("%+v", l)
	}
	rereading("")
	p.restart(t)
	if got = nextUnread(t, p.Store, 10); len(got) != 0 {
		t.Fatalf("%+v", got)
	}
}

// TestWhatIsLearned checks what dlo learns from earlier letters: the share of each type, which
// helps to choose the type of a new letter. When dlo knows enough letters with a routing key, it
// must use only the shares for this key, and not those of the whole queue. It must learn only a
// limited number of routing keys for each queue.
func TestWhatIsLearned(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	ctx := context.Background()
	said := func(key string) map[string]float64 {
		t.Helper()
		priors, err := s.Priors(ctx, deadletter.Origin{Broker: "main", VHost: "/", Queue: "sms", RoutingKey: key})
		if err != nil {
			t.Fatal(err)
		}
		return priors
	}
	receive(t, s, window(t, 1, "sms", 300))
	letters, err := s.NextReceived(ctx, 300)
	if err != nil {
		t.Fatal(err)
	}
	var verdicts []deadletter.Classified
	for i, l := range letters {
		v := deadletter.Classified{
			Letter:       l.ID,
			To:           deadletter.ClassifiedDead,
			Reading:      deadletter.ReadByMatch,
			Type:         "acme.A",
			Origin:       deadletter.Origin{Broker: "main", VHost: "/", Queue: "sms", RoutingKey: "a"},
			GroupVersion: 1,
		}
		switch {
		case i < 30:
			v.Type, v.Origin.RoutingKey = "acme.B", "b"
		case i >= 40:
			v.Origin.RoutingKey = string(rune('α' + i))
		}
		verdicts = append(verdicts, v)
	}
	for _, list := range [][]deadletter.Classified{verdicts[:40], verdicts[40:]} {
		if err := s.Classify(ctx, list); err != nil {
			t.Fatal(err)
		}
	}
	if p := said("b"); len(p) != 1 || p["acme.B"] != 1 {
		t.Errorf("%v", p)
	}
	for _, key := range []string{"unknown", string(rune('α' + 41))} { // a single letter is not enough
		if p := said(key); p["acme.A"] != 0.9 || p["acme.B"] != 0.1 {
			t.Errorf("%s: %v", key, p)
		}
	}
	named := func(typ string, want bool) {
		t.Helper()
		if got, err := s.NamesType(ctx, deadletter.Origin{
			Broker: "main", VHost: "/", Queue: "sms",
		}, typ); got != want || err != nil {
			t.Errorf("letters are of %s by more than their shape: %v, %v", typ, got, err)
		}
	}
	named("acme.B", false)
	// If a letter is now read as another type, it no longer counts for its old type.
	l := letters[0]
	if l = letter(t, s, l.ID); l.Type != "acme.B" {
		t.Fatal(l.Type)
	}
	recordRead(t, s, "acme.C", deadletter.ReadByBinding, 9, l)
	if p := said("b"); p["acme.B"] != 29.0/30 || p["acme.C"] != 1.0/30 {
		t.Errorf("%v", p)
	}
	named("acme.C", true)
	named("acme.B", false)
	var keys int
	if err := s.Reader().QueryRow(`SELECT count(*) FROM learned`).Scan(&keys); err != nil || keys < 200 {
		t.Errorf("%d keys: %v", keys, err)
	}
}

// TestAReadingThatEndsTakesItsCrashBack checks that the number of crashes of a letter becomes 0
// again when the letter is read completely, even if the reading changes nothing. Otherwise the
// number would grow whenever the process dies for any reason while it reads the letter, and in the
// end the letter would be shown as plain bytes forever.
func TestAReadingThatEndsTakesItsCrashBack(t *testing.T) {
	t.Parallel()
	p := start(t)
	id := receive(t, p.Store, window(t, 1, "sms", 1)).New[0]
	classify(t, p.Store, deadletter.ClassifiedDead, time.Time{})
	if err := p.Reread(context.Background(), deadletter.Reread{Why: "set a 1"}); err != nil {
		t.Fatal(err)
	}
	before := nextUnread(t, p.Store, 10)
	if err := p.Rereading(id); err != nil {
		t.Fatal(err)
	}
	p.restart(t)
	got := nextUnread(t, p.Store, 10)
	if len(got) != 1 || got[0].Crashes != 1 {
		t.Fatalf("%+v", got)
	}
	recordRead(t, p.Store, before[0].Type, before[0].Reading, 1, got...)
	if l := letter(t, p.Store, id); l.Crashes != 0 || l.Group != before[0].Group {
		t.Errorf("%d crashes", l.Crashes)
	}
}

// TestOlderLettersAreUnwrapped checks letters that were stored before dlo unwrapped EasyNetQ
// errors. When such a letter is read again, it gets a revision with the unwrapped message, or the
// reason why the message cannot be unwrapped. Two letters must not be changed: one that is being
// sent, and one that changed while it was being read.
func TestOlderLettersAreUnwrapped(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	ctx := context.Background()
	stored := receive(t, s, window(t, 1, "sms", 4)).New
	classify(t, s, deadletter.ClassifiedRetry, c.now())
	due, err := s.ClaimDue(ctx, "main", c.now(), 1, deadletter.Allowance{
		Allow: func(deadletter.Origin, string) (int, bool) { return 1, false },
	})
	if err != nil || len(due) != 1 {
		t.Fatal(due, err)
	}
	c.at = c.at.Add(time.Second)
	if err := s.Reread(ctx, deadletter.Reread{Why: "a new version", Types: []string{"acme.T"}}); err != nil {
		t.Fatal(err)
	}
	var list []deadletter.Read
	for i, l := range nextUnread(t, s, 10) {
		r := deadletter.Read{AsOf: l.ChangedAt, Classified: deadletter.Classified{
			Letter:       l.ID,
			Type:         "acme.T",
			Reading:      deadletter.ReadByMatch,
			GroupKey:     [32]byte{1},
			GroupTitle:   "g",
			GroupVersion: 1,
			Reason:       l.Reason,
			Error:        l.Error,
			Severity:     l.Severity,
			Unwrapped: &deadletter.Revision{
				Letter: l.ID, Number: 1, Properties: l.Properties, Body: []byte("the message"), By: "dlo",
				Changes: "unwrapped",
			},
		}}
		switch i {
		case 2:
			r.Unwrapped, r.Unpublishable = nil, "it is wrapped too often"
		case 3:
			r.AsOf = r.AsOf.Add(-time.Second)
		}
		list = append(list, r)
	}
	if len(list) != 4 {
		t.Fatalf("%d letters are read again", len(list))
	}
	if err := s.Read(ctx, list); err != nil {
		t.Fatal(err)
	}
	for i, r := range list {
		l := letter(t, s, r.Letter)
		_, body := l.Current()
		serial, _, _ := l.ID.Split()
		var unpublishable string
		if err := s.Reader().QueryRow(
			`SELECT unpublishable FROM letters WHERE id = $1`, serial,
		).Scan(&unpublishable); err != nil {
			t.Fatal(err)
		}
		unwrapped, why := i != 2 && i != 3 && l.ID != due[0].Letter.ID, ""
		if i == 2 {
			why = "it is wrapped too often"
		}
		if (l.Revision == 1 && string(body) == "the message") != unwrapped || l.Revision > 0 && !unwrapped ||
			unpublishable != why {
			t.Errorf(
				"letter %d, %s: revision %d, it is sent as %q, or not as %q", i, l.State, l.Revision, body,
				unpublishable,
			)
		}
	}
	if len(stored) != len(list) || list[0].Letter != due[0].Letter.ID && list[1].Letter != due[0].Letter.ID {
		t.Errorf("what is being sent was not read again")
	}
}
