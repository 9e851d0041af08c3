package server

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/deadletteroffice/dlo/internal/config"
)

// TestServeReadsTheFileThatIsNamed checks a configuration file that is named by an argument, by
// --config or by the environment. If the file contains a mistake, the command must end before it
// opens anything.
func TestServeReadsTheFileThatIsNamed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "dlo.yaml")
	if err := os.WriteFile(path, []byte("rules: [{}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	serve := func(environment string, args ...string) error {
		var c Serve
		parser, err := kong.New(&c, kong.Writers(io.Discard, io.Discard))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.Parse(args); err != nil {
			t.Fatal(err)
		}
		getenv := func(name string) string { return map[string]string{"DLO_CONFIG": environment}[name] }
		return c.Run(t.Context(), Options{Getenv: getenv, Log: io.Discard})
	}
	for name, err := range map[string]error{
		"an argument":     serve("/none", path),
		"the flag":        serve("/none", "--config", path),
		"the environment": serve(path),
		"both alike":      serve("", path, "--config="+path),
	} {
		if bad := (*config.Error)(nil); !errors.As(err, &bad) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var usage interface{ ExitCode() int }
	if err := serve("", path, "--config=/none"); !errors.As(err, &usage) || usage.ExitCode() != 2 {
		t.Errorf("two: %v", err)
	}
}
