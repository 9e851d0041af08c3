package web_test

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestTheOlderDocument checks that the older document contains nothing that OpenAPI 3.0 does not
// support.
func TestTheOlderDocument(t *testing.T) {
	t.Parallel()
	h := open(t)
	text := h.get("/api/v1/openapi.yaml?version=3.0").want(t, 200).text
	if !strings.HasPrefix(text, "openapi: 3.0.3\n") {
		t.Fatalf("%.80s", text)
	}
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(text), &root); err != nil {
		t.Fatal(err)
	}
	var look func(n *yaml.Node, path string)
	look = func(n *yaml.Node, path string) {
		if n.Kind == yaml.SequenceNode {
			for _, item := range n.Content {
				look(item, path)
			}
		}
		if n.Kind != yaml.MappingNode {
			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i].Value, n.Content[i+1]
			at := path + "/" + key
			if strings.HasSuffix(path, "/properties") || strings.HasSuffix(path, "/value") ||
				strings.HasSuffix(path, "/example") {
				key = "" // the key is a name or a value
			}
			switch {
			case key == "const", key == "contentEncoding", key == "type" && value.Kind == yaml.SequenceNode,
				key == "type" && value.Value == "null", key == "exclusiveMinimum" && value.Value != "true":
				t.Errorf("%s: %q is of OpenAPI 3.1", at, value.Value)
			}
			look(value, at)
		}
	}
	look(root.Content[0], "")
	h.get("/api/v1/openapi.yaml?version=2.0").want(t, 400, "3.1", "3.0")
}
