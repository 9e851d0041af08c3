package internal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/deadletteroffice/dlo/"

// mayImport says which packages of ours each package may import, besides internal/deadletter. Arrows point down: from the program
// (cmd/dlo) to the wiring (server) and the command line (cli), to faces (web), to work (ingest, classify, requeue, operation), to the pure
// rooms. Work and faces never import the adapters (store, rabbitmq), and adapters and work rooms never import each other; each declares the
// methods that it needs, and server asserts the fit. The command line knows the API and no store and no broker. No shipped package imports
// testenv or system.
var mayImport = map[string]string{
	"internal/deadletter":          "nothing", // but the standard library, either
	"internal/api":                 "",
	"internal/query":               "",
	"internal/rules":               "",
	"internal/budget":              "",
	"internal/descriptor":          "internal/budget",
	"internal/payload":             "internal/budget internal/descriptor",
	"internal/failure":             "",
	"internal/payload/payloadtest": "", // of the tests of matching, here and in internal/payload/corpus
	"internal/ingest":              "",
	"internal/notify":              "",
	"internal/annotation":          "",
	"internal/drain":               "internal/rules",
	"migrations":                   "",
	"static":                       "",
	"internal/config":              "internal/rules",
	"internal/store":               "migrations internal/query",
	"internal/rabbitmq":            "",
	"internal/classify":            "internal/rules internal/payload internal/failure",
	"internal/requeue":             "internal/rules",
	"internal/schemas":             "internal/descriptor internal/payload",
	"internal/operation":           "internal/rules internal/query",
	"web/view":                     "static",
	"web":                          "web/view internal/api internal/operation internal/rules internal/descriptor internal/payload internal/failure internal/query static",
	"internal/cli":                 "internal/api internal/query internal/config internal/rules",
	"internal/server":              "everything but cmd/demo internal/cli internal/storetest internal/system internal/testenv",
	"internal/storetest":           "migrations", // of the tests that open a store
	"internal/testenv":             "",
	"internal/system":              "nothing", // the tests of the whole program
	"cmd/dlo":                      "internal/cli internal/server",
	"cmd/demo":                     "internal/testenv",
}

// pure are the packages that import nothing but the standard library and what their row allows.
var pure = []string{"internal/deadletter", "internal/api", "internal/query", "internal/failure"}

type pkg struct {
	ImportPath string
	Imports    []string
	GoFiles    []string
}

// packages lists our packages, without those that hold tests only.
func packages(t *testing.T) map[string]pkg {
	t.Helper()
	var stderr bytes.Buffer
	list := exec.Command("go", "list", "-json=ImportPath,Imports,GoFiles", "./...")
	list.Dir, list.Stderr = "..", &stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &stderr)
	}
	found := map[string]pkg{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return found
		} else if err != nil {
			t.Fatal(err)
		}
		if len(p.GoFiles) > 0 {
			name := strings.TrimPrefix(p.ImportPath, module)
			found[name] = p
			for dir := name; dir != "."; dir = path.Dir(dir) { // so that go test takes no cached result after a change
				if _, err := os.ReadDir("../" + dir); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// allowed says whether the row of a package admits an import of ours.
func allowed(row, of string) bool {
	if but, ok := strings.CutPrefix(row, "everything but "); ok {
		return !slices.Contains(strings.Fields(but), of)
	}
	return row != "nothing" && of == "internal/deadletter" || slices.Contains(strings.Fields(row), of)
}

// neverLinked says which packages must not be linked into a package, not even by what it imports: the promises of docs/architecture.md.
var neverLinked = map[string][]string{
	"internal/cli":        {module + "internal/store", module + "internal/rabbitmq", "github.com/rabbitmq/amqp091-go", "modernc.org/sqlite"},
	"internal/payload":    {"net/http", "google.golang.org/grpc"},
	"internal/deadletter": {"net/http"},
	"internal/api":        {"net/http"},
}

func TestWhatIsNeverLinked(t *testing.T) {
	t.Parallel()
	for name, never := range neverLinked {
		list := exec.Command("go", "list", "-deps", "./"+name)
		list.Dir = ".."
		out, err := list.Output()
		if err != nil {
			t.Fatalf("go list -deps %s: %v", name, err)
		}
		for _, of := range strings.Fields(string(out)) {
			if slices.Contains(never, of) {
				t.Errorf("%s links %s", name, of)
			}
		}
	}
}

func TestWhoImportsWhom(t *testing.T) {
	t.Parallel()
	found := packages(t)
	for name, p := range found {
		row, ok := mayImport[name]
		if !ok {
			t.Errorf("package %s is missing from the table", name)
			continue
		}
		for _, imported := range p.Imports {
			of, ours := strings.CutPrefix(imported, module)
			if ours && !allowed(row, of) {
				t.Errorf("%s imports %s, which the table does not allow", name, of)
			}
			if first, _, _ := strings.Cut(imported, "/"); !ours && slices.Contains(pure, name) && strings.Contains(first, ".") {
				t.Errorf("%s imports %s, which is not of the standard library", name, imported)
			}
		}
	}
	for name := range mayImport {
		if _, ok := found[name]; !ok {
			t.Errorf("the table has a row for %s, and there is no such package", name)
		}
	}
	for name, row := range mayImport {
		for _, of := range strings.Fields(strings.TrimPrefix(row, "everything but ")) {
			if _, ok := mayImport[of]; !ok && of != "nothing" {
				t.Errorf("the row of %s names %s, which has no row", name, of)
			}
		}
	}
}
