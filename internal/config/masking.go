package config

import (
	"regexp"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"go.yaml.in/yaml/v3"
)

// Masking says which headers and which fields of bodies dlo must not show. Protobuf fields with the
// option debug_redact are masked too.
type Masking struct {
	Headers  []string // names of headers in lower case
	Patterns []*regexp.Regexp
	Fields   []deadletter.MaskedField
	JSON     []deadletter.FieldPath // paths in JSON bodies, from the outermost value on
}

var typeGlob = regexp.MustCompile(`^[A-Za-z0-9_.*?]+$`)

func (d *decoder) masking(n *yaml.Node, m *Masking) {
	d.list(n, func(n *yaml.Node) {
		var field deadletter.MaskedField
		d.mapping(n, "masking", keys{
			"header": func(n *yaml.Node) {
				var name string
				d.text(n, &name)
				m.Headers = append(m.Headers, strings.ToLower(name))
			},
			"pattern": func(n *yaml.Node) { d.pattern(n, m) },
			"json": func(n *yaml.Node) {
				if path := d.path(n); path != nil {
					m.JSON = append(m.JSON, path)
				}
			},
			"type": func(n *yaml.Node) {
				if d.text(n, &field.Type); !typeGlob.MatchString(field.Type) && n.Kind == yaml.ScalarNode {
					d.mistake(
						n,
						"%q is not the full name of a message type, in which * stands for any text; it looks like acme.*",
						field.Type,
					)
				}
			},
			"field": func(n *yaml.Node) { field.Path = d.path(n) },
		})
		if n.Kind != yaml.MappingNode {
			return
		}
		kinds := 0
		for _, key := range []string{"header", "pattern", "json"} {
			if d.hasKey(n, key) {
				kinds++
			}
		}
		ofFields := d.hasKey(n, "type") || d.hasKey(n, "field")
		if ofFields {
			kinds++
		}
		switch {
		case kinds > 1, len(n.Content) == 0:
			d.mistake(n, "an entry has exactly one of header, pattern and json; or it has type, field or both")
		case ofFields && (field.Path != nil || !d.hasKey(n, "field")):
			m.Fields = append(m.Fields, field)
		}
	})
}

func (d *decoder) pattern(n *yaml.Node, m *Masking) {
	var text string
	d.text(n, &text)
	pattern, err := regexp.Compile(text)
	if err != nil {
		d.mistake(n, "pattern: %v", err)
		return
	}
	if pattern.MatchString("") {
		d.mistake(n, "pattern: it matches the empty text, so it would mask everything")
		return
	}
	m.Patterns = append(m.Patterns, pattern)
}

// path parses a path to a field of a body. If the path is not valid, it returns nil.
func (d *decoder) path(n *yaml.Node) deadletter.FieldPath {
	v, ok := d.scalar(n, "a path such as customer.email")
	if !ok {
		return nil
	}
	path, err := deadletter.ParseFieldPath(v)
	if err != nil {
		d.mistake(n, "%v", err)
		return nil
	}
	return path
}

// checkSearch reports search fields that are masked.
func (d *decoder) checkSearch(c *Config) {
	if d.at["search.fields"] == nil {
		return
	}
	d.eachItem(d.at["search.fields"], func(n *yaml.Node) {
		if deadletter.Masked(c.Masking.Fields, c.Masking.JSON, n.Value) {
			d.mistake(n, "%s is masked, so letters cannot be found by it", deadletter.Visible(n.Value))
		}
	})
}
