package drill

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestOnlyANoteOfTheDrillIsRemoved checks that removeNamed removes only a note in the folder of the
// drill.
func TestOnlyANoteOfTheDrillIsRemoved(t *testing.T) {
	t.Parallel()
	folder, elsewhere := t.TempDir(), t.TempDir()
	g := &ground{folder: folder}
	for file, removed := range map[string]bool{
		filepath.Join(folder, "other.db.progress-01234567"):    true,
		filepath.Join(folder, "other.db"):                      false,
		filepath.Join(elsewhere, "other.db.progress-01234567"): false,
	} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		err := removeNamed(t.Context(), g, problem{
			Cure: `If this store was put there on purpose, remove that file: rm "` + file + `"`,
		})
		if _, there := os.Stat(file); (err == nil) != removed || errors.Is(there, os.ErrNotExist) != removed {
			t.Errorf("%s: %v, %v", file, err, there)
		}
	}
	if err := removeNamed(t.Context(), g, problem{Cure: "Look."}); !errors.Is(err, errNoCure) {
		t.Error(err)
	}
}

// TestALetterThatNobodyLetGoFailsTheRow checks that expectNothingSent returns an error if a letter
// arrives.
func TestALetterThatNobodyLetGoFailsTheRow(t *testing.T) {
	t.Parallel()
	for answer, fails := range map[string]bool{`[]`: false, `[{"payload_bytes": 3}]`: true} {
		api := &recorder{on: func(_, _ string, _, into any) error { return json.Unmarshal([]byte(answer), into) }}
		g := &ground{site: &site{fence: &fence{api: api, vhost: "dlo-drill-abcdefghij"}}}
		if err := g.expectNothingSent(t.Context(), "restored"); (err != nil) != fails {
			t.Errorf("%s: %v", answer, err)
		}
	}
}
