package ingest_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestTheLedgerDecidesAsTheStore runs some random schedules on the store in memory and on the real
// store, and compares the outcomes. It shows that the store in memory decides as the real store
// does. The other schedules use only the store in memory, because a thousand of them take too long
// on the real store.
func TestTheLedgerDecidesAsTheStore(t *testing.T) {
	t.Parallel()
	s, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "dlo.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	for i, seed := range append(testenv.Seeds(t, 50), 318, 412) { // the last two depend on delivery counts
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			var memory, real string
			synctest.Test(t, func(t *testing.T) { memory = schedule(t, seed, nil) })
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Duration(i) * time.Hour) // The clock of a store must not go back.
				real = schedule(t, seed, func(o *office) { o.store, o.name = s, fmt.Sprint("dlo.letters.", seed) })
			})
			if memory != real {
				t.Errorf("in memory: %s\non the store: %s", memory, real)
			}
		})
	}
}
