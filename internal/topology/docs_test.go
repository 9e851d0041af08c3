package topology_test

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/deadletteroffice/dlo/internal/topology"
)

// TestTheDocumentHasEveryKind checks that docs/topology.md describes each kind of finding.
func TestTheDocumentHasEveryKind(t *testing.T) {
	text, err := os.ReadFile("../../docs/topology.md")
	if err != nil {
		t.Fatal(err)
	}
	var described []topology.Kind
	for _, row := range regexp.MustCompile(
		"(?m)^\\| `(\\w+)` \\| (page|notify|digest) \\|",
	).FindAllStringSubmatch(string(text), -1) {
		described = append(described, topology.Kind(row[1]))
		if got := string(topology.SeverityOf(topology.Kind(row[1]))); got != row[2] {
			t.Errorf("%s has the severity %s, not %s", row[1], got, row[2])
		}
	}
	slices.Sort(described)
	if !slices.Equal(described, topology.Kinds()) {
		t.Errorf("described: %q, want %q", described, topology.Kinds())
	}
}
