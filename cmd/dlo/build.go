package main

import "runtime/debug"

// These are the version of dlo, its commit and the day of that commit. The linker sets them.
var version, commit, date = "", "", ""

// build returns the version, the commit and its day. A dlo that `go install` built has no commit,
// and the version of its module.
func build() (string, string, string) {
	if version == "" {
		version = "unknown"
		if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
			version = info.Main.Version
		}
	}
	return version, commit, date
}
