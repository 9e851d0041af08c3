package store_test

import (
	"context"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/storetest"
)

// onTheWayBack contains the names of three fields that lists show for a letter. They are set when
// the letter is sent or comes back, and not by a verdict.
var onTheWayBack = []string{"Attempts", "WaitsIn", "Unverified"}

// TestALetterIsListedWhole stores a letter and a verdict in which all fields have values. If a list
// then shows the letter, all fields of the list's entry must have values. The complete letter must
// have the same values as this entry.
func TestALetterIsListedWhole(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	ids := receive(t, s, window(t, 1, "sms", 1)).New
	v := storetest.Filled[deadletter.Classified]()
	v.Letter, v.To, v.Annotation, v.Tried = ids[0], deadletter.ClassifiedRetry, 0, false
	if err := s.Classify(context.Background(), []deadletter.Classified{v}); err != nil {
		t.Fatal(err)
	}
	rows, err := s.Rows(context.Background(), ids)
	if err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}
	for field, value := range reflect.ValueOf(rows[0]).Fields() {
		if value.IsZero() && !slices.Contains(onTheWayBack, field.Name) {
			t.Errorf("%s is lost", field.Name)
		}
	}
	l := letter(t, s, ids[0])
	if diff := cmp.Diff(rows[0], l.Row); diff != "" {
		t.Errorf("the letter is not what the list shows (-list +letter):\n%s", diff)
	}
}
