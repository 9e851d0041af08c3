package internal_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestWhoTakesBoundsOff lists the files whose code reads the letters of all queues, even if the
// caller has grants for only some of the queues. docs/security.md refers to this list. Before a
// file is added to the list, somebody has to examine what such a caller could learn from this code.
func TestWhoTakesBoundsOff(t *testing.T) {
	t.Parallel()
	want := []string{
		"operation/operation.go", // checks the rights on an operation
		"store/families.go",      // loads all merged groups when groups are merged
		"store/group_places.go",  // checks the rights on a merged group
		"store/incidents.go",     // reads the groups of an incident for a notice
		"store/notices.go",       // reads the notices that are due
	}
	var found []string
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte("deadletter.Scope{})")) {
			found = append(
				found,
				filepath.ToSlash(strings.TrimPrefix(path, filepath.Join("..", "internal")+string(filepath.Separator))),
			)
		}
		return err
	})
	if err != nil || !slices.Equal(found, want) {
		t.Errorf("%q take the bounds off, want %q (%v)", found, want, err)
	}
}
