package backup_test

import (
	"path/filepath"
	"testing"

	"github.com/deadletteroffice/dlo/internal/storetest"
)

// TestARehearsalOnAReadOnlyMedium checks that a backup on a medium that cannot be written, such as
// one in another place, is rehearsed without a record in its manifest.
func TestARehearsalOnAReadOnlyMedium(t *testing.T) {
	t.Parallel()
	folder := storetest.Disk(t, "20m")
	from, _ := source(t, 3)
	path := filepath.Join(folder, "dlo.db")
	if _, err := from.Make(t.Context(), path, false); err != nil {
		t.Fatal(err)
	}
	storetest.ReadOnly(t, folder)
	if r, err := from.Rehearse(t.Context(), path, decodesAll); err != nil || r.Letters != 3 || r.Read != 3 || r.Problem != "" {
		t.Errorf("%+v %v", r, err)
	}
}
