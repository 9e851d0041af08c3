package web_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// use says whether a type is used in a response or in a request, and whether its zero value is
// omitted.
type use struct{ answer, omitted bool }

// enums holds the values of types that have a fixed set of values. The document must list these
// values.
var enums = map[reflect.Type]any{
	reflect.TypeFor[deadletter.RuleOutcome](): deadletter.RuleOutcomes,
	reflect.TypeFor[deadletter.State]():       deadletter.States,
	reflect.TypeFor[deadletter.Verb]():        deadletter.Actions,
}

// held records that a component of the OpenAPI document was checked against a Go type.
type held struct {
	reflect.Type
	component string
	answer    bool
}

// holdType checks that a schema describes a Go type.
func (c *contract) holdType(t reflect.Type, schema any, at string, u use) {
	if t == reflect.TypeFor[json.RawMessage]() {
		return // this may be any JSON
	}
	schema, null := c.withoutNull(schema)
	pointer := t.Kind() == reflect.Pointer
	if pointer {
		t = t.Elem()
	}
	mayBeNil := !pointer && (t.Kind() == reflect.Slice || t.Kind() == reflect.Map)
	if want := pointer && !u.omitted; u.answer && !mayBeNil && null != want {
		c.say(at, "may be null: %v by the document, %v by %s", null, want, t)
	}
	name := componentOf(schema)
	if !c.sameName(t, name, at) {
		return
	}
	if name != "" {
		at = "component " + name
		once := held{t, name, u.answer}
		if c.once[once] {
			return
		}
		c.once[once] = true
	}
	s, _ := c.resolve(schema).(map[string]any)
	switch t {
	case reflect.TypeFor[api.Text](), reflect.TypeFor[deadletter.Typed]():
		return // the component of the type itself describes it
	case reflect.TypeFor[api.Duration]():
		c.holdKind(s, at, "string", nil, nil)
		return
	case reflect.TypeFor[api.Time]():
		c.holdKind(s, at, "string", "date-time", nil)
		return
	case reflect.TypeFor[time.Time]():
		c.say(at, "is a time.Time, which JSON may give in any zone, and not an api.Time")
		return
	case reflect.TypeFor[[]byte]():
		c.holdKind(s, at, "string", nil, "base64")
		return
	}
	switch t.Kind() {
	case reflect.String:
		c.holdKind(s, at, "string", s["format"], nil) // any format is allowed
		if want, ok := enums[t]; ok && fmt.Sprint(s["enum"]) != fmt.Sprint(want) {
			c.say(at, "is one of %v by the document, and of %v by %s", s["enum"], want, t)
		}
	case reflect.Bool:
		c.holdKind(s, at, "boolean", nil, nil)
	case reflect.Int, reflect.Int64, reflect.Uint8:
		c.holdKind(s, at, "integer", nil, nil)
	case reflect.Float64:
		c.holdKind(s, at, "number", nil, nil)
	case reflect.Slice:
		c.holdKind(s, at, "array", nil, nil)
		c.holdType(t.Elem(), s["items"], at+"[]", use{answer: u.answer})
	case reflect.Map:
		c.holdKind(s, at, "object", nil, nil)
		c.holdMap(t.Elem(), s, at, u)
	case reflect.Struct:
		c.holdStruct(t, s, at, u)
	default:
		c.say(at, "is %s, which the test does not know", t)
	}
}

// withoutNull returns a schema without null, and whether the given schema allowed null.
func (c *contract) withoutNull(schema any) (any, bool) {
	s, _ := schema.(map[string]any)
	isNull := func(v any) bool { return v == "null" || reflect.DeepEqual(v, map[string]any{"type": "null"}) }
	if parts := list(s["anyOf"]); len(parts) == 2 && isNull(parts[1]) {
		return parts[0], true
	}
	types := list(s["type"])
	if !slices.ContainsFunc(types, isNull) {
		return schema, false
	}
	rest := maps.Clone(s)
	rest["type"] = slices.DeleteFunc(slices.Clone(types), isNull)
	return rest, true
}

// componentOf returns the name of the component to which a schema refers. It returns "" if the
// schema is inline.
func componentOf(schema any) string {
	s, _ := schema.(map[string]any)
	ref, _ := s["$ref"].(string)
	return strings.TrimPrefix(ref, "#/components/schemas/")
}

// sameName checks the component with which the document describes a type of internal/api. The
// component must have the same name as the type, and no other type may use it. sameName also
// records that the type is used.
func (c *contract) sameName(t reflect.Type, name, at string) bool {
	own := ""
	if t == reflect.TypeFor[api.Time]() {
		c.reached[t.Name()] = true
		return true
	}
	if t.PkgPath() == reflect.TypeFor[api.Problem]().PkgPath() || t == reflect.TypeFor[deadletter.Typed]() {
		own = t.Name()
		c.reached[own] = true
	}
	_, ours := c.exported[name]
	described := c.valueAt(c.root, "components", "schemas", own) != nil
	switch {
	case name == own || !ours && !described:
		return true
	case name == "":
		c.say(at, "is described in place, and the component %s is not used", own)
	default:
		c.say(at, "is the component %s, and %s", name, t)
	}
	return false
}

// holdKind checks the keywords of a schema for the JSON type, its format and its encoding.
func (c *contract) holdKind(s map[string]any, at, kind string, format, encoding any) {
	if types := list(s["type"]); len(types) != 1 || types[0] != kind {
		c.say(at, "is %v by the document, and not %s", types, kind)
	}
	if s["format"] != format || s["contentEncoding"] != encoding {
		c.say(
			at, "has format %v and encoding %v by the document, and not %v and %v", s["format"], s["contentEncoding"],
			format, encoding,
		)
	}
}

// holdMap checks the schema of an object against the value type of a Go map. It accepts a schema
// that lists the keys of the map.
func (c *contract) holdMap(value reflect.Type, s map[string]any, at string, u use) {
	properties, _ := s["properties"].(map[string]any)
	for name, p := range properties {
		c.holdType(value, p, at+"."+name, use{answer: u.answer})
	}
	if more, ok := s["additionalProperties"].(map[string]any); ok || properties == nil {
		c.holdType(value, more, at+".*", use{answer: u.answer})
	}
}

// holdStruct checks the schema of an object against a struct.
func (c *contract) holdStruct(t reflect.Type, s map[string]any, at string, u use) {
	fields := map[string]jsonField{}
	c.flatten(t, fields, at, u)
	properties, required := c.members(s, t, at)
	for name, f := range fields {
		p, ok := properties[name]
		if !ok {
			c.say(at+"."+name, "is not in the document")
			continue
		}
		c.holdType(f.Type, p, at+"."+name, use{u.answer, f.omitted})
		if required[name] == f.omitted {
			c.say(at+"."+name, "is required: %v by the document, %v by %s", required[name], !f.omitted, t)
		}
	}
	for name := range properties {
		if _, ok := fields[name]; !ok {
			c.say(at+"."+name, "is in the document, and not in %s", t)
		}
	}
	for name := range required {
		if properties[name] == nil {
			c.say(at+"."+name, "is required, and not described")
		}
	}
}

// jsonField is a field of a struct as encoding/json handles it.
type jsonField struct {
	reflect.Type
	omitted bool // the field is omitted if it is zero
}

// flatten collects the fields of a struct by their JSON names, including those of embedded structs.
// If an embedded struct has a field with the same name as the outer struct, the outer field counts.
// If the document has a component for an embedded struct, flatten also checks the struct against
// it.
func (c *contract) flatten(t reflect.Type, into map[string]jsonField, at string, u use) {
	for i := range t.NumField() {
		if f := t.Field(i); f.Anonymous {
			c.flatten(f.Type, into, at, u)
			if c.reached[f.Type.Name()] = true; c.valueAt(c.root, "components", "schemas", f.Type.Name()) != nil {
				c.holdType(f.Type, map[string]any{"$ref": "#/components/schemas/" + f.Type.Name()}, at, u)
			}
		}
	}
	for i := range t.NumField() {
		if f := t.Field(i); !f.Anonymous {
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			into[name] = jsonField{f.Type, options == "omitempty" || options == "omitzero"}
		}
	}
}

// members returns the properties that a schema allows, and which of them are required. This
// includes the schemas in its "allOf". If one of those is a component, the Go type must embed the
// struct of the same name.
func (c *contract) members(
	s map[string]any, t reflect.Type, at string,
) (properties map[string]any, required map[string]bool) {
	properties, required = map[string]any{}, map[string]bool{}
	if s["allOf"] == nil {
		c.holdKind(s, at, "object", nil, nil)
	}
	own, _ := s["properties"].(map[string]any)
	maps.Copy(properties, own)
	for _, name := range list(s["required"]) {
		required[name.(string)] = true
	}
	for _, part := range list(s["allOf"]) {
		if name := componentOf(part); name != "" {
			if f, found := t.FieldByName(name); !found || !f.Anonymous {
				c.say(at, "has all of %s by the document, which %s does not embed", name, t)
			}
		}
		p, r := c.members(c.resolve(part).(map[string]any), t, at)
		maps.Copy(properties, p)
		maps.Copy(required, r)
	}
	return properties, required
}
