package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestMistakes loads each configuration of testdata/mistakes.golden. In this file, a line with the
// name of the case comes first, then the configuration, and then, after arrows, the mistakes that
// people are told. Without a mistake, there is no arrow. `go test -update` rewrites the mistakes.
func TestMistakes(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/mistakes.golden")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for c := range strings.SplitSeq(strings.TrimPrefix(string(text), "== "), "\n== ") {
		name, rest, _ := strings.Cut(c, "\n")
		yaml, _, _ := strings.Cut("\n"+strings.TrimSuffix(rest, "\n"), "\n-> ")
		all.WriteString("== " + name + yaml + "\n")
		if _, err := load(t, yaml[1:]); err != nil {
			var bad *config.Error
			if !errors.As(err, &bad) {
				t.Fatalf("%s: %v is no *Error", name, err)
			}
			for line := range strings.Lines(err.Error()) {
				all.WriteString("-> " + strings.TrimPrefix(strings.TrimSuffix(line, "\n"), bad.Path+":") + "\n")
			}
		}
	}
	testenv.GoldenText(t, "mistakes.golden", all.String())
	if strings.Contains(all.String(), "canary") {
		t.Error("a mistake tells the secret")
	}
	if _, err := config.Load(
		filepath.Join(t.TempDir(), "none.yaml"), noEnv,
	); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a file that does not exist: %v", err)
	}
}
