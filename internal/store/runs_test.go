package store_test

import (
	"cmp"
	"context"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestTheOnlyTypeOfAQueue checks which queues have a single type: those in which at least 20
// letters were decoded and all have this type, and those in which the last 200 letters have this
// type. It also checks how fields that the type does not declare are counted. If a newer schema
// declares such a field, letters that are read again with this schema must no longer count.
func TestTheOnlyTypeOfAQueue(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	ctx := context.Background()
	sms := deadletter.Origin{Broker: "main", VHost: "/", Queue: "sms"}
	classify := func(
		typ string, reading deadletter.Reading, n int, fields ...deadletter.AddedField,
	) []deadletter.Letter {
		t.Helper()
		receive(t, s, window(t, 1, "sms", n))
		letters, err := s.NextReceived(ctx, n)
		if err != nil || len(letters) != n {
			t.Fatalf("%d letters, %v", len(letters), err)
		}
		var list []deadletter.Classified
		for _, l := range letters {
			list = append(list, deadletter.Classified{
				Letter: l.ID, To: deadletter.ClassifiedDead, Reading: reading, Type: typ, Origin: sms, GroupVersion: 1,
				Added: fields,
			})
		}
		if err := s.Classify(ctx, list); err != nil {
			t.Fatal(err)
		}
		return letters
	}
	is := func(when, want string) {
		t.Helper()
		if got, err := s.OnlyType(ctx, sms); got != want || err != nil {
			t.Errorf("%s: %q, %v; want %q", when, got, err, want)
		}
	}
	is("at first", "")
	classify("acme.A", deadletter.ReadByMatch, 19)
	is("after 19 letters", "")
	classify("", deadletter.ReadUnknown, 5)
	classify("acme.A", deadletter.ReadByProperty, 1)
	is("after 20 letters, and others that no schema reads", "acme.A")
	classify("acme.B", deadletter.ReadByMatch, 1)
	is("after one of another type", "")
	classify("acme.A", deadletter.ReadByMatch, 199)
	is("199 letters later", "")
	field := deadletter.AddedField{Number: 17, Wire: "varint"}
	newer := classify("acme.A", deadletter.ReadByMatch, 2, field, deadletter.AddedField{Number: 18, Wire: "fixed32"})
	is("200 letters later", "acme.A")

	added := func(when string, want ...int) {
		t.Helper()
		got, err := s.AddedFields(ctx, 10)
		if err != nil || len(got) != len(want) {
			t.Fatalf("%s: %+v, %v", when, got, err)
		}
		for i, c := range got {
			if c.Letters != want[i] || c.Queue != "sms" || c.Type != "acme.A" || c.Number != int32(17+i) ||
				c.Since.IsZero() {
				t.Errorf("%s: %+v, want %d letters", when, c, want[i])
			}
		}
	}
	added("two letters", 2, 2)
	l := letter(t, s, newer[0].ID)
	again := deadletter.Classified{
		Letter:       l.ID,
		Reading:      deadletter.ReadByMatch,
		Type:         "acme.A",
		Origin:       sms,
		GroupVersion: 1,
		Added:        []deadletter.AddedField{field},
	}
	if err := s.Read(ctx, []deadletter.Read{{AsOf: l.ChangedAt, Classified: again}}); err != nil {
		t.Fatal(err)
	}
	added("one was read with a newer set", 2, 1)
	operate(t, s, deadletter.VerbPurge, newer[1].ID)
	added("and one is purged", 1)

	// The letters of the queue "email" are stored before there is a schema. When a schema is added,
	// these letters are read again, and then count immediately for the type of their queue.
	sms = deadletter.Origin{Broker: "main", VHost: "/", Queue: "email"}
	classify("", deadletter.ReadUnknown, 21)
	is("before there is a schema", "")
	if err := s.Reread(ctx, deadletter.Reread{Why: "set acme", Types: []string{"acme.C"}}); err != nil {
		t.Fatal(err)
	}
	newest := deadletter.ID("")
	look := func(when string, want int) {
		t.Helper()
		var list []deadletter.Read
		for _, l := range nextUnread(t, s, 30) {
			now := deadletter.Classified{
				Letter: l.ID, Reading: deadletter.ReadUnknown, Origin: l.Origin(), GroupVersion: 1,
			}
			if l.Origin() == sms {
				if newest = cmp.Or(newest, l.ID); l.ID != newest {
					now.Type, now.Reading = "acme.C", deadletter.ReadByMatch
				}
			}
			list = append(list, deadletter.Read{AsOf: l.ChangedAt, Classified: now})
		}
		if len(list) != want {
			t.Errorf("%s: %d letters are read, want %d", when, len(list), want)
		}
		if err := s.Read(ctx, list); err != nil {
			t.Fatal(err)
		}
	}
	look("a schema came, and all letters without a type are read", 21+5)
	is("once it reads all but one of them", "acme.C")
	look("the queue has an only type", 1)
	look("there is nothing more to know", 0)
}
