package topology_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/deadletteroffice/dlo/internal/topology"
)

// plainDefinitions are definitions as RabbitMQ exports them.
const plainDefinitions = `{
 "rabbitmq_version": "4.3.6",
 "vhosts": [{"name": "/"}],
 "queues": [{"name": "örders", "vhost": "/", "durable": true, "auto_delete": false, "arguments": {"x-queue-type": "quorum"}}],
 "exchanges": [{"name": "dlx", "vhost": "/", "type": "direct", "durable": true, "auto_delete": false, "internal": false, "arguments": {}}],
 "bindings": [{"source": "dlx", "vhost": "/", "destination": "dead", "destination_type": "queue", "routing_key": "k", "arguments": {}}],
 "policies": [{"vhost": "/", "name": "p", "pattern": "^ö", "apply-to": "queues", "priority": 2, "definition": {"dead-letter-exchange": "dlx", "max-length": 5}}],
 "parameters": [{"vhost": "/", "component": "operator_policy", "name": "caps", "value": {"pattern": ".*", "apply-to": "queues", "priority": 0, "definition": {"max-length": 9}}}]
}`

// operatorManifests are the same as manifests of the messaging topology operator.
const operatorManifests = `apiVersion: rabbitmq.com/v1beta1
kind: Queue
metadata: {name: a}
spec: {name: "örders", durable: true, type: quorum, rabbitmqClusterReference: {name: main}}
---
apiVersion: rabbitmq.com/v1beta1
kind: Exchange
spec: {name: dlx, durable: true, rabbitmqClusterReference: {name: main}}
---
apiVersion: v1
kind: List
items:
- apiVersion: rabbitmq.com/v1beta1
  kind: Binding
  spec: {source: dlx, destination: dead, destinationType: queue, routingKey: k, rabbitmqClusterReference: {name: main}}
- apiVersion: rabbitmq.com/v1beta1
  kind: Policy
  spec:
    name: p
    pattern: ^ö
    applyTo: queues
    priority: 2
    definition: {dead-letter-exchange: dlx, max-length: 5}
    rabbitmqClusterReference: {name: main}
---
apiVersion: rabbitmq.com/v1beta1
kind: OperatorPolicy
spec: {name: caps, pattern: .*, applyTo: queues, definition: {max-length: 9}, rabbitmqClusterReference: {name: main}}
---
apiVersion: v1
kind: Service
metadata: {name: rabbit}
`

// inUTF16 returns a text in UTF-16.
func inUTF16(order binary.AppendByteOrder, text string) string {
	var b []byte
	for _, u := range utf16.Encode([]rune(text)) {
		b = order.AppendUint16(b, u)
	}
	return string(b)
}

// TestDefinitionsAsPeopleHaveThem checks that definitions are found in the files in which people
// keep them.
func TestDefinitionsAsPeopleHaveThem(t *testing.T) {
	plain, err := topology.ReadDefinitions([]byte(plainDefinitions))
	if err != nil || len(plain) != 1 || len(plain[0].Queues) != 1 {
		t.Fatal(plain, err)
	}
	indented := "\n    " + strings.ReplaceAll(plainDefinitions, "\n", "\n    ")
	little, big := binary.LittleEndian, binary.BigEndian
	var objects any
	if err := json.Unmarshal([]byte(plainDefinitions), &objects); err != nil {
		t.Fatal(err)
	}
	asYAML, err := yaml.Marshal(map[string]any{"rabbitmq": map[string]any{"definitions": objects}})
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write([]byte(plainDefinitions)); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	secret := "kind: Secret\ndata:\n  d: "
	for name, text := range map[string]string{
		"a byte order mark":               "\ufeff" + plainDefinitions,
		"UTF-16":                          inUTF16(little, "\ufeff"+plainDefinitions),
		"UTF-16, big-endian":              inUTF16(big, "\ufeff"+plainDefinitions),
		"UTF-16 without a mark":           inUTF16(little, plainDefinitions),
		"UTF-16, big-endian, no mark":     inUTF16(big, plainDefinitions),
		"lines of Windows":                strings.ReplaceAll(plainDefinitions, "\n", "\r\n"),
		"a banner":                        "Exporting definitions for vhost / ...\n" + plainDefinitions + "\n...done.\n",
		"the headers of a response":       "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n" + plainDefinitions,
		"a ConfigMap":                     "apiVersion: v1\nkind: ConfigMap\ndata:\n  definitions.json: |" + indented,
		"a ConfigMap among others":        "kind: Service\n---\nkind: ConfigMap\ndata:\n  rabbitmq.conf: a = b\n  d.json: |" + indented,
		"values of a chart":               "# values\nauth: {username: x}\nextraSecrets:\n  load:\n    d.json: |" + indented,
		"a Secret":                        "kind: Secret\ndata:\n  d: " + base64.StdEncoding.EncodeToString([]byte(plainDefinitions)),
		"a Secret with a byte order mark": secret + base64.StdEncoding.EncodeToString([]byte("\ufeff"+plainDefinitions)),
		"a Secret with a compressed text": secret + base64.StdEncoding.EncodeToString(packed.Bytes()),
		"a banner in another language":    "Übersicht\n" + plainDefinitions,
		"a banner with colours":           "\x1b[32mINFO\x1b[0m\n" + plainDefinitions,
		"YAML in values of a chart":       string(asYAML),
		"manifests beside others": operatorManifests + "---\nkind: Application\napiVersion: argoproj.io/v1alpha1\n" +
			"spec: {source: {repoURL: x}, destination: {server: y}}\n---\nkind: ConfigMap\ndata: {5672: x}\n",
		"a Secret with text":             "kind: Secret\nstringData:\n  d: |" + indented,
		"a list of kubectl, as JSON":     `{"apiVersion":"v1","kind":"List","items":[{"kind":"ConfigMap","data":{"d":` + quoted(plainDefinitions) + `}}]}`,
		"manifests of the operator":      operatorManifests,
		"manifests with a byte mark":     "\ufeff" + operatorManifests,
		"one manifest of kubectl (JSON)": `{"apiVersion":"rabbitmq.com/v1beta1","kind":"Queue","spec":{"name":"örders","durable":true,"type":"quorum"}}`,
	} {
		got, err := topology.ReadDefinitions([]byte(text))
		if err != nil || len(got) != 1 {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if strings.HasPrefix(name, "one manifest") {
			got[0].Exchanges, got[0].Bindings, got[0].Policies, got[0].Operators = plain[0].Exchanges, plain[0].Bindings,
				plain[0].Policies, plain[0].Operators
		}
		if diff := cmp.Diff(contents(plain[0]), contents(got[0])); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// contents returns all objects of a snapshot as text.
func contents(s topology.Snapshot) string {
	text := fmt.Sprintf("%s\n%+v\n%+v\n%+v\n", s.VHost, s.Queues, s.Exchanges, s.Bindings)
	for _, p := range slices.Concat(s.Policies, s.Operators) {
		text += fmt.Sprintln(p.Name, p.Pattern, p.ApplyTo, p.Priority, p.Definition)
	}
	return text
}

func quoted(text string) string {
	return `"` + strings.NewReplacer("\n", `\n`, `"`, `\"`).Replace(text) + `"`
}

// TestOtherFilesAreNamed checks that the error for a file that has no definitions says what the
// file is, and what to do.
func TestOtherFilesAreNamed(t *testing.T) {
	queue := "apiVersion: rabbitmq.com/v1beta1\nkind: Queue\nspec: {name: q, rabbitmqClusterReference: {name: "
	for text, want := range map[string]string{
		"\x1f\x8b\x08\x00":                                                               "it is compressed",
		"PK\x03\x04\x00":                                                                 "it is compressed",
		"<!DOCTYPE html>\n<html>":                                                        "it is a web page",
		`[{"name": "orders", "messages": 7}]`:                                            "GET /api/queues",
		"[{rabbit, [{load_definitions, \"x\"}]}].":                                       "advanced.config",
		"Listing queues for vhost / ...\nname\tmessages\norders\t7\n":                    "a command of rabbitmqctl lists",
		"resource \"rabbitmq_queue\" \"q\" {\n  name = \"q\"\n}\n":                       "Terraform",
		"listeners.tcp.default = 5672\nmanagement.load_definitions = /x\n":               "it is rabbitmq.conf",
		"apiVersion: rabbitmq.com/v1beta1\nkind: RabbitmqCluster\nspec: {replicas: 3}\n": "RabbitmqCluster",
		"apiVersion: v1\nkind: Deployment\n":                                             "Deployment",
		"a: {b: [\n":                                                                     "line 1: did not find",
		"hello":                                                                          "neither JSON nor YAML",
		"\xff\xfe{\x00}":                                                                 "it is not complete",
		`{"error":"not_authorised","reason":"Login failed"}`:                             "not_authorised Login failed",
		queue + "a}}\n---\n" + queue + "b}}\n":                                           "several clusters (a, b)",
		"a: '{\"queues\":[]}'\nb: '{\"queues\":[]}'\n":                                   "there are 2 definitions",
		"apiVersion: v1\nkind: ConfigMap\ndata: {5672: {{ .Values.x }}}\n":               "it is a template",
		queue + "a, namespace: x}}\n---\n" + queue + "a, namespace: y}}\n":               "several clusters (x/a, y/a)",
		queue + "a}}\n---\n" + queue + "b}}\n---\n" + strings.ReplaceAll(queue, "Queue", "User") + "b}}\n": "several clusters (a, b)",
		"x: &a [*a]\n": "anchor",
	} {
		_, err := topology.ReadDefinitions([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 300 {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
