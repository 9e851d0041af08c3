package internal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/deadletteroffice/dlo/"

// room is a row of the table of dlo's packages: the name of one package, its purpose, and the
// packages of dlo that it may import besides internal/deadletter.
type room struct{ name, is, imports string }

// rooms is the table of all packages of dlo, with the imports that each of them may have. Imports
// point in one direction: from the program to the wiring (internal/server) and the command line,
// then to the faces (the pages and the API). From there, they point to the work rooms (packages
// such as internal/requeue, which do dlo's work), and then to the pure rooms (packages such as
// internal/rules, which only compute). Of the faces and work rooms, only web imports an adapter,
// the store; none imports rabbitmq. Adapters never import work rooms. Work rooms never import each
// other. Each work room declares the methods that it needs, and internal/server asserts that other
// packages have them.
// docs/architecture.md contains this table; `go test ./internal -update` writes it there.
var rooms = []room{
	{"cmd/dlo", "the program: signals and exit codes", "internal/cli internal/server"},
	{"cmd/demo", "`make demo`: a private broker, a shop with bugs, dlo serve; shipped only in the image of the demo", "internal/testenv"},
	{
		"internal/cli", "all commands except serve; links no store and no broker client",
		"docs/examples internal/api internal/backup internal/query internal/config internal/descriptor internal/rules internal/topology",
	},
	{
		"internal/server",
		"wires the rooms together: `dlo serve`, and the commands that open the store file or a broker",
		all + " but cmd/demo internal/cli internal/storetest internal/system internal/testenv",
	},
	{
		"web", "chi router, middleware; handlers of the pages and the JSON API",
		"web/view internal/api internal/config internal/identity internal/operation internal/schemas internal/store internal/rules internal/descriptor internal/payload internal/failure internal/query internal/topology static",
	},
	{"web/view", "templ components and their view models; no input or output", "internal/descriptor internal/failure internal/payload internal/query internal/rules internal/topology static"},
	{"static", "css, js, img; URL(name) with content hash; served by web", ""},
	{
		"internal/ingest",
		"the window protocol: takes letters in, exactly one row each, from inboxes continuously and from other queues once",
		"",
	},
	{"internal/drain", "takes letters once, on request, from queues that are not inboxes", "internal/rules"},
	{"internal/annotation", "records what consumers report about the messages that they reject", ""},
	{
		"internal/classify",
		"after the commit: decodes under a budget, masks summary and error, groups, decides; the indexer writes the search terms of letters",
		"internal/rules internal/payload internal/failure",
	},
	{
		"internal/requeue", "the one publishing path: dispatcher, rates, breakers, the waiters and the watch",
		"internal/rules",
	},
	{
		"internal/operation",
		"plan, start, canary, pace, pause, stop, verdict; redirects; pauses of retries; retention; how groups change state over time",
		"internal/rules internal/query",
	},
	{
		"internal/schemas",
		"descriptor sets: uploads, the watched directory, gRPC servers; owns the registry that decodes bodies",
		"internal/descriptor internal/payload",
	},
	{
		"internal/notify",
		"sends pages, notices and digests from the outbox, one file per channel; decides when a digest is due", "",
	},
	{
		"internal/adopt", "sets the policies of plans on brokers, proves them with a message, and takes them back",
		"internal/topology internal/payload",
	},
	{
		"internal/backup", "makes copies of the store on a schedule, checks them, and rehearses that they can be restored", "",
	},
	{
		"internal/trial",
		"sends a test letter the whole way, so that people see the path before their own letters take it",
		"internal/payload",
	},
	{
		"internal/store", "all SQL; counters and rollups change in the same transaction as the letters",
		"migrations internal/query internal/segment",
	},
	{"internal/segment", "packs the messages of several letters into one compressed blob", ""},
	{"docs/examples", "the example and the JSON schema of the configuration file, inside the program", ""},
	{"migrations", "the schema of the store, applied through goose", ""},
	{"internal/rabbitmq", "all AMQP (sessions, inbox, publisher) and the management API", "internal/topology"},
	{
		"internal/survey", "looks at the dead-letter paths of the vhosts every 30 s, and keeps the latest findings",
		"internal/topology",
	},
	{
		"internal/payload",
		"makes bodies readable: peels encodings and envelopes, decodes under a budget, matches, masks, edits",
		"internal/budget internal/descriptor",
	},
	{
		"internal/descriptor",
		"protobuf types: sets, .proto files (compiled in a process of their own), versions, the cost of decoding a body",
		"internal/budget",
	},
	{"internal/budget", "limits the cost of reading one letter", ""},
	{
		"internal/failure",
		"what a consumer or its framework reports about a failure, and which parts distinguish one cause from another",
		"",
	},
	{
		"internal/rules",
		"Decide and Explain (ordered rules, first match wins), back-off and jitter, Targets (the allow list of requeue targets)",
		"",
	},
	{
		"internal/config", "the YAML configuration file; reports all mistakes together, with line and column",
		"docs/examples internal/identity internal/rules internal/topology",
	},
	{
		"internal/identity",
		"who makes a request: a person whom a trusted proxy names, a user of dlo with a session, or the holder of a token; what each may do",
		"",
	},
	{"internal/query", "the query language: parsed once, errors with position; store compiles it to SQL", ""},
	{"internal/topology", "finds what will lose dead letters in a vhost: a snapshot goes in, findings come out", ""},
	{"internal/api", "the JSON of /api/v1: web writes it, the command line reads it", "internal/descriptor internal/payload internal/rules internal/topology"},
	{"internal/deadletter", "the domain: letters, deaths, origins, states, the sanitiser, typed headers", "nothing"},
	{"internal/system", "tests only: the whole program is killed, disconnected and measured", ""},
	{
		"internal/testenv",
		"tests and `make demo` only: private brokers, a relay that can be cut, a browser, golden pages", "",
	},
	{
		"internal/storetest", "tests only: an empty store, of this version or an older one, and filled values",
		"migrations internal/segment",
	},
	{
		"internal/payload/payloadtest",
		"tests only: messages and bombs, for payload, descriptor, schemas and the corpus", "",
	},
}

// all is a word that can stand in place of a list of imports in the variable "rooms". It means that
// the package may import every package of dlo. The words "all but" precede a list of exceptions.
const all = "all"

// pure is the list of the packages that may import only the standard library and a few packages of
// this module. The variable "rooms" says which packages of this module.
var pure = []string{"internal/deadletter", "internal/query", "internal/failure", "internal/topology"}

// besides lists what pure packages may import from elsewhere: RabbitMQ's patterns have lookahead,
// which the package regexp lacks, and definitions also come as YAML and in UTF-16.
var besides = map[string][]string{
	"internal/topology": {"github.com/dlclark/regexp2", "go.yaml.in/yaml/v3", "golang.org/x/text/encoding/unicode"},
}

type pkg struct {
	ImportPath string
	Imports    []string
	GoFiles    []string
}

// packages returns the packages of dlo, without those that contain only tests.
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
			// because these folders are read, go test runs again after a change in them
			for dir := name; dir != "."; dir = path.Dir(dir) {
				if _, err := os.ReadDir("../" + dir); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// allowed reports whether a package may import another package. The parameter "row" is the row of
// the importing package in the variable "rooms", and "of" is the package that it imports.
func allowed(row, of string) bool {
	if but, ok := strings.CutPrefix(row, all+" but "); ok {
		return !slices.Contains(strings.Fields(but), of)
	}
	return row != "nothing" && of == "internal/deadletter" || slices.Contains(strings.Fields(row), of)
}

// neverLinked contains, for each package, the packages that it must not import, neither directly
// nor through other packages. docs/architecture.md promises this.
var neverLinked = map[string][]string{
	"internal/cli": {
		module + "internal/store", module + "internal/rabbitmq", "github.com/rabbitmq/amqp091-go", "modernc.org/sqlite",
	},
	"internal/payload":    {"net/http", "google.golang.org/grpc"},
	"internal/deadletter": {"net/http"},
	"internal/api":        {"net/http"},
}

// noHTTP is the list of the packages that must not import net/http themselves. They may import it
// through templ.
var noHTTP = []string{"web/view", "static", "internal/payload", "internal/deadletter", "internal/api"}

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
	mayImport := map[string]string{}
	for _, r := range rooms {
		mayImport[r.name] = r.imports
	}
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
			if imported == "net/http" && slices.Contains(noHTTP, name) {
				t.Errorf("%s imports net/http", name)
			}
			if first, _, _ := strings.Cut(
				imported, "/",
			); !ours && slices.Contains(pure, name) && strings.Contains(first, ".") &&
				!slices.Contains(besides[name], imported) {
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
		for _, of := range strings.Fields(strings.TrimPrefix(row, all+" but ")) {
			if _, ok := mayImport[of]; !ok && of != "nothing" {
				t.Errorf("the row of %s names %s, which has no row", name, of)
			}
		}
	}
}

var update = flag.Bool("update", false, "write the table of rooms into docs/architecture.md")

const (
	architecture = "../docs/architecture.md"
	tableBegins  = "<!-- rooms: go test ./internal -update -->\n"
	tableEnds    = "<!-- end of rooms -->\n"
)

// TestTheHouseOfTheDocument checks the table of packages in docs/architecture.md. It must be equal
// to the table that is written from the variable "rooms".
func TestTheHouseOfTheDocument(t *testing.T) {
	t.Parallel()
	var table strings.Builder
	table.WriteString("| room | what it is for | may import, besides internal/deadletter |\n|---|---|---|\n")
	for _, r := range rooms {
		imports := strings.ReplaceAll(r.imports, "internal/", "")
		switch imports {
		case "nothing":
			imports = "nothing but the standard library"
		case "":
			imports = "-"
		}
		fmt.Fprintf(&table, "| %s | %s | %s |\n", r.name, r.is, imports)
	}
	text, err := os.ReadFile(architecture)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(text), tableBegins)
	old, after, ends := strings.Cut(rest, tableEnds)
	if !begins || !ends {
		t.Fatalf("%s has no place for the table: %q and %q", architecture, tableBegins, tableEnds)
	}
	if old == table.String() {
		return
	}
	if !*update {
		t.Fatalf("%s has another table of rooms; go test ./internal -update writes it", architecture)
	}
	if err := os.WriteFile(architecture, []byte(before+tableBegins+table.String()+tableEnds+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
