package store

import (
	"database/sql"
	"testing"
	"time"
)

// TestNothingOfOneRowIsReadIntoTheNext reads all rows into the same struct, and checks that no
// value of a row remains when the next row is read.
func TestNothingOfOneRowIsReadIntoTheNext(t *testing.T) {
	t.Parallel()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var got struct {
		at   time.Time
		wait time.Duration
		text sql.NullString
		body []byte
	}
	wanted := columns{{`at`, instant{&got.at}}, {`wait`, lasting{&got.wait}}, {`text`, &got.text}, {`body`, &got.body}}
	rows, err := db.QueryContext(t.Context(), `SELECT `+wanted.list()+` FROM
		(SELECT 1500 AS at, 2500 AS wait, 'a' AS text, x'01' AS body UNION ALL SELECT NULL, 0, NULL, NULL UNION ALL
		SELECT 0, 7, '', x'02')`)
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		at   string
		wait time.Duration
		text sql.NullString
		body string
	}
	var list []row
	var bodies [][]byte
	if err := wanted.scan(rows, func() error {
		list, bodies = append(list, row{
			got.at.Format(time.RFC3339Nano), got.wait, got.text, string(got.body),
		}), append(bodies, got.body)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	want := []row{
		{"1970-01-01T00:00:01.5Z", 2500 * time.Millisecond, sql.NullString{String: "a", Valid: true}, "\x01"},
		{"0001-01-01T00:00:00Z", 0, sql.NullString{}, ""},
		{"1970-01-01T00:00:00Z", 7 * time.Millisecond, sql.NullString{Valid: true}, "\x02"},
	}
	for i := range want {
		if list[i] != want[i] || string(bodies[i]) != want[i].body {
			t.Errorf("row %d is %+v, with the body %q later; want %+v", i, list[i], bodies[i], want[i])
		}
	}
}

// TestWhatIsNoTimeIsAnError covers a database value that is not a number of milliseconds. The store
// must not read it as a time or a duration.
func TestWhatIsNoTimeIsAnError(t *testing.T) {
	t.Parallel()
	var at time.Time
	var wait time.Duration
	for _, value := range []any{"2026-11-20", 1.5, []byte("1")} {
		if (instant{&at}).Scan(value) == nil {
			t.Errorf("%v was read as a time", value)
		}
		if (lasting{&wait}).Scan(value) == nil {
			t.Errorf("%v was read as a duration", value)
		}
	}
}
