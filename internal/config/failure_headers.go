package config

import (
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"go.yaml.in/yaml/v3"
)

// failureHeaders reads the names of headers, and the paths into them, that contain the parts of a
// failure.
func (d *decoder) failureHeaders(n *yaml.Node, h *deadletter.FailureHeaders) {
	paths := func(into *[]string) func(*yaml.Node) {
		return func(n *yaml.Node) {
			d.texts(n, into)
			for i, path := range *into {
				empty := slices.Contains(strings.Split(path, "."), "")
				if empty || len(path) > 1000 || strings.ContainsAny(path, "$[]*") {
					d.mistake(
						n.Content[i], "%q is not the name of a header or a path into one, such as x-error.reason",
						deadletter.Cut(path, 100),
					)
				}
			}
		}
	}
	d.mapping(n, "failure_headers", keys{
		"type":     paths(&h.Type),
		"message":  paths(&h.Message),
		"stack":    paths(&h.Stack),
		"attempts": paths(&h.Attempts),
		"origin":   paths(&h.Origin),
	})
}
