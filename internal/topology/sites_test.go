package topology_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/topology"
)

// siteOf reads a site of testdata/sites. Each line is an object: its kind, its names, and pairs of
// key and value. "-" stands for an empty binding key.
func siteOf(t *testing.T, file string) map[string][]any {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	objects := map[string][]any{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		words := strings.Fields(lines.Text())
		names := map[string]int{"queue": 2, "exchange": 3, "bind": 4, "bindx": 4, "policy": 4, "operator": 3}[words[0]]
		keys := map[string]any{}
		for _, pair := range words[names:] {
			key, value, _ := strings.Cut(pair, "=")
			keys[key] = value
			if n, err := strconv.Atoi(value); err == nil {
				keys[key] = n
			}
		}
		o := map[string]any{"vhost": "/", "name": words[1], "durable": true, "auto_delete": false, "arguments": keys}
		kind := words[0] + "s"
		switch words[0] {
		case "exchange":
			o["type"] = words[2]
		case "bind", "bindx":
			kind = "bindings"
			o = map[string]any{
				"vhost": "/", "source": words[1], "destination": words[2], "routing_key": strings.Trim(words[3], "-"),
				"destination_type": map[string]string{"bind": "queue", "bindx": "exchange"}[words[0]], "arguments": keys,
			}
		case "policy":
			kind = "policies"
			priority, _ := strconv.Atoi(words[3])
			o = map[string]any{
				"vhost": "/", "name": words[1], "pattern": words[2], "apply-to": "queues", "priority": priority,
				"definition": keys,
			}
		case "operator":
			kind = "parameters"
			o = map[string]any{"vhost": "/", "name": words[1], "component": "operator_policy", "value": map[string]any{
				"pattern": words[2], "apply-to": "queues", "priority": 0, "definition": keys,
			}}
		}
		objects[kind] = append(objects[kind], o)
	}
	return objects
}

// TestSitesOfManyKinds checks sites as libraries and people declare them, re-typed from the shape
// of public ones: each as 3.10 exports it, as 4.3 exports it with quorum queues by default, and
// without a version. Nothing is wrong with their dead letters, so no finding may page.
func TestSitesOfManyKinds(t *testing.T) {
	files, err := filepath.Glob("testdata/sites/*.txt")
	if err != nil || len(files) < 20 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		for _, version := range []string{"3.10.8", "4.3.6", ""} {
			site := siteOf(t, file)
			out := map[string]any{
				"rabbitmq_version": version, "queues": site["queues"], "exchanges": site["exchanges"],
				"bindings": site["bindings"], "parameters": site["parameters"], "policies": site["policies"],
			}
			if version == "4.3.6" {
				metadata := map[string]string{"default_queue_type": "quorum"}
				out["vhosts"] = []any{map[string]any{"name": "/", "metadata": metadata}}
			}
			text, err := json.Marshal(out)
			if err != nil {
				t.Fatal(err)
			}
			list, err := topology.ReadDefinitions(text)
			if err != nil || len(list) != 1 {
				t.Fatalf("%s: %v", file, err)
			}
			found := topology.Inspect(&list[0], topology.Options{})
			for _, f := range found {
				if f.Severity == deadletter.SeverityPage {
					t.Errorf("%s on %q: %s: %s. %s", file, version, f.Kind, f.Title, f.Why)
				}
			}
			topology.MakePlan(&list[0], topology.Want{
				Queues: topology.Choose(&list[0], found, []string{"*"}, true), Exchange: "dlo.dlx",
			})
		}
	}
}
