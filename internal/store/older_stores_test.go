package store_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/store"
)

// fixtureVariable names the version for which TestStoresOfEachVersion writes a fixture, as SQL.
// Each release adds one:
//
//	DLO_FIXTURE=v1.2.0 go test ./internal/store -run TestStoresOfEachVersion
const fixtureVariable = "DLO_FIXTURE"

const fixtures = "testdata/stores"

// TestStoresOfEachVersion opens the store of each version of dlo that people may have. There is a
// backup from before the migration, every letter can be read, and every count is right.
func TestStoresOfEachVersion(t *testing.T) {
	t.Parallel()
	if version := os.Getenv(fixtureVariable); version != "" {
		writeFixture(t, filepath.Join(fixtures, version+".sql"))
	}
	files, err := filepath.Glob(filepath.Join(fixtures, "*.sql"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			path := loadFixture(t, file)
			old := openCopy(t, path)
			_, err := old.Check(t.Context(), true)
			none := func(*deadletter.Letter) error { return nil }
			if err = errors.Join(err, old.Sample(t.Context(), 0, none)); err != nil {
				t.Error("it cannot be checked without a migration:", err)
			}
			s, err := store.Open(t.Context(), path, store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			for _, breach := range breaches(t, s.Reader()) {
				t.Error(breach)
			}
			copied := filepath.Join(t.TempDir(), "copy.db")
			if err := store.Copy(t.Context(), path, copied); err != nil {
				t.Fatal(err)
			}
			c := openCopy(t, copied)
			read := 0
			if err := c.Sample(t.Context(), 0, func(l *deadletter.Letter) error {
				if read++; l.Damage != "" || len(l.Body) == 0 && l.State != deadletter.StatePurged {
					t.Errorf("letter %s, %s: %q %s", l.ID, l.State, l.Body, l.Damage)
				}
				return nil
			}); err != nil || read < 10 {
				t.Errorf("%d letters: %v", read, err)
			}
			if _, err := c.Check(t.Context(), true); err != nil {
				t.Error(err)
			}
			backups, err := filepath.Glob(path + ".before-schema-*")
			if err != nil || len(backups) > 1 {
				t.Fatal(backups, err)
			}
			for _, backup := range backups {
				if b, err := openCopy(t, backup).Check(t.Context(), false); err != nil || b.Total() != read {
					t.Errorf("%s: %+v %v", backup, b, err)
				}
			}
		})
	}
}

// loadFixture creates a store from its SQL.
func loadFixture(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "dlo.db")
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec(string(text)); err != nil {
		t.Fatal(err)
	}
	return path
}

// writeFixture writes the SQL of a store in which letters have each state.
func writeFixture(t *testing.T, file string) {
	t.Helper()
	c := &clock{time.Date(2026, 11, 28, 8, 0, 0, 0, time.UTC)}
	s := openNew(t, c)
	dead := receive(t, s, window(t, 1, "sms", 6)).New
	classify(t, s, deadletter.ClassifiedDead, time.Time{})
	receive(t, s, window(t, 2, "email", 5))
	classify(t, s, deadletter.ClassifiedRetry, c.at.Add(time.Second))
	c.at = c.at.Add(2 * time.Second)
	due := claim(t, s, c)
	mark(t, s, c, deadletter.OutcomeConfirmed, due[:2]...)
	mark(t, s, c, deadletter.OutcomeNacked, due[2])
	mark(t, s, c, deadletter.OutcomeReturned, due[3])
	operate(t, s, deadletter.VerbDiscard, dead[0])
	operate(t, s, deadletter.VerbPurge, dead[1])
	requeue(t, s, c, dead[2], dead[3])
	receive(t, s, window(t, 3, "billing", 2))
	path := filepath.Join(t.TempDir(), "copy.db")
	if err := store.Copy(t.Context(), s.Path(), path); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if err := os.WriteFile(file, []byte(dump(t, path)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// dump returns the SQL that creates a database: the tables with their rows, and then the rest of
// the schema.
func dump(t *testing.T, path string) string {
	t.Helper()
	db := rawDB(t, path)
	var b strings.Builder
	b.WriteString("PRAGMA foreign_keys = OFF;\nBEGIN;\nPRAGMA writable_schema = ON;\n")
	query := func(text string, each func(...string)) {
		t.Helper()
		rows, err := db.Query(text)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		columns, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			values, into := make([]string, len(columns)), make([]any, len(columns))
			for i := range values {
				into[i] = &values[i]
			}
			if err := rows.Scan(into...); err != nil {
				t.Fatal(err)
			}
			each(values...)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
	}
	query(`SELECT name, sql FROM sqlite_schema WHERE type = 'table' ORDER BY rowid`, func(row ...string) {
		name, create := row[0], row[1]
		if strings.HasPrefix(create, "CREATE VIRTUAL") {
			fmt.Fprintf(&b, "INSERT INTO sqlite_schema VALUES ('table', '%s', '%[1]s', 0, '%s');\n",
				name, strings.ReplaceAll(create, "'", "''"))
			return
		}
		if name != "sqlite_sequence" {
			b.WriteString(create + ";\n")
		}
		var quoted []string
		query(`SELECT name FROM pragma_table_info('`+name+`')`, func(row ...string) {
			quoted = append(quoted, `quote("`+row[0]+`")`)
		})
		query(`SELECT `+strings.Join(quoted, `||','||`)+` FROM "`+name+`"`, func(row ...string) {
			fmt.Fprintf(&b, "INSERT INTO %q VALUES (%s);\n", name, row[0])
		})
	})
	query(`SELECT sql FROM sqlite_schema WHERE type <> 'table' AND sql IS NOT NULL ORDER BY rowid`, func(row ...string) {
		b.WriteString(row[0] + ";\n")
	})
	b.WriteString("PRAGMA writable_schema = OFF;\nCOMMIT;\n")
	return b.String()
}
