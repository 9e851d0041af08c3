package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-chi/chi/v5"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestTheDocument holds the committed OpenAPI documents to the calls, their types and their
// comments.
func TestTheDocument(t *testing.T) {
	t.Parallel()
	doc := Document()
	s := readSource(t, ".", "../internal/api", "../internal/deadletter", "../internal/descriptor", "../internal/payload",
		"../internal/rules", "../internal/topology")
	s.describe(t, doc)
	newer, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	older, err := doc.Downgrade()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"openapi.json": newer, "openapi-3.0.json": older} {
		var b bytes.Buffer
		if err := json.Indent(&b, text, "", " "); err != nil {
			t.Fatal(err)
		}
		testenv.GoldenText(t, "../"+name, b.String()+"\n")
	}
	manual, err := os.ReadFile("../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(manual), "| call |")
	_, after, _ := strings.Cut(rest, "\n\n")
	testenv.GoldenText(t, "../../docs/api.md", before+callTable(doc)+"\n"+after)
}

// callTable returns a table of the calls, for docs/api.md.
func callTable(doc *huma.OpenAPI) string {
	var b strings.Builder
	b.WriteString("| call | does |\n|---|---|\n")
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		item := doc.Paths[path]
		for _, o := range []*huma.Operation{item.Get, item.Post, item.Patch, item.Delete} {
			if o != nil {
				fmt.Fprintf(&b, "| %s %s | %s |\n", o.Method, path, o.Summary)
			}
		}
	}
	return b.String()
}

// Document returns the description of the API, without comments.
func Document() *huma.OpenAPI { return (&Web{}).mount(chi.NewRouter(), chi.NewRouter()) }

// source has the comments and types of Go packages. Types have names such as web.Web.
type source struct {
	comments     map[string]string // of functions
	typeComments map[string]string
	types        map[string]ast.Expr
	inputs       map[string]ast.Expr // the type of the second parameter of each function
}

func readSource(t *testing.T, folders ...string) *source {
	t.Helper()
	s := &source{map[string]string{}, map[string]string{}, map[string]ast.Expr{}, map[string]ast.Expr{}}
	for _, folder := range folders {
		files, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), folder+"/"+f.Name(), nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range file.Decls {
				s.add(file.Name.Name, d)
			}
		}
	}
	return s
}

func (s *source) add(in string, d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		s.comments[d.Name.Name] = sentences(d.Doc.Text())
		if list := d.Type.Params.List; len(list) > 1 {
			s.inputs[d.Name.Name] = list[1].Type
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if typ, ok := spec.(*ast.TypeSpec); ok {
				doc := typ.Doc
				if doc == nil {
					doc = d.Doc
				}
				name := in + "." + typ.Name.Name
				s.typeComments[name], s.types[name] = sentences(doc.Text()), typ.Type
			}
		}
	}
}

// sentences returns a comment as one paragraph for each of its paragraphs.
func sentences(comment string) string {
	parts := strings.Split(strings.TrimSpace(comment), "\n\n")
	for i := range parts {
		parts[i] = strings.ReplaceAll(parts[i], "\n", " ")
	}
	return strings.Join(parts, "\n\n")
}

// fields adds the comments of the fields of a type to a map, by their names in JSON and in URLs.
// Names in the type are those of package "in".
func (s *source) fields(in string, t ast.Expr, into map[string]string) {
	switch t := t.(type) {
	case *ast.StarExpr:
		s.fields(in, t.X, into)
	case *ast.Ident:
		s.fields(in, s.types[in+"."+t.Name], into)
	case *ast.SelectorExpr:
		of := t.X.(*ast.Ident).Name
		s.fields(of, s.types[of+"."+t.Sel.Name], into)
	case *ast.StructType:
		for _, f := range t.Fields.List {
			if len(f.Names) == 0 {
				s.fields(in, f.Type, into)
				continue
			}
			if f.Tag == nil {
				continue
			}
			tag, _ := strconv.Unquote(f.Tag.Value)
			for _, key := range []string{"json", "query", "path", "header"} {
				name, _, _ := strings.Cut(reflect.StructTag(tag).Get(key), ",")
				if text := sentences(f.Doc.Text() + f.Comment.Text()); name != "" && text != "" {
					into[name] = text
				}
			}
		}
	}
}

// describe adds the comments to a document.
func (s *source) describe(t *testing.T, doc *huma.OpenAPI) {
	t.Helper()
	tags := map[string]bool{}
	for _, at := range doc.Paths {
		for _, op := range []*huma.Operation{at.Get, at.Post, at.Patch, at.Delete} {
			if op != nil {
				s.describeCall(t, op)
				tags[groupOfCall(op)] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		doc.Tags = append(doc.Tags, &huma.Tag{Name: name})
	}
	for name, schema := range doc.Components.Schemas.Map() {
		of := doc.Components.Schemas.TypeFromRef("#/components/schemas/" + name)
		schema.Description = s.typeComments[of.String()]
		comments := map[string]string{}
		s.fields(path.Base(of.PkgPath()), s.types[of.String()], comments)
		for _, key := range slices.Sorted(maps.Keys(schema.Properties)) {
			if p := schema.Properties[key]; p.Ref == "" && p.Description == "" {
				p.Description = comments[key]
			}
		}
	}
}

// groupOfCall returns the group of a call, which is the first part of its path.
func groupOfCall(op *huma.Operation) string {
	name, _, _ := strings.Cut(strings.Split(op.Path, "/")[1], ".")
	return name
}

var afterSentence = regexp.MustCompile(`\.\s`)

func (s *source) describeCall(t *testing.T, op *huma.Operation) {
	t.Helper()
	text, ok := strings.CutPrefix(s.comments[op.OperationID], op.OperationID+" ")
	if !ok {
		t.Errorf("%s %s: the comment of %s does not begin with its name", op.Method, op.Path, op.OperationID)
		return
	}
	parts := afterSentence.Split(strings.ToUpper(text[:1])+text[1:], 2)
	op.Summary = strings.TrimSuffix(parts[0], ".")
	if len(parts) > 1 {
		op.Description = parts[1]
	}
	op.Tags = []string{groupOfCall(op)}
	op.Responses["4XX"] = op.Responses["default"]
	comments := map[string]string{}
	s.fields("web", s.inputs[op.OperationID], comments)
	for _, p := range op.Parameters {
		p.Description = comments[p.Name]
	}
}
