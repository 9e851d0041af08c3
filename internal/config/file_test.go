package config_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/config"
)

func TestHowTheFileIsNamed(t *testing.T) {
	t.Parallel()
	here, err := filepath.Abs("dlo.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name        string
		file        config.File
		environment string
		want        string
	}{
		{"not at all", config.File{}, "", ""},
		{"by the environment", config.File{}, "env.yaml", "env.yaml"},
		{"by an argument", config.File{Argument: "a.yaml"}, "env.yaml", "a.yaml"},
		{"by the flag", config.File{Flag: "f.yaml"}, "env.yaml", "f.yaml"},
		{"twice alike", config.File{Argument: "dlo.yaml", Flag: here}, "env.yaml", "dlo.yaml"},
	} {
		if got, err := c.file.Path(func(string) string { return c.environment }); err != nil || got != c.want {
			t.Errorf("%s: %q, %v; want %q", c.name, got, err, c.want)
		}
	}
	if _, err := (config.File{
		Argument: "a.yaml", Flag: "f.yaml",
	}).Path(noEnv); err == nil || !strings.Contains(err.Error(), "is a.yaml as an argument and f.yaml with --config") {
		t.Errorf("two files: %v", err)
	}
}
