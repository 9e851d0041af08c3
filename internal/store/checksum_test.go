package store_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/deadletteroffice/dlo/internal/storetest"
)

// TestAFlippedBitIsNotSent flips a bit in the contents of a store's file: in segments, revisions
// and names. Each letter that is claimed afterwards must be the one that was stored, or
// must be damaged. A damaged letter must also be damaged where people read it, and cannot be
// edited. The other letters must be claimed.
func TestAFlippedBitIsNotSent(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "dlo.db")
	s, err := store.Open(ctx, path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const letters = 24
	random := rand.New(rand.NewPCG(1, 2))
	w := window(t, 1, "orders.created", letters)
	for i := range w.Arrivals {
		a := &w.Arrivals[i]
		a.Body = storetest.Noise(9000) // so there are several segments
	}
	ids := receive(t, s, w).New
	classify(t, s, deadletter.ClassifiedDead, time.Time{})
	revised := deadletter.Revision{
		Letter: ids[0], Number: 1, Body: bytes.Repeat([]byte("revised "), 50), Reason: "the amount", By: "ann",
	}
	if _, err := s.Revise(ctx, revised); err != nil {
		t.Fatal(err)
	}
	claim := func(s *store.Store) []deadletter.Due {
		t.Helper()
		op := deadletter.Operation{Action: deadletter.VerbRequeue, By: "ann"}
		if err := s.Freeze(ctx, &op, query.Selection{IDs: ids}, 0, anyPlace); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Advance(ctx, op.ID, letters, nil); err != nil {
			t.Fatal(err)
		}
		due, err := s.ClaimDue(ctx, "main", time.Now().Add(time.Hour), letters, deadletter.Allowance{})
		if err != nil {
			t.Fatal(err)
		}
		return due
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	good := contents(t, path)
	at := func(text string) (found []int) {
		for i := 0; ; {
			n := bytes.Index(good[i:], []byte(text))
			if n < 0 {
				return found
			}
			found = append(found, i+n+len(text)/2)
			i += n + 1
		}
	}
	want := map[deadletter.ID]deadletter.Due{}
	for _, d := range claim(reopen(t, good)) {
		want[d.Letter.ID] = d
	}
	var segments [][]byte
	rows, err := rawDB(t, path).Query(`SELECT data FROM segments`)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var data []byte
		if err := rows.Scan(&data); err != nil {
			t.Fatal(err)
		}
		segments = append(segments, data)
	}
	if err := rows.Err(); err != nil || len(segments) < 3 {
		t.Fatal(len(segments), err)
	}
	var places []int
	for len(places) < 20 {
		data := segments[random.IntN(len(segments))]
		from := random.IntN(len(data) - 16)
		places = append(places, at(string(data[from:from+16]))...) // none if a page ends there
	}
	places = append(places, append(at("revised revised")[:2], at("orders.created")...)...)
	damaged := 0
	for _, place := range places {
		broken := bytes.Clone(good)
		broken[place] ^= 1 << random.IntN(8)
		s := reopen(t, broken)
		read := map[deadletter.ID]string{}
		for _, id := range ids {
			l, err := s.Letter(ctx, id)
			if err != nil {
				t.Fatal(err)
			}
			edit := deadletter.Revision{Letter: id, Number: l.Revision + 1, Body: []byte("edited"), By: "ann"}
			if read[id] = l.Damage; strings.Contains(l.Damage, "body") || strings.Contains(l.Damage, "revision") {
				if _, err := s.Revise(ctx, edit); !errors.Is(err, deadletter.ErrConflict) ||
					!strings.Contains(err.Error(), "damaged") {
					t.Errorf("byte %d: an edit of a damaged letter: %v", place, err)
				}
			}
		}
		due := claim(s)
		if len(due) != letters {
			t.Errorf("byte %d: %d letters are claimed", place, len(due))
		}
		for _, d := range due {
			w := want[d.Letter.ID]
			if d.Letter.Damage == "" {
				if strings.Contains(read[d.Letter.ID], "body") {
					t.Errorf("byte %d: people read a damaged letter", place)
				}
				if diff := cmp.Diff(w.Letter.Body, d.Letter.Body) + cmp.Diff(
					w.Letter.Properties, d.Letter.Properties,
				) + cmp.Diff(w.Attempt.Queue, d.Attempt.Queue); diff != "" {
					t.Errorf("byte %d: another letter is sent: %s", place, diff)
				}
				continue
			}
			damaged++
			if read[d.Letter.ID] == "" {
				t.Errorf("byte %d: people read an intact letter", place)
			}
		}
		s.Close()
	}
	if damaged < letters+20 { // a changed name of the queue damages all letters
		t.Errorf("%d flips, and %d letters are damaged", len(places), damaged)
	}
}

// reopen opens a store that has the given file.
func reopen(t *testing.T, file []byte) *store.Store {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dlo.db")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// TestOldNamesGetChecksums removes the checksums of names, as if an older dlo had stored them.
func TestOldNamesGetChecksums(t *testing.T) {
	t.Parallel()
	path := filledStore(t)
	db := rawDB(t, path)
	for _, table := range []string{"origins", "inboxes", "types"} {
		if _, err := db.Exec(`UPDATE ` + table + ` SET checksum = NULL`); err != nil {
			t.Fatal(err)
		}
	}
	db.Close()
	s := reopen(t, contents(t, path))
	var unchecked int
	if err := rawDB(t, s.Path()).QueryRow(`SELECT (SELECT count(*) FROM origins WHERE checksum IS NULL) +
		(SELECT count(*) FROM inboxes WHERE checksum IS NULL) + (SELECT count(*) FROM types
		WHERE checksum IS NULL)`).Scan(&unchecked); err != nil || unchecked != 0 {
		t.Errorf("%d rows have no checksum, %v", unchecked, err)
	}
}
