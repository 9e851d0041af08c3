package web

import (
	"sync"

	"go.yaml.in/yaml/v3"
)

// olderOpenAPI is the document in OpenAPI 3.0.3, for generators that do not support 3.1, such as
// oapi-codegen.
var olderOpenAPI = sync.OnceValues(func() ([]byte, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(openAPIDocument, &root); err != nil {
		return nil, err
	}
	document := root.Content[0]
	rewriteFor30(document)
	document.Content[1].Value = "3.0.3" // the value of the first key, openapi
	return yaml.Marshal(&root)
})

// rewriteFor30 rewrites what OpenAPI 3.0 expresses differently than 3.1: types that include null,
// exclusive limits, constants, and the encoding of a text.
func rewriteFor30(n *yaml.Node) {
	for _, child := range n.Content {
		rewriteFor30(child)
	}
	if n.Kind != yaml.MappingNode {
		return
	}
	var out []*yaml.Node
	add := func(key string, value *yaml.Node) {
		out = append(out, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, value)
	}
	list := func(nodes ...*yaml.Node) *yaml.Node { return &yaml.Node{Kind: yaml.SequenceNode, Content: nodes} }
	yes := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true"}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Value == "type" && value.Kind == yaml.SequenceNode: // a list of types such as [X, "null"]
			add("type", value.Content[0])
			add("nullable", yes)
		case key.Value == "anyOf" && len(value.Content) == 2 && isNullType(value.Content[1]):
			add("allOf", list(value.Content[0]))
			add("nullable", yes)
		case key.Value == "exclusiveMinimum":
			add("minimum", value)
			add("exclusiveMinimum", yes)
		case key.Value == "const":
			add("enum", list(value))
		case key.Value == "contentEncoding" && value.Value == "base64":
			add("format", &yaml.Node{Kind: yaml.ScalarNode, Value: "byte"})
		case key.Value == "contentEncoding":
			add("format", value)
		default:
			out = append(out, key, value)
		}
	}
	n.Content = out
}

func isNullType(n *yaml.Node) bool {
	return n.Kind == yaml.MappingNode && len(n.Content) == 2 && n.Content[0].Value == "type" &&
		n.Content[1].Value == "null"
}
