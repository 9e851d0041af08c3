package store_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestPropertiesThatCannotBeReadStopNoOtherLetter checks that a letter with unreadable properties
// is classified, shown and claimed together with other letters. After that, the letter is reported
// as unpublishable, with the reason.
func TestPropertiesThatCannotBeReadStopNoOtherLetter(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	ids := receive(t, s, window(t, 1, "sms", 3)).New
	serial, _, _ := ids[1].Split()
	for _, statement := range []string{
		`DROP TRIGGER IF EXISTS bodies_immutable`,
		fmt.Sprintf(`UPDATE bodies SET properties = x'ffff01' WHERE letter = %d`, serial),
	} {
		if _, err := rawDB(t, s.Path()).Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
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
	move := func(from, to int64) {
		t.Helper()
		for _, statement := range []string{
			`DROP TRIGGER IF EXISTS bodies_immutable`,
			fmt.Sprintf(`UPDATE bodies SET letter = %d WHERE letter = %d`, to, from),
		} {
			if _, err := rawDB(t, s.Path()).Exec(statement); err != nil {
				t.Fatal(err)
			}
		}
	}
	move(serial, -serial)
	defer move(-serial, serial)
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
