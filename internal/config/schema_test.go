package config_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/deadletteroffice/dlo/docs/examples"
	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// place is a place for a value in a configuration file. The values of a list and of a map with free
// keys have the path of the list or the map.
type place struct{ path, before, after string }

func (p place) item() place { return place{p.path, p.before + "[", "]" + p.after} }
func (p place) free() place { return place{p.path, p.before + "{k: ", "}" + p.after} }
func (p place) key(name string) place {
	own := place{strings.TrimPrefix(p.path+"."+name, "."), p.before + "{" + name + ": ", "}" + p.after}
	if p.before == "" {
		own.before, own.after = name+": ", ""
	}
	return own
}

// mistakes returns what dlo says about a value at the place: first what it says about the whole
// value, then what it says about parts of it.
func (p place) mistakes(value string) (whole, parts []string) {
	_, err := config.Parse("", p.before+"\n  "+value+"\n  "+p.after, noEnv)
	if wrong, ok := errors.AsType[*config.Error](err); ok {
		for _, m := range wrong.Mistakes {
			switch {
			case m.Line != 2:
			case m.Column == 3:
				whole = append(whole, m.Text)
			default:
				parts = append(parts, m.Text)
			}
		}
	}
	return whole, parts
}

// found returns the group of a regular expression in the first text that it matches.
func found(pattern string, texts []string) []string {
	for _, text := range texts {
		if m := regexp.MustCompile(pattern).FindStringSubmatch(text); m != nil {
			return m[1:]
		}
	}
	return nil
}

// refused matches the mistakes about a value of the wrong kind.
const refused = `(is wanted here$|\bgive )`

type schema = map[string]any

// accepts reports whether dlo says nothing about a whole value at the place.
func (p place) accepts(value string) bool {
	whole, _ := p.mistakes(value)
	return len(whole) == 0
}

// types returns a kind of value as a type of a schema, with null if dlo accepts it at the place.
func (p place) types(kind string) []string {
	if p.before == "" || p.accepts("~") {
		return []string{kind, "null"}
	}
	return []string{kind}
}

// required matches what dlo says about a mapping that lacks keys.
const required = `^(?:(.*) is missing|.*needs (.*?)(?:$|,.*$| for.*$))`

// earlier contains the keys of earlier versions, which dlo accepts and ignores.
var earlier = map[string][]string{"requeue": {"lease"}}

// schemaOf returns what dlo accepts at a place, and calls "each" with the schema of each place. It
// finds that out from the mistakes that dlo reports about values of all kinds.
func (p place) schemaOf(each func(place, schema)) schema {
	s := p.anyOf(each)
	each(p, s)
	return s
}

func (p place) anyOf(each func(place, schema)) schema {
	var kinds []any
	whole, _ := p.mistakes("~")
	if want := found(`^((?:a|one|true|the) .*) is wanted here$`, whole); want != nil {
		kinds = append(kinds, p.scalar(want[0]))
	}
	if whole, _ := p.mistakes("[~]"); p.before != "" && found(refused, whole) == nil {
		list := schema{"type": p.types("array"), "items": p.item().schemaOf(each)}
		if !p.accepts("[]") {
			list["minItems"] = 1
		}
		kinds = append(kinds, list)
	}
	_, parts := p.mistakes("{no_such_key: 1}")
	if p.before == "" {
		_, err := config.Parse("", "no_such_key: 1", noEnv)
		parts = []string{err.Error()}
	}
	if keys := found(`the keys are (.*)$`, parts); keys != nil {
		properties := schema{}
		for _, key := range strings.Split(keys[0], ", ") {
			properties[key] = p.key(key).schemaOf(each)
		}
		for _, key := range earlier[p.path] {
			properties[key] = schema{"description": "has no effect any more"}
		}
		mapping := schema{"type": p.types("object"), "properties": properties, "additionalProperties": false}
		if whole, _ := p.mistakes("{}"); p.before != "" && len(whole) > 0 {
			mapping["minProperties"] = 1
			if m := found(required, whole); m != nil {
				names := slices.DeleteFunc(regexp.MustCompile(`\w+`).FindAllString(m[0]+m[1], -1), func(word string) bool {
					return properties[word] == nil
				})
				mapping["required"] = names
			}
		}
		kinds = append(kinds, mapping)
	} else if whole, _ := p.mistakes("{k: ~}"); found(refused, whole) == nil {
		mapping := schema{"type": p.types("object"), "additionalProperties": p.free().schemaOf(each)}
		if !p.accepts("{}") {
			mapping["minProperties"] = 1
		}
		kinds = append(kinds, mapping)
	}
	if len(kinds) == 1 {
		return kinds[0].(schema)
	}
	return schema{"anyOf": kinds}
}

// scalar returns the schema of a text or a number. The parameter "want" is what dlo says that it
// wants. A variable of the environment can stand in place of a value that is not a text.
func (p place) scalar(want string) schema {
	variable := func(list ...any) schema {
		return schema{"anyOf": append(list, schema{"$ref": "#/definitions/variable"})}
	}
	whole, _ := p.mistakes("zzz")
	if values := found(`(?:is not one of|the roles are|it is one of) (.*)$`, whole); values != nil {
		values := strings.Split(values[0], ", ")
		if !p.accepts(strings.ToUpper(values[0])) {
			return variable(schema{"enum": values})
		}
		pattern := ""
		for _, letter := range strings.Join(values, "|") {
			if pattern += string(letter); letter != '|' {
				pattern = strings.TrimSuffix(pattern, string(letter)) + fmt.Sprintf("[%c%c]", letter, unicode.ToUpper(letter))
			}
		}
		return variable(schema{"type": "string", "pattern": "^(" + pattern + ")$"})
	}
	low, high := "", ""
	if bounds := found(`from (\S+) to ([^ ,]+)`, whole); bounds != nil {
		low, high = bounds[0], bounds[1]
	}
	number := func(kind string) schema {
		a, wrong := strconv.ParseFloat(low, 64)
		b, err := strconv.ParseFloat(high, 64)
		if err := cmp.Or(wrong, err); err != nil {
			panic(fmt.Sprint(p.path, whole, err))
		}
		text := schema{"type": "string", "pattern": `^[-+.0-9eE]+$`}
		return variable(schema{"type": kind, "minimum": a, "maximum": b}, text)
	}
	switch {
	case want == "true or false":
		return variable(schema{"enum": []any{true, false, "true", "false"}})
	case want == "a whole number":
		return number("integer")
	case want == "a number":
		return number("number")
	case strings.HasPrefix(want, "a duration"):
		return variable(schema{"enum": []any{0}}, schema{
			"type": "string", "pattern": `^[-+]?(0|([0-9.]+(ns|us|µs|μs|ms|s|m|h|d))+)$`, "description": want,
		})
	}
	if strings.HasPrefix(want, "a size") {
		text := schema{"type": "string", "pattern": `^\+?[0-9]+ *([KMG]iB)?$`, "description": want}
		return variable(schema{"type": "integer", "minimum": 0}, text)
	}
	types := []string{"string"}
	if slices.ContainsFunc([]string{"1", "0", "-1"}, p.accepts) {
		types = append(types, "number")
	}
	if p.accepts("true") {
		types = append(types, "boolean")
	}
	text := schema{"type": types}
	if !p.accepts("''") {
		text["minLength"] = 1
	}
	if want != "a text" {
		text["description"] = strings.TrimSuffix(want, ",")
	}
	return text
}

// comments returns the comment of each key of the example. Keys in comments count as well.
func comments() map[string]string {
	type open struct {
		indent int
		path   string
	}
	list, stack := map[string]string{}, []open{{-1, ""}}
	line := regexp.MustCompile(`^( *)(?:# )?( *(?:- )?)([a-z_0-9]+):(?: .*)?$`)
	comment := regexp.MustCompile(`: .*?(?:^|\s)# (.+)$`)
	for text := range strings.SplitSeq(examples.Configuration, "\n") {
		m := line.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		indent := len(m[1]) + len(m[2])
		for stack[len(stack)-1].indent >= indent {
			stack = stack[:len(stack)-1]
		}
		path := strings.TrimPrefix(stack[len(stack)-1].path+"."+m[3], ".")
		stack = append(stack, open{indent, path})
		if c := comment.FindStringSubmatch(text); c != nil && list[path] == "" {
			list[path] = strings.TrimSuffix(c[1], " Such as")
		}
	}
	return list
}

// describe adds descriptions and defaults from the example to the keys of a schema. It also adds
// the paths of all keys to a set.
func describe(s schema, path string, example *yaml.Node, comments map[string]string, all map[string]bool) {
	kinds, _ := s["anyOf"].([]any)
	for _, kind := range append(kinds, any(s)) {
		kind := kind.(schema)
		if items, ok := kind["items"].(schema); ok {
			var first *yaml.Node
			if example != nil && example.Kind == yaml.SequenceNode && len(example.Content) > 0 {
				first = example.Content[0]
			}
			describe(items, path, first, comments, all)
		}
		if values, ok := kind["additionalProperties"].(schema); ok {
			describe(values, path, nil, comments, all)
		}
		properties, _ := kind["properties"].(schema)
		for key, p := range properties {
			p, path, value := p.(schema), strings.TrimPrefix(path+"."+key, "."), (*yaml.Node)(nil)
			all[key] = path != "retention.settled" && path != "requeue.lease" // of earlier versions
			for i := 0; example != nil && example.Kind == yaml.MappingNode && i+1 < len(example.Content); i += 2 {
				if example.Content[i].Value == key {
					value = example.Content[i+1]
				}
			}
			if text := comments[path]; text != "" {
				p["description"] = text
			}
			if value != nil && p["properties"] == nil {
				var v any
				if err := value.Decode(&v); err != nil {
					panic(err)
				}
				p["default"] = v
			}
			describe(p, path, value, comments, all)
		}
	}
}

// sayable matches what dlo says about values that the schema refuses too. A schema cannot say that
// a text names a file or a channel, has the form of a URL, a time, an address or a path, that a
// comparison is possible, or that a duration is within bounds.
const sayable = `is wanted here$|needs|is missing$|^give (a list|keys|clauses|true)|: give keys|empty|exactly one|` +
	`whole number|^give a number|is not one of|is not a size|it looks like 250ms, 10s, 1h30m or 30d$`

// compare compares what dlo and a schema say about values of all kinds at a place.
func (p place) compare(t *testing.T, s, variable schema) {
	own := maps.Clone(s)
	own["definitions"] = schema{"variable": variable}
	raw, err := json.Marshal(own)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("s.json", doc); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile("s.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{
		"1", "0", "-1", "1.5", "'1'", "true", "'true'", "~", "[]", "{}", "[~]", "[1]", "[x]", "x", "''", "5s", "'${NO:-1}'",
		"{x: 1}", "[[]]", "[{}]", "[true]", "4096",
	} {
		var v any
		if err := yaml.Unmarshal([]byte(value), &v); err != nil {
			t.Fatal(err)
		}
		whole, parts := p.mistakes(value)
		said := slices.Concat(whole, parts)
		switch err := compiled.Validate(v); {
		case len(said) == 0 && err != nil:
			t.Errorf("%s: %s: dlo accepts it, and the schema says %v", p.path, value, err)
		case err == nil && !strings.Contains(value, "$") && found("("+sayable+")", said) != nil:
			t.Errorf("%s: %s: the schema accepts it, and dlo says %q", p.path, value, said)
		}
	}
}

const schemaFile = "../../docs/examples/dlo.schema.json"

// TestTheSchemaIsWhatDloAccepts compares docs/examples/dlo.schema.json with the keys and types that
// dlo accepts, and with the comments and the defaults of the example. `go test ./internal/config
// -update` writes the schema. Each of its keys must be in the example, at least in a comment. At
// each place, the schema and dlo must say the same about values of all kinds.
func TestTheSchemaIsWhatDloAccepts(t *testing.T) {
	t.Parallel()
	var example yaml.Node
	if err := yaml.Unmarshal([]byte(examples.Configuration), &example); err != nil {
		t.Fatal(err)
	}
	var places []place
	var schemas []schema
	keys, s := map[string]bool{}, place{}.schemaOf(func(p place, s schema) {
		places, schemas = append(places, p), append(schemas, s)
	})
	describe(s, "", example.Content[0], comments(), keys)
	variable := schema{
		"type": "string", "pattern": `\$\{`, "description": "${NAME} or ${NAME:-default}, a variable of the environment",
	}
	for i, p := range places[:len(places)-1] {
		p.compare(t, schemas[i], variable)
	}
	s["$schema"], s["title"] = "http://json-schema.org/draft-07/schema#", "The configuration file of Dead Letter Office"
	s["definitions"] = schema{"variable": variable}
	var text strings.Builder
	out := json.NewEncoder(&text)
	out.SetEscapeHTML(false)
	out.SetIndent("", " ")
	if err := out.Encode(s); err != nil {
		t.Fatal(err)
	}
	testenv.GoldenText(t, "../"+schemaFile, text.String())
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if keys[key] && !regexp.MustCompile(`\b`+key+`\b`).MatchString(examples.Configuration) {
			t.Errorf("%s does not stand in the example", key)
		}
	}
	if len(keys) < 100 {
		t.Errorf("only %d keys were found", len(keys))
	}
}

// TestTheSchemaRefusesWhatDloRefuses compares the schema with dlo itself. What dlo accepts, the
// schema accepts, and both refuse unknown keys and wrong types.
func TestTheSchemaRefusesWhatDloRefuses(t *testing.T) {
	t.Parallel()
	compiled, err := jsonschema.NewCompiler().Compile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	validate := func(text string) error {
		var v any
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(cmp.Or(v, any(map[string]any{})))
		if err != nil {
			return err
		}
		if v, err = jsonschema.UnmarshalJSON(strings.NewReader(string(raw))); err != nil {
			t.Fatal(err)
		}
		return compiled.Validate(v)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("https://example.com"), 0o600); err != nil {
		t.Fatal(err)
	}
	good := []string{
		examples.Configuration,
		everySetting(secret),
		"brokers: [{amqp: {vhost: 1, user: 123}}]\nrequests: '200'\nread_only: 'true'\nrequeue: {lease: 5s}\n",
		"digest: {days: [Mon]}\nrules: [{name: a, match: {error: true, age: '>1h'}}]\nretention: {dead: 0}\n",
		"requests: ${LIMIT:-5}\nread_only: ${READ_ONLY:-true}\nlog: {level: '${LEVEL:-info}'}\n",
		"rules: [{name: a, match: {error: 503, attempts: 3, header: {x: [a, 1]}}}]\n",
		"channels: {a: {smtp: {host: h, from: a@b.c, to: [a@b.c]}}, b: {slack: {url_file: " + secret + "}}}\n",
	}
	mistakes, err := os.ReadFile("testdata/mistakes.golden")
	if err != nil {
		t.Fatal(err)
	}
	for c := range strings.SplitSeq("\n"+string(mistakes), "\n== ") {
		if _, text, _ := strings.Cut(c, "\n"); !strings.Contains(text, "\n-> ") {
			good = append(good, text)
		}
	}
	for _, path := range []string{"../../.ci/release/dlo.yaml", "../../cmd/demo/dlo.yaml"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		good = append(good, string(text))
	}
	for _, text := range good {
		if err := validate(text); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
	}
	for _, text := range []string{
		"no_such_key: 1", "disk: {no: 1}", "brokers: [{nam: x}]", "brokers: [{amqp: {pass: x}}]", "listen: {a: b}",
		"hosts: a", "requests: many", "requests: -1", "ops_open: 1", "log: {level: loud}", "rules: {}",
		"rules: [{retry: {waiter: none}}]", "rules: [{match: {header: x}}]", "channels: {a: {slack: {url: x}}}",
		"grants: [{role: king}]", "digest: {days: [monday]}", "rules: [{}]", "brokers: []", "retention: {dead: 5}",
		"store: null", "requeue: {watch: 10}", "rules: [{name: a, match: null}]", "links: [{name: a}]",
		"grants: [{role: admin}]",
		"brokers: [{rates: {a: fast}}]", "store: [a]",
	} {
		if _, err := load(t, text); err == nil {
			t.Errorf("dlo accepts %s", text)
		}
		if err := validate(text); err == nil {
			t.Errorf("the schema accepts %s", text)
		}
	}
}
