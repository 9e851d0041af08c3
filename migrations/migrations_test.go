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

// schema returns all tables, indexes and triggers of a database with their definitions.
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

// sums contains the SHA-256 sums of all migrations. A new migration adds a line. The line of a
// released migration must never change, because otherwise stores in which the migration has run
// would differ from new stores.
var sums = map[string]string{
	"0001_store.sql":           "49de39e58127e928a5b6c34b51f7902bc8bc9bdbe42d4df6c8777b4a939d5912",
	"0002_operations.sql":      "7e47ff61cf2bdc486489da7aaac56eb1a9251dd6b702c9102fd151e058d130c4",
	"0003_retries.sql":         "7b88880eb23f980cc6db204b1a660c7a58cb10042f5b534073af158674cbfe13",
	"0004_payloads.sql":        "d381f4bb8bc190faefbfc80796b27e77f28f61d8f9181c0d3a423b6febf6fe10",
	"0005_annotations.sql":     "41daa73a0be375975d3e678febcc7f416aa48818692a57af01fc040b60889215",
	"0006_groups.sql":          "254ac09b0d2a6a0eba87aa78407dc9c5985111734b6d6828866292908d6c52aa",
	"0007_triage.sql":          "7ba4eb8a8cb7b7cc128bf9898774492048624bf6ddabf0c144bcfbdc5b2b7630",
	"0008_looks.sql":           "3970e7fecd63fa560c20eab8d728fd65b25bd8a3adcd18f35126b6eed24d0f01",
	"0009_group_breakers.sql":  "2c4a3e46741a980f85cea2a8149abc16f9838c978e6ce7316696da4ebaf13fc5",
	"0010_told.sql":            "17b5dea815030bf1373ce75ec341b8afd12ec29aae7763595d1e508b4e5d5124",
	"0011_at_stake.sql":        "7f99dd45dab82c4483e0a9e27cfc15afb629280d893384b8b85bfdecb8bf9df2",
	"0012_doubts.sql":          "13345fcce7aab3b9dc72220934bfe486ced0b81b0526d7928faba8f75211c701",
	"0013_progress.sql":        "3e26f331d803d418f75b8c7a4e0cbe1e6e1958fab009a4430f4f70ffc84393a7",
	"0014_returned_body.sql":   "a439ce734aa848973d9beb6f2e92b4c3a1b57dfa11aa2585ec515a055813664b",
	"0015_added_fields.sql":    "ae61b25da7266b2d3dcdeb6909f567483a115eaa34f89e473d3de91052efc852",
	"0016_pulse.sql":           "ff12a4b83c243204836d2dd63aa89cdfcb5c267761b54d51181ffd81922f0fbe",
	"0017_before.sql":          "6aff4c65239dad94ca8046e44ef39df484fbddada9726b9844d7ba3538744554",
	"0018_acts.sql":            "1484545acf1869fa8605b6e17c3495fef493de77127be386d76ba7b0fcd960b2",
	"0019_incidents.sql":       "4c8c2f7b09bfdab1c744a7c06971012a8a06dc7d4c2b356dffc234fc8039fc9b",
	"0024_users.sql":           "1e81867b644a87eda59c54be5b907c18285968067e0fd8f527539c9d839314d1",
	"0026_resend_at.sql":       "995c0afb91fd9a243235d80700a3a482782cec1a7ea096fdff8e21bd5d36b877",
	"0028_unknown_origins.sql": "b60660da4c480ef3be090d0c0fd93f3be56357e0f8fee6ba7008d54e2fff84dc",
	"0029_token_networks.sql":  "1b282e7dee7ff9a54a8b940ca390cad2bceb2994ded65ba4fd7a925132b3370f",
	"0030_inbox_delay.sql":     "802b03698e76286410478c3583f23448eb25100baba58e2d58e0425a52590425",
	"0031_checksums.sql":       "6e03cc95f66873eaf2b80c64ea0d505961855dad518ece095c6ee3f95373e703",
	"0033_late.sql":            "b2bff04bcfa9a2b8e5767ca3d2af5443e6a3f40a82d8ab97fb9e1c955728ef61",
	"0035_canary.sql":          "825b00cfe3c0e2c6c879a140797866bc07d6120d6fe7e17f4957e26ac72ff413",
	"0036_pick_path.sql":       "63e421821177370a636dd2badf482ce2fb547bd863e73063df418a5c7ef1f5b0",
	"0037_segments.sql":        "7a88a2e16f2874e11ce5f40c299c33a304a053c276adbadcf94d0fc2552a40b1",
	"0034_back.sql":            "9546598cae572dda7f3e0990462c3a81e72250679eff1d0c14557ea368de9d59",
	"0032_rereads_hide.sql":    "b7b44dd0cbb3420d25198ec23dbad5b1a4cb3a56a6834209d85b6e8601d2bd6f",
	"0027_note_by.sql":         "d5050cb089f2614d7e8fea3d322ebf80001f4a3452270455c6064851dd2ce486",
	"0025_scope.sql":           "ed3212e18b435009b0226ad130b4ee364af5849aad682016b88315e4023d0086",
	"0023_access.sql":          "6e23061c40ee227c84eeee57f06abafd159a032f3f1a35d4c913f22f6f4b174c",
	"0022_declared.sql":        "60df1d7446a039cea8bba41a627f6ff97716852886c0364402f14e0bd35cf6e9",
	"0021_operation_first.sql": "8de241ab95e91a518aea5dd463ce3cfa30ef89dd22c5d5b57c6eda874466881b",
	"0020_trials.sql":          "482fde8a0ddae8021a8dd7a90c7cf31dbf47c6fea00987051c25d177ccffa4ad",
}

// TestNoMigrationChanges checks the sums of the migrations. It also checks that their versions are
// 1 to N, without gaps.
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
	if err := migrations.Apply(ctx, db, nil); err != nil {
		t.Fatal(err)
	}
	once := schema(t, db)
	if !strings.Contains(once, "table letters ") || !strings.Contains(once, "trigger events_keep ") {
		t.Fatal(once)
	}
	if err := migrations.Apply(ctx, db, nil); err != nil {
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
	if err := migrations.Apply(ctx, db, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, 1)`); err != nil {
		t.Fatal(err)
	}
	before := schema(t, db)
	err := migrations.Apply(ctx, db, nil)
	if !errors.Is(err, migrations.ErrNewer) || !strings.Contains(err.Error(), "its schema is version 9999") {
		t.Fatal(err)
	}
	if after := schema(t, db); after != before {
		t.Errorf("changed all the same:\n%s", after)
	}
}

// TestAStepThatFailsLeavesNothing checks that each step of the migrations is one transaction. If a
// statement of a step fails, the statements before it must have no effect.
func TestAStepThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	db := database(t)
	// one of the last statements of the first step fails because of this table
	if _, err := db.Exec(`CREATE TABLE counters (mine)`); err != nil {
		t.Fatal(err)
	}
	if err := migrations.Apply(context.Background(), db, nil); err == nil {
		t.Fatal("applied over a table that was there")
	}
	if got := schema(t, db); strings.Contains(got, "table letters ") ||
		!strings.Contains(got, "CREATE TABLE counters (mine)") {
		t.Errorf("half a step is there:\n%s", got)
	}
	if _, err := db.Exec(`DROP TABLE counters`); err != nil {
		t.Fatal(err)
	}
	if err := migrations.Apply(context.Background(), db, nil); err != nil {
		t.Errorf("the step does not apply any more: %v", err)
	}
}

// All tables are strict, except those of the search index, which SQLite creates itself. A value of
// the wrong type is therefore an error when it is written, and not a surprise later.
func TestEveryTableIsStrict(t *testing.T) {
	t.Parallel()
	db := database(t)
	if err := migrations.Apply(context.Background(), db, nil); err != nil {
		t.Fatal(err)
	}
	rows, err := db.Query(`SELECT name FROM pragma_table_list WHERE schema = 'main' AND strict = 0
		AND name NOT LIKE 'sqlite_%' AND name NOT LIKE 'goose_%' AND name NOT LIKE 'words%'`)
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
	if err := migrations.Apply(context.Background(), db, nil); err == nil {
		t.Error("applied to nothing")
	}
}
