package config

import (
	"cmp"
	"fmt"
	"path/filepath"
)

// File holds the configuration file's name from the command line, as parsed by kong.
type File struct {
	Argument string `arg:"" name:"file" optional:"" help:"The configuration file, as --config names it."`
	Flag     string `name:"config" help:"The configuration file (or $DLO_CONFIG); without one, the defaults apply."`
}

// Path returns the configuration file's name from the argument, from --config or from DLO_CONFIG,
// in this order. It returns "" if none of them is set, and an error if the argument and --config
// name different files.
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
