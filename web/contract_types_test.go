package web_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/api"
	"go.yaml.in/yaml/v3"
)

// TestTheDocumentHasTheTypesOfTheAPI checks openapi.yaml against the structs that package web
// writes and the command line reads. It compares names, types, required fields and nullable fields
// in both directions.
func TestTheDocumentHasTheTypesOfTheAPI(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := contract{
		document: document{used: map[string]bool{}},
		exported: exportedTypes(t),
		reached:  map[string]bool{},
		once:     map[held]bool{},
	}
	if err := yaml.Unmarshal(text, &c.root); err != nil {
		t.Fatal(err)
	}
	described := map[string]bool{}
	for path, v := range c.root["paths"].(map[string]any) {
		for method, v := range v.(map[string]any) {
			name := strings.ToUpper(method) + " " + path
			described[name] = true
			row, ok := calls[name]
			if !ok {
				c.say(name, "is missing in the table of calls")
				continue
			}
			c.holdCall(name, row, v)
		}
	}
	for name := range calls {
		if !described[name] {
			c.say(name, "is in the table of calls, and not in the document")
		}
	}
	for name, structure := range c.exported {
		if structure && !c.reached[name] {
			c.say("api."+name, "is in no call of the document")
		}
	}
	slices.Sort(c.wrong)
	for _, wrong := range slices.Compact(c.wrong) {
		t.Error(wrong)
	}
}

// exportedTypes returns the exported types of internal/api by name. The value is true if the type
// is a struct.
func exportedTypes(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("../internal/api/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal("there are no files of internal/api", err)
	}
	types := map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok && spec.Name.IsExported() {
				_, types[spec.Name.Name] = spec.Type.(*ast.StructType)
			}
			return true
		})
	}
	return types
}

// contract compares openapi.yaml with the Go types.
type contract struct {
	document
	exported map[string]bool // types of internal/api; true = the type is a struct
	reached  map[string]bool // exported types that an operation uses
	once     map[held]bool   // components that have been checked
	wrong    []string
}

func (c *contract) say(at, format string, args ...any) {
	c.wrong = append(c.wrong, at+" "+fmt.Sprintf(format, args...))
}

// holdCall checks an operation of the document against its entry in the table "calls".
func (c *contract) holdCall(name string, row call, operation any) {
	c.holdJSON(name+" takes", row.takes, c.valueAt(operation, "requestBody"), false)
	for status, response := range c.valueAt(operation, "responses").(map[string]any) {
		gives := row.gives
		if statuses, ok := gives.(byStatus); ok {
			gives = statuses[status]
		}
		if !strings.HasPrefix(status, "2") {
			gives = api.Problem{}
		}
		c.holdJSON(name+" gives", gives, response, true)
	}
	if statuses, ok := row.gives.(byStatus); ok {
		for status := range statuses {
			if c.valueAt(operation, "responses", status) == nil {
				c.say(name, "has no answer %s", status)
			}
		}
	}
}

// holdJSON checks the JSON of a request or a response against its Go type.
func (c *contract) holdJSON(at string, want, message any, answer bool) {
	var schema any
	for _, kind := range []string{"application/json", "application/problem+json", "application/x-ndjson"} {
		if content, ok := c.valueAt(message, "content", kind).(map[string]any); ok {
			schema = content["schema"]
		}
	}
	switch want := want.(type) {
	case nil:
		if schema != nil {
			c.say(at, "JSON by the document, and none by the table")
		}
	case either:
		parts := list(c.valueAt(schema, "anyOf"))
		if len(parts) != len(want) {
			c.say(at, "one of %d types by the document, and of %d by the table", len(parts), len(want))
			return
		}
		for i, v := range want {
			c.holdType(reflect.TypeOf(v), parts[i], at, use{answer: answer})
		}
	default:
		if schema == nil {
			c.say(at, "no JSON by the document, and %T by the table", want)
			return
		}
		c.holdType(reflect.TypeOf(want), schema, at, use{answer: answer})
	}
}
