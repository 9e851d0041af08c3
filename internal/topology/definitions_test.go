package topology_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/topology"
)

// TestDefinitionsOfSeveralVHosts checks that each object of a file is put into its vhost.
func TestDefinitionsOfSeveralVHosts(t *testing.T) {
	list, err := topology.ReadDefinitions([]byte(`{
		"rabbitmq_version": "4.3.6",
		"vhosts": [{"name": "empty"}, {"name": "b"}],
		"queues": [{"name": "orders", "vhost": "b", "durable": true, "auto_delete": false, "arguments": []}],
		"policies": [{"vhost": "a", "name": "p", "pattern": ".*", "apply-to": "all", "priority": 3, "definition": {"max-length": 12345678901}}],
		"parameters": [{"vhost": "a", "component": "operator_policy", "name": "caps", "value": {"pattern": "^o", "apply-to": "queues", "priority": 1, "definition": {"max-length": 5}}},
			{"vhost": "b", "component": "shovel", "name": "move", "value": {}}]
	}`))
	if err != nil {
		t.Fatal(err)
	}
	var vhosts []string
	for _, s := range list {
		vhosts = append(vhosts, s.VHost)
	}
	if want := []string{"a", "b", "empty"}; !slices.Equal(vhosts, want) {
		t.Fatalf("vhosts %q, want %q", vhosts, want)
	}
	a, b := list[0], list[1]
	if n, ok := a.Policies[0].Definition.Number("max-length"); !ok || n != 12345678901 || a.Policies[0].Priority != 3 {
		t.Errorf("%+v", a.Policies)
	}
	if o := a.Operators[0]; o.Name != "caps" || o.Pattern != "^o" || a.Version != "4.3.6" {
		t.Errorf("%+v", a)
	}
	if b.Queues[0].Name != "orders" || b.Queues[0].Kind() != topology.Classic {
		t.Errorf("%+v", b)
	}
}

// TestBadDefinitions checks that the error for a file that is not valid says where the fault is, or
// which file is expected.
func TestBadDefinitions(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "line 1",
		"{\n\"queues\": [\n":        "line 3",
		`{"queues": 7}`:             "queues",
		`[]`:                        "must be",
		`{"dashboards": []}`:        "rabbitmqctl export_definitions",
		`{"queues":[{"name":7}]}`:   "name",
		"{\"queues\":[]}\n\x1f\x8b": "line 2",
		`{"queues":[],"parameters":[{"component":"operator_policy","name":"caps","value":7}]}`: "operator policy caps",
	} {
		_, err := topology.ReadDefinitions([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
