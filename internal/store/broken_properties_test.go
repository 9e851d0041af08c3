package store_test

import (
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/segment"
	"github.com/deadletteroffice/dlo/internal/storetest"
)

// TestPropertiesThatCannotBeReadStopNoOtherLetter checks that a letter with unreadable properties
// is classified, shown and claimed together with other letters. After that, the letter is reported
// as unpublishable, with the reason.
func TestPropertiesThatCannotBeReadStopNoOtherLetter(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	ids := receive(t, s, window(t, 1, "sms", 3)).New
	serial, _, _ := ids[1].Split()
	storetest.Change(t, rawDB(t, s.Path()), serial, func(m *segment.Message) bool {
		m.Properties = []byte{0xff, 0xff, 0x01}
		return true
	})
	classify(t, s, deadletter.ClassifiedRetry, c.now())
	due, err := s.ClaimDue(t.Context(), "main", c.now(), 10, deadletter.Allowance{
		Allow: func(deadletter.Origin, string) (int, bool) { return 10, false },
	})
	if err != nil {
		t.Fatal(err)
	}
	claimed := map[deadletter.ID]bool{}
	for _, d := range due {
		claimed[d.Letter.ID] = true
	}
	if !claimed[ids[0]] || !claimed[ids[2]] {
		t.Errorf("the good letters are not claimed: %v", claimed)
	}
	l, err := s.Letter(t.Context(), ids[1])
	if err != nil {
		t.Fatal(err)
	}
	clean, _ := deadletter.Sanitise(l.Properties)
	if err := deadletter.Publishable(clean); err == nil || !strings.Contains(err.Error(), deadletter.HeaderUnread) {
		t.Errorf("it may be sent: %v", err)
	}
}

// TestALetterWithoutContentsIsNotSentEmpty checks that a letter whose contents are missing is
// claimed together with other letters. After that, the letter is reported as unpublishable, with
// the reason.
func TestALetterWithoutContentsIsNotSentEmpty(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	ids := receive(t, s, window(t, 1, "sms", 3)).New
	classify(t, s, deadletter.ClassifiedRetry, c.now())
	serial, _, _ := ids[1].Split()
	db := rawDB(t, s.Path())
	whole := 0
	var data []byte
	if err := db.QueryRow(`SELECT size, data FROM segments`).Scan(&whole, &data); err != nil {
		t.Fatal(err)
	}
	storetest.Change(t, db, serial, func(*segment.Message) bool { return false })
	defer db.Exec(`UPDATE segments SET size = $1, kept = $1, data = $2`, whole, data)
	due, err := s.ClaimDue(t.Context(), "main", c.now(), 10, deadletter.Allowance{
		Allow: func(deadletter.Origin, string) (int, bool) { return 10, false },
	})
	if err != nil || len(due) != 3 {
		t.Fatalf("%d letters are claimed: %v", len(due), err)
	}
	for _, d := range due {
		clean, _ := deadletter.Sanitise(d.Letter.Properties)
		if err := deadletter.Publishable(clean); (err != nil) != (d.Letter.ID == ids[1]) {
			t.Errorf("letter %s with body %q: %v", d.Letter.ID, d.Letter.Body, err)
		}
	}
}
