package topology

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf16"

	"go.yaml.in/yaml/v3"
)

// definitionsIn finds the definitions in a file as people keep them. It returns JSON as RabbitMQ
// exports it. The file may be in UTF-8 or UTF-16, and may have other lines before the JSON, such as
// what rabbitmqctl says or the headers of a response. It may be YAML or JSON of Kubernetes: an
// object whose texts contain the definitions (ConfigMap, Secret, values of a chart), or manifests
// of the messaging topology operator (rabbitmq.com/v1beta1).
func definitionsIn(text []byte) ([]byte, error) {
	text, err := asUTF8(text)
	if err != nil {
		return nil, err
	}
	if object, found := jsonObject(text); found {
		var of manifest
		if json.Unmarshal(object, &of) != nil || of.Kind == "" || of.Version == "" {
			return object, nil
		}
		text = bytes.TrimLeft(object, "\n")
	} else if trimmed := bytes.TrimSpace(text); len(trimmed) == 0 || trimmed[0] == '{' {
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
	order := binary.ByteOrder(nil)
	switch {
	case bytes.HasPrefix(text, []byte("\xef\xbb\xbf")):
		return text[3:], nil
	case bytes.HasPrefix(text, []byte("\xff\xfe")):
		order, text = binary.LittleEndian, text[2:]
	case bytes.HasPrefix(text, []byte("\xfe\xff")):
		order, text = binary.BigEndian, text[2:]
	case len(text) > 3 && text[1] == 0 && text[3] == 0:
		order = binary.LittleEndian
	case len(text) > 3 && text[0] == 0 && text[2] == 0:
		order = binary.BigEndian
	default:
		return text, nil
	}
	if len(text)%2 != 0 {
		return nil, errors.New("the file is UTF-16, and ends in the middle of a character: it is not complete")
	}
	units := make([]uint16, len(text)/2)
	for i := range units {
		units[i] = order.Uint16(text[2*i:])
	}
	return []byte(string(utf16.Decode(units))), nil
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
			return append(lines, object...), len(bytes.TrimSpace(after)) == 0 || asciiText(after) && at > 0
		}
		next := bytes.IndexByte(rest, '\n')
		if next < 0 || !asciiText(rest[:next]) {
			return nil, false
		}
		at += next + 1
	}
	return nil, false
}

// asciiText reports whether a text has printable ASCII only.
func asciiText(text []byte) bool {
	return !bytes.ContainsFunc(text, func(r rune) bool { return r >= 0x7f || r < ' ' && !strings.ContainsRune("\r\n\t", r) })
}

// definitionsInside returns the texts below some values that are definitions as RabbitMQ exports
// them. In a Secret they are in base64.
func definitionsInside(values any, encoded bool) (found [][]byte) {
	switch v := values.(type) {
	case []any:
		for _, of := range v {
			found = append(found, definitionsInside(of, encoded)...)
		}
	case map[string]any:
		encoded = encoded || v["kind"] == "Secret" || v["kind"] == "ConfigMap"
		for _, key := range slices.Sorted(maps.Keys(v)) {
			found = append(found, definitionsInside(v[key], encoded)...)
		}
	case string:
		text := []byte(v)
		if b, err := base64.StdEncoding.DecodeString(v); encoded && err == nil {
			text = b
		}
		object, _ := jsonObject(text)
		var file map[string]json.RawMessage
		if json.Unmarshal(object, &file) == nil && (file["queues"] != nil || file["policies"] != nil) {
			found = append(found, object)
		}
	}
	return found
}

// manifest is an object of Kubernetes. The fields of the specification are those of the messaging
// topology operator (its reference of rabbitmq.com/v1beta1).
type manifest struct {
	Kind    string     `json:"kind"`
	Version string     `json:"apiVersion"`
	Items   []manifest `json:"items"`
	Spec    struct {
		Name        string                `json:"name"`
		VHost       string                `json:"vhost"`
		Type        string                `json:"type"`
		Durable     bool                  `json:"durable"`
		AutoDelete  bool                  `json:"autoDelete"`
		Arguments   map[string]any        `json:"arguments"`
		Source      string                `json:"source"`
		Destination string                `json:"destination"`
		To          string                `json:"destinationType"`
		RoutingKey  string                `json:"routingKey"`
		Pattern     string                `json:"pattern"`
		ApplyTo     string                `json:"applyTo"`
		Priority    int                   `json:"priority"`
		Definition  json.RawMessage       `json:"definition"`
		DefaultType string                `json:"defaultQueueType"`
		Cluster     struct{ Name string } `json:"rabbitmqClusterReference"`
	} `json:"spec"`
}

// fromManifests returns the definitions that the messaging topology operator makes of its
// manifests.
func fromManifests(text []byte, objects []any) ([]byte, error) {
	var list []manifest
	if b, err := json.Marshal(objects); err != nil || json.Unmarshal(b, &list) != nil {
		return nil, notDefinitions(text, "")
	}
	out := map[string][]any{}
	clusters, others := map[string]bool{}, map[string]bool{}
	for len(list) > 0 {
		m := list[0]
		list = append(m.Items, list[1:]...)
		s := m.Spec
		vhost := cmp.Or(s.VHost, "/")
		policy := map[string]any{
			"vhost": vhost, "name": s.Name, "pattern": s.Pattern, "apply-to": cmp.Or(s.ApplyTo, "all"),
			"priority": s.Priority, "definition": s.Definition,
		}
		if !strings.HasPrefix(m.Version, "rabbitmq.com/") {
			if len(m.Items) == 0 {
				others[m.Kind] = true
			}
			continue
		}
		clusters[s.Cluster.Name] = true
		switch m.Kind {
		case "Queue":
			arguments := maps.Clone(s.Arguments)
			if s.Type != "" {
				arguments = map[string]any{"x-queue-type": s.Type}
				maps.Copy(arguments, s.Arguments)
			}
			out["queues"] = append(out["queues"], map[string]any{
				"vhost": vhost, "name": s.Name, "durable": s.Durable, "auto_delete": s.AutoDelete, "arguments": arguments,
			})
		case "Exchange":
			out["exchanges"] = append(out["exchanges"], map[string]any{
				"vhost": vhost, "name": s.Name, "type": cmp.Or(s.Type, "direct"), "durable": s.Durable,
				"auto_delete": s.AutoDelete, "arguments": s.Arguments,
			})
		case "Binding":
			out["bindings"] = append(out["bindings"], map[string]any{
				"vhost": vhost, "source": s.Source, "destination": s.Destination, "destination_type": s.To,
				"routing_key": s.RoutingKey, "arguments": s.Arguments,
			})
		case "Policy":
			out["policies"] = append(out["policies"], policy)
		case "OperatorPolicy":
			out["parameters"] = append(out["parameters"], map[string]any{
				"vhost": vhost, "name": s.Name, "component": "operator_policy", "value": policy,
			})
		case "Vhost":
			metadata := map[string]string{"default_queue_type": s.DefaultType}
			out["vhosts"] = append(out["vhosts"], map[string]any{"name": s.Name, "metadata": metadata})
		default:
			delete(clusters, s.Cluster.Name)
			others[m.Kind] = true
		}
	}
	switch {
	case len(out["queues"]) == 0 && len(out["policies"]) == 0 && len(others) > 0 && !others[""]:
		return nil, notDefinitions(
			text, "it has manifests of Kubernetes ("+namesOf(others)+"), and none is a Queue or a Policy of rabbitmq.com",
		)
	case len(out["queues"]) == 0 && len(out["policies"]) == 0:
		return nil, notDefinitions(text, "")
	case len(clusters) > 1:
		return nil, fmt.Errorf("the manifests are for several clusters (%s): give those of one cluster", namesOf(clusters))
	}
	return json.Marshal(out)
}

// namesOf returns the safe names of a set, sorted.
func namesOf(set map[string]bool) string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(set)) {
		names = append(names, safeName(name))
	}
	return strings.Join(names[:min(len(names), 10)], ", ")
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
