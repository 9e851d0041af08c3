package failure

import "github.com/deadletteroffice/dlo/internal/deadletter"

// Conventions returns the names of all conventions, the most specific first.
func Conventions() []string {
	var names []string
	for _, c := range conventions {
		names = append(names, c.name)
	}
	return names
}

// Found returns the names of those conventions that find a failure in the given headers.
func Found(headers deadletter.Table) []string {
	r := &reading{
		Properties: deadletter.Properties{Headers: headers},
		mask:       func(_, text string) (string, bool) { return text, false },
		named:      byName(headers),
	}
	var names []string
	for _, c := range conventions {
		if _, found := c.read(r); found {
			names = append(names, c.name)
		}
	}
	return names
}
