package config

import (
	"cmp"
	"fmt"
	"path/filepath"
)

// File contains the name of the configuration file. The package kong fills it in from the command
// line.
type File struct {
	Argument string `arg:"" name:"file" optional:"" help:"The configuration file, as --config names it."`
	Flag     string `name:"config" help:"The configuration file (or $DLO_CONFIG); without one, the defaults apply."`
}

// Path returns the name of the configuration file. It comes from the argument, from --config, or
// from DLO_CONFIG, in this order. If none of them is set, Path returns "". If the argument and
// --config name different files, it returns an error.
func (f File) Path(getenv func(string) string) (string, error) {
	if f.Argument != "" && f.Flag != "" && !samePath(f.Argument, f.Flag) {
		return "", fmt.Errorf(
			"the configuration is %s as an argument and %s with --config; name one of them", f.Argument, f.Flag,
		)
	}
	return cmp.Or(f.Argument, f.Flag, getenv("DLO_CONFIG")), nil
}

// samePath reports whether two names stand for the same path.
func samePath(a, b string) bool {
	x, err := filepath.Abs(a)
	y, wrong := filepath.Abs(b)
	return err == nil && wrong == nil && x == y
}
