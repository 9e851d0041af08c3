package store_test

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/storetest"
)

// TestWhatAPurgeLeavesInSegments purges letters whose messages share segments. What a person purges
// must leave the file at once. What retention purges may stay until half of its segment is purged.
// The other letters must keep their messages.
func TestWhatAPurgeLeavesInSegments(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	bodies := map[deadletter.ID][]byte{}
	var ids []deadletter.ID
	for n := range int64(3) {
		w := window(t, n+1, "sms", 12)
		for i := range w.Arrivals {
			w.Arrivals[i].Body = storetest.Noise(9000) // cannot be compressed, so the file has these bytes
		}
		new := receive(t, s, w).New
		for i, id := range new {
			bodies[id] = w.Arrivals[i].Body
		}
		ids = append(ids, new...)
		c.at = c.at.Add(time.Hour)
	}
	classify(t, s, deadletter.ClassifiedDead, time.Time{})
	segments := func() (n int) {
		t.Helper()
		if err := s.Reader().QueryRow(`SELECT count(*) FROM segments`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := segments(); n != 6 { // of seven and five letters
		t.Fatal(n)
	}
	inFile := func(id deadletter.ID) bool {
		t.Helper()
		if err := s.Writer(t.Context(), `PRAGMA wal_checkpoint(TRUNCATE)`); err != nil {
			t.Fatal(err)
		}
		return bytes.Contains(contents(t, s.Path()), bodies[id][1000:1050])
	}
	operate(t, s, deadletter.VerbPurge, ids[1], ids[30])
	for _, id := range []deadletter.ID{ids[1], ids[30]} {
		if inFile(id) {
			t.Error("the file has the body of a letter that a person purged")
		}
	}
	if n, err := s.Expire(t.Context(), deadletter.StateDead, c.at.Add(time.Minute), 2); err != nil || n != 2 {
		t.Fatal(n, err)
	}
	if !inFile(ids[0]) {
		t.Error("a segment was stored again for each letter that retention purged")
	}
	if n, err := s.Expire(t.Context(), deadletter.StateDead, c.at.Add(time.Minute), 10); err != nil || n != 10 {
		t.Fatal(n, err)
	}
	for i, id := range ids {
		l, err := s.Letter(t.Context(), id)
		gone := i <= 12 || i == 30
		if err != nil || l.Damage != "" || (l.State == deadletter.StatePurged) != gone ||
			!gone && !bytes.Equal(l.Body, bodies[id]) || gone && len(l.Body)+len(l.Properties.Headers) > 0 {
			t.Errorf("letter %d, %s: %d bytes, %s %v", i, l.State, len(l.Body), l.Damage, err)
		}
		if i != 12 && inFile(id) == gone { // 12 is the only letter of its segment that is purged
			t.Errorf("letter %d: in the file although it is %s, or not", i, l.State)
		}
	}
	if n := segments(); n != 4 {
		t.Errorf("%d segments", n)
	}
	operate(t, s, deadletter.VerbPurge, ids...)
	if n := segments(); n != 0 {
		t.Errorf("%d segments are left of no letters", n)
	}
}

// TestLettersAreReadAtTheSameTime reads letters with a revision by more callers than there are
// connections.
func TestLettersAreReadAtTheSameTime(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	id := receive(t, s, window(t, 1, "sms", 1)).New[0]
	classify(t, s, deadletter.ClassifiedDead, time.Time{})
	if _, err := s.Revise(t.Context(), deadletter.Revision{Letter: id, Number: 1, Body: []byte("x"), By: "ann"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var callers sync.WaitGroup
	for range 16 {
		callers.Go(func() {
			for range 50 {
				if _, err := s.Letter(ctx, id); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	callers.Wait()
}
