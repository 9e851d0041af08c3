package topology

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	"golang.org/x/text/encoding/unicode"
)

// definitionsIn finds the definitions in a file as people keep them. It returns JSON as RabbitMQ
// exports it. The file may be in UTF-8 or UTF-16, and may have other lines before the JSON, such as
// what rabbitmqctl says or the headers of a response. It may be the same as YAML, or YAML or JSON
// of Kubernetes: an object that contains the definitions (ConfigMap, Secret, values of a chart), or
// manifests of the messaging topology operator (rabbitmq.com/v1beta1).
func definitionsIn(text []byte) ([]byte, error) {
	text, err := asUTF8(text)
	if err != nil {
		return nil, err
	}
	if object, found := jsonObject(text); found {
		var of struct{ Kind, APIVersion string }
		if json.Unmarshal(object, &of) != nil || of.Kind == "" || of.APIVersion == "" {
			return object, nil
		}
		text = bytes.TrimLeft(object, "\n")
	} else if is := bytes.TrimSpace(text); len(is) == 0 || is[0] == '{' && !bytes.HasPrefix(is, []byte("{{")) {
		return text, nil // whose mistake the reader of JSON names
	}
	var objects []any
	for d := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var object any
		if err := d.Decode(&object); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, notDefinitions(text, strings.TrimPrefix(err.Error(), "yaml: "))
		}
		objects = append(objects, object)
	}
	if inside := definitionsInside(objects, false); len(inside) == 1 {
		return inside[0], nil
	} else if len(inside) > 1 {
		return nil, fmt.Errorf("there are %d definitions in the file: give one of them at a time", len(inside))
	}
	return fromManifests(text, objects)
}

// asUTF8 returns a text in UTF-8, without a byte order mark. A text in UTF-16 may lack the mark:
// definitions begin with ASCII, of which each second byte is then 0.
func asUTF8(text []byte) ([]byte, error) {
	order := unicode.LittleEndian
	switch {
	case bytes.HasPrefix(text, []byte("\xff\xfe")), len(text) > 3 && text[1] == 0 && text[3] == 0:
	case bytes.HasPrefix(text, []byte("\xfe\xff")), len(text) > 3 && text[0] == 0 && text[2] == 0:
		order = unicode.BigEndian
	default:
		return bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), nil
	}
	if len(text)%2 != 0 {
		return nil, errors.New("the file is UTF-16, and ends in the middle of a character: it is not complete")
	}
	return unicode.UTF16(order, unicode.UseBOM).NewDecoder().Bytes(text)
}

// jsonObject returns the first line of a text at which a whole JSON object begins, up to its end.
// The lines before it are empty in the result, so that the numbers of lines stay right. It returns
// false if the object is followed by something else than lines of text.
func jsonObject(text []byte) ([]byte, bool) {
	for at := 0; at < len(text); {
		rest := text[at:]
		if trimmed := bytes.TrimLeft(rest, " \t"); bytes.HasPrefix(trimmed, []byte("{")) {
			d := json.NewDecoder(bytes.NewReader(trimmed))
			var object json.RawMessage
			if d.Decode(&object) != nil {
				return nil, false
			}
			lines := bytes.Repeat([]byte("\n"), bytes.Count(text[:at], []byte("\n")))
			after := trimmed[d.InputOffset():]
			return append(lines, object...), len(bytes.TrimSpace(after)) == 0 || isText(after) && at > 0
		}
		next := bytes.IndexByte(rest, '\n')
		if next < 0 || !isText(rest[:next]) {
			return nil, false
		}
		at += next + 1
	}
	return nil, false
}

// isText reports whether bytes are text, which may have the colours of a terminal.
func isText(text []byte) bool {
	return utf8.Valid(text) && !bytes.ContainsFunc(text, func(r rune) bool {
		return r == 0x7f || r < ' ' && !strings.ContainsRune("\r\n\t\x1b", r)
	})
}

// maxUnpacked is the maximum size in bytes of definitions that are compressed.
const maxUnpacked = 16 << 20

// definitionsInside returns the texts and objects below some values that are definitions as
// RabbitMQ exports them. In a Secret they are in base64, and maybe compressed.
func definitionsInside(values any, encoded bool) (found [][]byte) {
	switch v := values.(type) {
	case []any:
		for _, of := range v {
			found = append(found, definitionsInside(of, encoded)...)
		}
	case map[string]any:
		encoded = encoded || v["kind"] == "Secret" || v["kind"] == "ConfigMap"
		if slices.ContainsFunc(slices.Concat(field[[]any](v, "queues"), field[[]any](v, "policies")), func(of any) bool {
			object, _ := of.(map[string]any)
			return object["name"] != nil && object["vhost"] != nil
		}) {
			if b, err := json.Marshal(v); err == nil {
				return [][]byte{b}
			}
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			found = append(found, definitionsInside(v[key], encoded)...)
		}
	case string:
		text := []byte(v)
		if b, err := base64.StdEncoding.DecodeString(v); encoded && err == nil {
			text = b
		}
		if r, err := gzip.NewReader(bytes.NewReader(text)); err == nil {
			text, _ = io.ReadAll(io.LimitReader(r, maxUnpacked)) // a text that is cut is no definitions
		}
		text, _ = asUTF8(text)
		object, _ := jsonObject(text)
		var file map[string]json.RawMessage
		if json.Unmarshal(object, &file) == nil && (file["queues"] != nil || file["policies"] != nil) {
			found = append(found, object)
		}
	}
	return found
}

// sections has the lists of definitions for the kinds of manifests of the messaging topology
// operator (its reference of rabbitmq.com/v1beta1).
var sections = map[string]string{
	"Queue": "queues", "Exchange": "exchanges", "Binding": "bindings", "Policy": "policies",
	"OperatorPolicy": "parameters", "Vhost": "vhosts",
}

// exported has the names that RabbitMQ exports for those fields that the operator names otherwise.
var exported = map[string]string{
	"autoDelete": "auto_delete", "destinationType": "destination_type", "routingKey": "routing_key",
	"applyTo": "apply-to",
}

// fromManifests returns the definitions that the messaging topology operator makes of its
// manifests.
func fromManifests(text []byte, objects []any) ([]byte, error) {
	out := map[string][]any{}
	clusters, others := map[string]bool{}, map[string]bool{}
	for len(objects) > 0 {
		m, _ := objects[0].(map[string]any)
		kind, spec, items := field[string](m, "kind"), field[map[string]any](m, "spec"), field[[]any](m, "items")
		objects = append(items, objects[1:]...)
		section := sections[kind]
		if section == "" || !strings.HasPrefix(field[string](m, "apiVersion"), "rabbitmq.com/") {
			if len(items) == 0 {
				others[kind] = true
			}
			continue
		}
		object := map[string]any{"vhost": "/"}
		for key, value := range spec {
			if value != nil && value != "" {
				object[cmp.Or(exported[key], key)] = value
			}
		}
		switch kind {
		case "Queue":
			if object["type"] != nil {
				arguments := maps.Clone(field[map[string]any](object, "arguments"))
				object["arguments"] = Definition{"x-queue-type": object["type"]}.With(arguments)
				delete(object, "type")
			}
		case "Exchange":
			object["type"] = cmp.Or(field[string](object, "type"), "direct")
		case "OperatorPolicy":
			object = map[string]any{
				"vhost": object["vhost"], "name": object["name"], "component": "operator_policy", "value": object,
			}
		case "Vhost":
			object["metadata"] = map[string]any{"default_queue_type": object["defaultQueueType"]}
		}
		out[section] = append(out[section], object)
		cluster := field[map[string]any](spec, "rabbitmqClusterReference")
		meta := field[map[string]any](m, "metadata")
		namespace := cmp.Or(field[string](cluster, "namespace"), field[string](meta, "namespace"))
		clusters[path.Join(namespace, field[string](cluster, "name"))] = true
	}
	switch {
	case len(out["queues"]) == 0 && len(out["policies"]) == 0 && len(others) > 0 && !others[""]:
		return nil, fmt.Errorf(
			"it has objects of Kubernetes (%s), and none is a Queue or a Policy of rabbitmq.com. %s",
			nameList(slices.Sorted(maps.Keys(others))), exportAdvice,
		)
	case len(out["queues"]) == 0 && len(out["policies"]) == 0:
		return nil, notDefinitions(text, "")
	case len(clusters) > 1:
		return nil, fmt.Errorf(
			"the manifests are for several clusters (%s): give those of one cluster",
			nameList(slices.Sorted(maps.Keys(clusters))),
		)
	}
	return json.Marshal(out)
}

// field returns the value of a key, or the zero value if it has another type.
func field[T any](m map[string]any, key string) T {
	value, _ := m[key].(T)
	return value
}

// notDefinitions names what a file is that has no definitions. The parameter "problem" says what is
// wrong with it as YAML, or is empty.
func notDefinitions(text []byte, problem string) error {
	is := "it is neither JSON nor YAML of Kubernetes"
	if problem != "" {
		is += ": " + problem
	}
	trimmed := bytes.TrimSpace(text)
	starts := func(prefixes ...string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool {
			return len(trimmed) >= len(p) && strings.EqualFold(string(trimmed[:len(p)]), p)
		})
	}
	switch {
	case starts("\x1f\x8b", "PK\x03\x04"):
		is = "it is compressed: unpack it first"
	case starts("<!doctype", "<html"):
		is = "it is a web page, such as the sign-in of a proxy"
	case bytes.Contains(text, []byte("{{")):
		is = "it is a template: run helm template, and give what that writes"
	case starts("["):
		is = "it must be an object, and is a list, as GET /api/queues returns it, or advanced.config"
	case starts("listing ", "timeout: "):
		is = "it is what a command of rabbitmqctl lists"
	case bytes.Contains(text, []byte(`resource "rabbitmq_`)):
		is = "it is a file of Terraform"
	case bytes.Contains(text, []byte("\nmanagement.")) || bytes.Contains(text, []byte("\nlisteners.")) ||
		bytes.Contains(text, []byte("load_definitions")):
		is = "it is rabbitmq.conf"
	}
	return errors.New(is + ". " + exportAdvice)
}

const exportAdvice = "Export definitions with: rabbitmqctl export_definitions definitions.json"
