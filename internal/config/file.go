package config

import (
	"cmp"
	"fmt"
	"path/filepath"
)

// File says how the command line names the configuration file, as parsed by kong.
type File struct {
	Argument string `arg:"" name:"file" optional:"" help:"The configuration file, as --config names it."`
	Flag     string `name:"config" help:"The configuration file; without one the defaults hold ($DLO_CONFIG)."`
}

// Path returns the file named by an argument or by --config, or else by DLO_CONFIG. It returns ""
// if none is named, and an error if the argument and --config name two different files.
func (f File) Path(getenv func(string) string) (string, error) {
	if f.Argument != "" && f.Flag != "" && !samePath(f.Argument, f.Flag) {
		return "", fmt.Errorf("the configuration is %s as an argument and %s with --config; name one of them", f.Argument, f.Flag)
	}
	return cmp.Or(f.Argument, f.Flag, getenv("DLO_CONFIG")), nil
}

// samePath reports whether two names refer to the same path.
func samePath(a, b string) bool {
	x, err := filepath.Abs(a)
	y, wrong := filepath.Abs(b)
	return err == nil && wrong == nil && x == y
}
