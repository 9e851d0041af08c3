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
				if path := d.path(n, "hide", true); path != nil {
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
			"field": func(n *yaml.Node) { field.Path = d.path(n, "hide", false) },
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

// path parses a path to a field of a message or, if the parameter "json" is true, of a JSON body.
// If the path is not valid, or could never lead to a value, it returns nil. The parameter "does"
// says what the path is for.
func (d *decoder) path(n *yaml.Node, does string, json bool) deadletter.FieldPath {
	v, ok := d.scalar(n, "a path such as customer.email")
	if !ok {
		return nil
	}
	path, err := deadletter.ParseFieldPath(v)
	if err != nil {
		d.mistake(n, "%v", err)
		return nil
	}
	if d.hasOtherLanguage(n, v, does, json) {
		return nil
	}
	return path
}

// hasOtherLanguage reports a path in another language, which leads to no value.
func (d *decoder) hasOtherLanguage(n *yaml.Node, path, does string, json bool) bool {
	plain := plainPath(path, json)
	if plain == path && !strings.Contains(path, "*") {
		return false
	}
	hint := "name the field"
	if plain != "" && !strings.Contains(plain, "*") {
		hint = "write " + deadletter.Visible(plain)
	}
	d.mistake(
		n, "%s would %s nothing: a path has only names, separated by dots, and leads through all items of lists; %s",
		deadletter.Visible(path), does, hint,
	)
	return true
}

var (
	quotedName = regexp.MustCompile(`\[['"]([^'"\]]*)['"]\]`)
	noName     = regexp.MustCompile(`\[([^\pL_\]][^\]]*)?(\]|$)`) // a name of an extension begins with a letter
	index      = regexp.MustCompile(`^[0-9]+$`)
)

// plainPath returns a path without what it has of other languages: JSONPath ($.a[*]), JSON Pointer
// (/a/0), jq (a[]) and dlo's own queries (body.a). Fields of messages may be numbers, or called
// body.
func plainPath(path string, json bool) string {
	if pointer := strings.TrimPrefix(path, "#"); strings.HasPrefix(pointer, "/") {
		path = strings.ReplaceAll(pointer[1:], "/", ".")
	}
	path = noName.ReplaceAllString(quotedName.ReplaceAllString(path, ".$1"), "")
	var names []string
	all := strings.Split(path, ".")
	for i, name := range all {
		first := i == 0 && (name == "$" || name == "" || json && name == "body" && len(all) > 1)
		if !first && name != "*" && (!json || !index.MatchString(name)) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ".")
}

// checkSearch reports search fields that are masked, or that no body can have.
func (d *decoder) checkSearch(c *Config) {
	if d.at["search.fields"] == nil {
		return
	}
	d.eachItem(d.at["search.fields"], func(n *yaml.Node) {
		if !d.hasOtherLanguage(n, n.Value, "find", false) &&
			deadletter.Masked(c.Masking.Fields, c.Masking.JSON, n.Value) {
			d.mistake(n, "%s is masked, so letters cannot be found by it", deadletter.Visible(n.Value))
		}
	})
}
