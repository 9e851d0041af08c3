package web_test

import (
	"encoding/base64"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"go.yaml.in/yaml/v3"
)

// document is openapi.yaml, and a record of which of its parts were used.
type document struct {
	root map[string]any
	used map[string]bool // each $ref; true = a request or response was checked against it
}

func readDocument(t *testing.T, h *house) *document {
	t.Helper()
	d := &document{used: map[string]bool{}}
	if err := yaml.Unmarshal([]byte(h.get("/api/v1/openapi.yaml").want(t, 200).text), &d.root); err != nil {
		t.Fatal(err)
	}
	return d
}

// valueAt follows a path of keys in the document. It resolves references on the way.
func (d *document) valueAt(v any, keys ...string) any {
	v = d.resolve(v)
	for _, k := range keys {
		m, _ := v.(map[string]any)
		v = d.resolve(m[k])
	}
	return v
}

// resolve returns the object to which a $ref points. If the object with the $ref has other keys,
// they are added to the result.
func (d *document) resolve(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	ref, ok := m["$ref"].(string)
	if !ok {
		return v
	}
	d.used[ref] = true
	target := d.valueAt(d.root, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
	if target == nil {
		panic("nothing at " + ref)
	}
	if len(m) == 1 {
		return target
	}
	both := map[string]any{}
	for k, v := range target.(map[string]any) {
		both[k] = v
	}
	for k, v := range m {
		if k != "$ref" {
			both[k] = v
		}
	}
	return both
}

// known contains the JSON Schema keywords that the method "violations" understands. Any other
// keyword in the document fails the test, so that the test ignores no keyword.
var known = []string{
	"type", "enum", "const", "required", "properties", "additionalProperties", "items", "allOf", "anyOf", "pattern",
	"format", "contentEncoding", "minLength", "maxLength", "minItems", "maxItems",
	"minimum", "maximum", "exclusiveMinimum", "default", "description",
}

// violations returns the places where a value violates a schema. If the schema allows only the keys
// that it names, any other key of the value is a violation too.
func (d *document) violations(schema, v any, at string) []string {
	wrong, named, open := d.check(schema, v, at)
	if m, ok := v.(map[string]any); ok && !open {
		for k := range m {
			if !named[k] {
				wrong = append(wrong, at+"."+k+" is not described")
			}
		}
	}
	return wrong
}

func (d *document) check(schema, v any, at string) (wrong []string, named map[string]bool, open bool) {
	s, _ := d.resolve(schema).(map[string]any)
	named = map[string]bool{}
	say := func(format string, args ...any) { wrong = append(wrong, at+" "+fmt.Sprintf(format, args...)) }
	for word := range s {
		if !slices.Contains(known, word) {
			say("is described with %q, which the test does not know", word)
		}
	}
	if types := list(s["type"]); len(types) > 0 && !slices.ContainsFunc(types, func(t any) bool { return isOf(t, v) }) {
		say("is %T, and not %v", v, types)
		return wrong, named, true
	}
	if all := list(s["enum"]); len(all) > 0 && !slices.Contains(all, v) {
		say("is %v, and not one of %v", v, all)
	}
	if want, ok := s["const"]; ok && fmt.Sprint(want) != fmt.Sprint(v) {
		say("is %v, and not %v", v, want)
	}
	switch v := v.(type) {
	case string:
		wrong = append(wrong, text(s, v, at)...)
	case float64:
		if n, ok := number(s["minimum"]); ok && v < n {
			say("is %v, less than %v", v, n)
		}
		if n, ok := number(s["maximum"]); ok && v > n {
			say("is %v, more than %v", v, n)
		}
		if n, ok := number(s["exclusiveMinimum"]); ok && v <= n {
			say("is %v, not more than %v", v, n)
		}
	case []any:
		for i, e := range v {
			wrong = append(wrong, d.violations(s["items"], e, fmt.Sprintf("%s[%d]", at, i))...)
		}
	case map[string]any:
		for _, k := range list(s["required"]) {
			if _, ok := v[k.(string)]; !ok {
				say("has no %s", k)
			}
		}
		properties, _ := s["properties"].(map[string]any)
		more, closed := s["additionalProperties"]
		open = properties == nil && !closed && s["allOf"] == nil && s["anyOf"] == nil
		for k, e := range v {
			if p, ok := properties[k]; ok {
				named[k] = true
				wrong = append(wrong, d.violations(p, e, at+"."+k)...)
			} else if sub, ok := more.(map[string]any); ok {
				named[k] = true
				wrong = append(wrong, d.violations(sub, e, at+"."+k)...)
			}
		}
	}
	for _, part := range list(s["allOf"]) {
		w, n, o := d.check(part, v, at)
		wrong, open = append(wrong, w...), open || o
		for k := range n {
			named[k] = true
		}
	}
	if parts := list(s["anyOf"]); len(parts) > 0 &&
		!slices.ContainsFunc(parts, func(part any) bool { return len(d.violations(part, v, at)) == 0 }) {
		say("is none of what it may be")
	} else if len(parts) > 0 {
		open = true
	}
	return wrong, named, open
}

// uniformTime matches every time of the API.
var uniformTime = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?Z$`)

func text(s map[string]any, v, at string) (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, at+" "+fmt.Sprintf(format, args...)) }
	switch s["format"] {
	case "date-time":
		if _, err := time.Parse(time.RFC3339, v); err != nil || !uniformTime.MatchString(v) {
			say("is %q, and no time in UTC with at most 3 digits after the second", v)
		}
	case "uuid":
		if _, err := deadletter.ParseID(v); err != nil {
			say("is %q, and no id", v)
		}
	}
	if s["contentEncoding"] == "base64" {
		if _, err := base64.StdEncoding.DecodeString(v); err != nil {
			say("is no base64")
		}
	}
	if p, ok := s["pattern"].(string); ok && !regexp.MustCompile(p).MatchString(v) {
		say("is %q, and not like %s", v, p)
	}
	if n, ok := number(s["maxLength"]); ok && float64(len(v)) > n {
		say("is longer than %v", n)
	}
	if n, ok := number(s["minLength"]); ok && float64(len(v)) < n {
		say("is shorter than %v", n)
	}
	return wrong
}

func list(v any) []any {
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		return v
	}
	return []any{v}
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

func isOf(name, v any) bool {
	switch v := v.(type) {
	case nil:
		return name == "null"
	case bool:
		return name == "boolean"
	case string:
		return name == "string"
	case float64:
		return name == "number" || name == "integer" && v == math.Trunc(v)
	case []any:
		return name == "array"
	case map[string]any:
		return name == "object"
	}
	return false
}
