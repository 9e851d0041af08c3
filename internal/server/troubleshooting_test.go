package server

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/topology"
)

// TestEveryProblemHasACure checks docs/troubleshooting.md. This document must have a row with
// symptom, cause and cure for each kind of problem and each kind of finding, and no other rows.
func TestEveryProblemHasACure(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, kind := range deadletter.ProblemKinds {
		want = append(want, string(kind))
	}
	for _, kind := range topology.Kinds() {
		want = append(want, string(kind))
	}
	for _, row := range regexp.MustCompile(
		"(?m)^\\| `(\\w+)` \\| [^|]+\\. \\| [^|]+\\. \\| [^|]+\\. \\|$",
	).FindAllStringSubmatch(string(text), -1) {
		got = append(got, row[1])
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("described: %q\nwant:      %q", got, want)
	}
}
