package config

import (
	"cmp"
	"fmt"
	"path/filepath"
)

// File is how a command line names the configuration, as kong reads it.
type File struct {
	Argument string `arg:"" name:"file" optional:"" help:"The configuration file, as --config names it."`
	Flag     string `name:"config" help:"The configuration file; without one the defaults hold ($DLO_CONFIG)."`
}

// Path returns the file that is named by an argument or by --config, else by DLO_CONFIG; "" where
// none is. To name two different ones is a mistake.
func (f File) Path(getenv func(string) string) (string, error) {
	if f.Argument != "" && f.Flag != "" && !samePath(f.Argument, f.Flag) {
		return "", fmt.Errorf("the configuration is %s as an argument and %s with --config; name one of them", f.Argument, f.Flag)
	}
	return cmp.Or(f.Argument, f.Flag, getenv("DLO_CONFIG")), nil
}

// samePath says whether two names lead to the same place.
func samePath(a, b string) bool {
	x, err := filepath.Abs(a)
	y, wrong := filepath.Abs(b)
	return err == nil && wrong == nil && x == y
}
