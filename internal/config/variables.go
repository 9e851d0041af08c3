package config

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// variable finds what is filled in: ${NAME}, ${NAME:-default}, and $$ for a dollar sign. It also
// finds the beginning of a variable that is written wrong.
var variable = regexp.MustCompile(`\$\$|\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}|\$\{`)

// fill puts variables of the environment into the values of a tree. It changes no keys. A value
// stays one text, whatever the variable contains.
func (d *decoder) fill(n *yaml.Node) {
	if d.getenv == nil {
		return
	}
	if d.filled == nil {
		d.filled = map[*yaml.Node]string{}
	}
	for i, child := range n.Content {
		if n.Kind != yaml.MappingNode || i%2 == 1 {
			d.fill(child)
		}
	}
	if n.Kind != yaml.ScalarNode || !strings.Contains(n.Value, "$") {
		return
	}
	written := n.Value
	value := variable.ReplaceAllStringFunc(written, func(part string) string {
		if part == "$$" {
			return "$"
		}
		found := variable.FindStringSubmatch(part)
		name, fallback := found[1], found[2]
		if name == "" {
			d.mistake(n, "%s is not closed, or its name is not valid; write ${NAME}, or $$ for a dollar sign", part)
			return part
		}
		value := d.getenv(name)
		if value == "" && fallback == "" {
			d.mistake(n, "the environment has no variable %s; set it, or write ${%s:-default}", name, name)
		}
		if value == "" {
			return found[3]
		}
		return value
	})
	if value != written {
		d.filled[n] = written
		n.Value, n.Style, n.Tag = value, yaml.DoubleQuotedStyle, "!!str"
	}
}

// noVariables returns a text as it is written in the file, if its dollar signs begin no variables.
func noVariables(text string) string {
	if !variable.MatchString(text) {
		return text
	}
	return strings.ReplaceAll(text, "$", "$$")
}

// writeDollars writes the values of a tree, which are filled in, so that they are not filled in
// again.
func writeDollars(n *yaml.Node) {
	for i, child := range n.Content {
		if n.Kind != yaml.MappingNode || i%2 == 1 {
			writeDollars(child)
		}
	}
	n.Value = noVariables(n.Value)
}

// asWritten returns the text of a mistake without a value that came from the environment, which may
// be a secret.
func (d *decoder) asWritten(n *yaml.Node, text string) string {
	written, ok := d.filled[n]
	if !ok || n.Value == "" {
		return text
	}
	return strings.NewReplacer(
		strconv.Quote(n.Value), fmt.Sprintf("%q", written), n.Value, written, deadletter.Visible(n.Value), written,
	).Replace(text)
}
