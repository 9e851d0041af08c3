package web

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/storetest"
)

// TestALetterIsAnsweredWhole checks that the CSV export contains everything that a list shows about
// a letter.
func TestALetterIsAnsweredWhole(t *testing.T) {
	t.Parallel()
	row := storetest.Filled[deadletter.Row]()
	var out bytes.Buffer
	if err := New(Options{}).exportCSV(nil, &out, []deadletter.Row{row}, true, false); err != nil {
		t.Fatal(err)
	}
	head, cells, _ := strings.Cut(out.String(), "\r\n")
	columns := strings.Split(head, ",")
	if values := strings.Split(
		strings.TrimSpace(cells), ",",
	); len(values) != len(columns) || slices.Contains(values, "") {
		t.Errorf("the CSV has %d columns and the cells %q", len(columns), values)
	}
	for field := range reflect.TypeFor[deadletter.Row]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !slices.Contains(columns, name) && name != "waits_in" && name != "unverified" {
			t.Errorf("the CSV has no column %s", name)
		}
	}
}
