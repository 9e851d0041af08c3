package deadletter

import "strings"

// About returns the text that shows people which dlo this is, for example
// "v1.2.3 (2026-11-30, 48b0b2e2)". The date is that of the commit. An empty part is left out.
func About(version, commit, date string) string {
	var parts []string
	for _, p := range []string{date, commit} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	if len(parts) == 0 {
		return version
	}
	return version + " (" + strings.Join(parts, ", ") + ")"
}
