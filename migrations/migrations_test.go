package migrations_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/migrations"
	_ "modernc.org/sqlite"
)

func database(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "dlo.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// schema returns every table, index and trigger with its definition.
func schema(t *testing.T, db *sql.DB) string {
	t.Helper()
	rows, err := db.Query(`SELECT type, name, coalesce(sql, '') FROM sqlite_schema ORDER BY type, name`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var b strings.Builder
	for rows.Next() {
		var kind, name, text string
		if err := rows.Scan(&kind, &name, &text); err != nil {
			t.Fatal(err)
		}
		b.WriteString(kind + " " + name + " " + text + "\n")
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestApplyTwiceIsApplyOnce(t *testing.T) {
	t.Parallel()
	db := database(t)
	ctx := context.Background()
	if err := migrations.Apply(ctx, db); err != nil {
		t.Fatal(err)
	}
	once := schema(t, db)
	if !strings.Contains(once, "table letters ") || !strings.Contains(once, "trigger events_keep ") {
		t.Fatal(once)
	}
	if err := migrations.Apply(ctx, db); err != nil {
		t.Fatal(err)
	}
	if again := schema(t, db); again != once {
		t.Errorf("applied twice:\n%s", again)
	}
}

func TestANewerSchemaIsRefused(t *testing.T) {
	t.Parallel()
	db := database(t)
	ctx := context.Background()
	if err := migrations.Apply(ctx, db); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, 1)`); err != nil {
		t.Fatal(err)
	}
	before := schema(t, db)
	err := migrations.Apply(ctx, db)
	if !errors.Is(err, migrations.ErrNewer) || !strings.Contains(err.Error(), "its schema is version 9999") {
		t.Fatal(err)
	}
	if after := schema(t, db); after != before {
		t.Errorf("changed all the same:\n%s", after)
	}
}

// A step is one transaction: where it cannot be finished, nothing of it is there.
func TestAStepThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	db := database(t)
	if _, err := db.Exec(`CREATE TABLE counters (mine)`); err != nil { // in the way of a late statement of the first step
		t.Fatal(err)
	}
	if err := migrations.Apply(context.Background(), db); err == nil {
		t.Fatal("applied over a table that was there")
	}
	if got := schema(t, db); strings.Contains(got, "table letters ") || !strings.Contains(got, "CREATE TABLE counters (mine)") {
		t.Errorf("half a step is there:\n%s", got)
	}
	if _, err := db.Exec(`DROP TABLE counters`); err != nil {
		t.Fatal(err)
	}
	if err := migrations.Apply(context.Background(), db); err != nil {
		t.Errorf("the step does not apply any more: %v", err)
	}
}

// Tables are strict, but those of the search index, which SQLite makes itself: a value of a wrong type is an error, not a surprise later.
func TestEveryTableIsStrict(t *testing.T) {
	t.Parallel()
	db := database(t)
	if err := migrations.Apply(context.Background(), db); err != nil {
		t.Fatal(err)
	}
	rows, err := db.Query(`SELECT name FROM pragma_table_list WHERE schema = 'main' AND strict = 0 AND name NOT LIKE 'sqlite_%' AND name NOT LIKE 'goose_%' AND name NOT LIKE 'words%'`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		t.Errorf("table %s is not strict", name)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}

func TestAClosedDatabaseIsAnError(t *testing.T) {
	t.Parallel()
	db := database(t)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := migrations.Apply(context.Background(), db); err == nil {
		t.Error("applied to nothing")
	}
}
