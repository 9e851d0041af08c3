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
		var of manifest
		if json.Unmarshal(object, &of) != nil || of.Kind == "" || of.Version == "" {
			return object, nil
		}
		text = bytes.TrimLeft(object, "\n")
	} else if trimmed := bytes.TrimSpace(text); len(trimmed) == 0 || trimmed[0] == '{' && !bytes.HasPrefix(trimmed, []byte("{{")) {
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
		queues, _ := v["queues"].([]any)
		policies, _ := v["policies"].([]any)
		if slices.ContainsFunc(append(queues, policies...), func(of any) bool {
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

// manifest is an object of Kubernetes.
type manifest struct {
	Kind    string `json:"kind"`
	Version string `json:"apiVersion"`
	Items   []any  `json:"items"`
	Meta    struct {
		Namespace string `json:"namespace"`
	} `json:"metadata"`
}

// manifestSpec is an object of the messaging topology operator (its reference of
// rabbitmq.com/v1beta1).
type manifestSpec struct {
	Spec struct {
		Name        string                           `json:"name"`
		VHost       string                           `json:"vhost"`
		Type        string                           `json:"type"`
		Durable     bool                             `json:"durable"`
		AutoDelete  bool                             `json:"autoDelete"`
		Arguments   map[string]any                   `json:"arguments"`
		Source      string                           `json:"source"`
		Destination string                           `json:"destination"`
		To          string                           `json:"destinationType"`
		RoutingKey  string                           `json:"routingKey"`
		Pattern     string                           `json:"pattern"`
		ApplyTo     string                           `json:"applyTo"`
		Priority    int                              `json:"priority"`
		Definition  json.RawMessage                  `json:"definition"`
		DefaultType string                           `json:"defaultQueueType"`
		Cluster     struct{ Name, Namespace string } `json:"rabbitmqClusterReference"`
	} `json:"spec"`
}

// fromManifests returns the definitions that the messaging topology operator makes of its
// manifests.
func fromManifests(text []byte, objects []any) ([]byte, error) {
	out := map[string][]any{}
	clusters, others := map[string]bool{}, map[string]bool{}
	for len(objects) > 0 {
		var m manifest
		var of manifestSpec
		b, err := json.Marshal(objects[0])
		if objects = objects[1:]; err != nil || json.Unmarshal(b, &m) != nil {
			continue // YAML that is no object of Kubernetes, or one that JSON cannot express
		}
		objects = append(m.Items, objects...)
		if !strings.HasPrefix(m.Version, "rabbitmq.com/") {
			if len(m.Items) == 0 {
				others[m.Kind] = true
			}
			continue
		}
		if err := json.Unmarshal(b, &of); err != nil {
			return nil, fmt.Errorf("a manifest of the kind %s cannot be read: %w", safeName(m.Kind), err)
		}
		s := of.Spec
		vhost := cmp.Or(s.VHost, "/")
		policy := map[string]any{
			"vhost": vhost, "name": s.Name, "pattern": s.Pattern, "apply-to": cmp.Or(s.ApplyTo, "all"),
			"priority": s.Priority, "definition": s.Definition,
		}
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
			others[m.Kind] = true
			continue
		}
		clusters[path.Join(cmp.Or(s.Cluster.Namespace, m.Meta.Namespace), s.Cluster.Name)] = true
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
		return nil, fmt.Errorf("the manifests are for several clusters (%s): give those of one cluster", nameList(slices.Sorted(maps.Keys(clusters))))
	}
	return json.Marshal(out)
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
