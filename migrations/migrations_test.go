package migrations_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"os"
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

// schema returns all tables, indexes and triggers with their definitions.
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

// sums are the SHA-256 sums of all migrations. A new migration adds a line. The line of a released
// migration never changes; otherwise stores that have run it would differ from new ones.
var sums = map[string]string{
	"0001_store.sql":           "193d58fc87d111ec740245e34805baf898dc212db744d06d0f0c4e98d5aafd59",
	"0002_operations.sql":      "e2650b8ed4835ba9f55579b20aa68a52bcdacc29bc2a8b50e91df2a76e497071",
	"0003_retries.sql":         "a94f030efa50f22733a0d199a661f8e64be6a02302708cf1f386a9e9390c0a65",
	"0004_payloads.sql":        "fd8a2079f20b31e67f9c9e565db2195e2257b64e957cbd53654189a81f1e5191",
	"0005_annotations.sql":     "11285882ad0fdc296e6f0d8372d0ef492352038e4026fb7bd1107e5b5336ba55",
	"0006_groups.sql":          "4fe33647191e64551f031b781aa281805f709815c38bdea02a0de5d8f954303e",
	"0007_triage.sql":          "4213860bac55c4318c2a9a0f214c8435e70d8ac2c9cc8caee656d761a9c1abb2",
	"0008_looks.sql":           "57965bc4042be81a9f48629ddbde38bea7d68ec5fe2cc2e18c46533854d0bb21",
	"0009_group_breakers.sql":  "64df640c192a12e39b38e6737c87af4916eacc3eb4d277633281bdb4db2b9844",
	"0010_told.sql":            "44468d6c0ddbc6a61134fd7ca26e955cbefcd83d79fbe409da1f9687cc4a3677",
	"0011_at_stake.sql":        "16415e28827f60a8cc77178928f788605b40ff6c3d02bc31b15a477c35d369f3",
	"0012_doubts.sql":          "4f12a0a5b2e8a791bbf85e01019336fe90d88c77f6ceb90dc99864f688529233",
	"0013_progress.sql":        "801d6ea886a4656358f770221a85be0f2ba80e39224ffa338df18c0877e8c298",
	"0014_returned_body.sql":   "3c45e3c62bf40333a70b0aaeefbb1a844f8f8bcb1ed495fd2586d48b860691c9",
	"0015_added_fields.sql":    "771556ca53ec76c8875cb53e5d3b926462dbcb777efe06b4fba69bae23dd4bcc",
	"0016_pulse.sql":           "be4623ad5a0a4e46281620b24d7325c487c162bd89fab06b8bb386ab1f773aab",
	"0017_before.sql":          "aef7a3c497da93b93d9ba0c2c829d85dfc0c2e677f7fd59fdb5757fca30e233b",
	"0018_acts.sql":            "7c861c7ede27549d8aba131ac87898db070b72a3a4d98bb375814ef6fe324c7d",
	"0019_incidents.sql":       "f67ece77aa8fc57d3041ddc4dcd071383e9c5e37f70b52c7446a6616355f2a25",
	"0021_operation_first.sql": "fa2c5a185a0187fe4d1d5d7bccec90e12a8da7f5b0c03880d6af0f188b6f1c97",
	"0020_trials.sql":          "e32e55681a8e09a97889ae93684e982a8659c4a891e9f8da410e20db85bba73b",
}

// TestNoMigrationChanges checks the sums of the migrations, and that their versions are 1 to N.
func TestNoMigrationChanges(t *testing.T) {
	t.Parallel()
	files, err := os.ReadDir("sqlite")
	if err != nil {
		t.Fatal(err)
	}
	for i, file := range files {
		name := file.Name()
		text, err := os.ReadFile("sqlite/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(name, fmt.Sprintf("%04d_", i+1)) {
			t.Errorf("%s is migration %d: the versions are 1 to N, each once", name, i+1)
		}
		switch sum := fmt.Sprintf("%x", sha256.Sum256(text)); sums[name] {
		case sum:
		case "":
			t.Errorf("%s is new: add it to sums with %s", name, sum)
		default:
			t.Errorf("%s has changed, and a store that has run it does not run it again: take the change back and write a new migration. "+
				"If no release has this one, write its new sum here: %s", name, sum)
		}
	}
	if len(files) < len(sums) {
		t.Errorf("%d migrations of %d are there", len(files), len(sums))
	}
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

// A step is one transaction. If it fails, nothing of it remains.
func TestAStepThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	db := database(t)
	if _, err := db.Exec(`CREATE TABLE counters (mine)`); err != nil { // conflicts with a late statement of the first step
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

// All tables are strict, except those of the search index, which SQLite creates itself. A value of
// the wrong type is an error, not a surprise later.
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
