package system

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

var (
	documentCommand = regexp.MustCompile(`^ *(dlo|curl) [-a-z]`)
	exampleLetter   = regexp.MustCompile(`01a1fa78-7cd6-70b7-9438-fd9bc2a425ee|\$ID`)
	exampleFile     = regexp.MustCompile(`\b(body\.json|definitions\.json|new\.yaml|[a-z]+\.(ndjson|csv))\b`)
	makeTarget      = regexp.MustCompile("(?m)(?:^ +|`)make ([a-z-]+)")
)

// runElsewhere is a list of commands of the documents that TestTheCommandsOfTheDocuments does not
// run. The text for a command says why the test does not run it, and which other test runs it.
var runElsewhere = map[string]string{
	"dlo brokers rename":         "TestABrokerIsRenamed runs it; it needs a stopped dlo",
	"dlo backup - ":              "TestBackupsUnderKills runs it; here the output may contain no escapes",
	"dlo restore dlo.db.before":  "TestABackupBeforeAMigration has such a file",
	"dlo leave":                  "TestDloLeaves runs it; it needs a stopped dlo",
	"dlo init":                   "TestTheFirstFile runs it; it asks on a terminal",
	"dlo serve":                  "TestTheFirstFile runs it; here dlo runs already",
	"dlo login ":                 "TestContexts (internal/cli) runs it; here is no such server",
	"dlo letters list --context": "TestContexts (internal/cli) runs it; here is no such context",
	"dlo try":                    "TestATrialOnTheCommandLine runs it; here is no broker",
	"dlo user ":                  "TestTokensOnTheCommandLine runs it; here dlo has no users",
	"dlo token add admin --role admin --store":                 "TestTokensOnTheCommandLine runs it; it needs a stopped dlo",
	"dlo topology apply":                                       "TestAPlanIsAppliedProvedAndUndone runs it; here no broker was looked at",
	"dlo topology undo orders":                                 "TestAPlanIsAppliedProvedAndUndone runs it; here no policy was set",
	"dlo topology leave":                                       "TestAPlanIsAppliedProvedAndUndone runs it; here no policy was set",
	"dlo topology check --broker":                              "TestLostDeadLettersAreFound runs it",
	"dlo topology plan":                                        "TestLostDeadLettersAreFound runs it; here no broker was looked at",
	"dlo letters import sms.ndjson --server http://other:8672": "a second server; TestTheWholeCommandLine imports",
	"curl -u user:password -X DELETE":                          "TestDloIsRemovedByHand runs it",
	"dlo letters list -q 'state:publishing,requeued'":          "TestDloIsRemovedByHand runs it",
}

// TestTheCommandsOfTheDocuments runs every command of dlo and curl in a code block of a document,
// in the order of the document. The server contains letters like those in the examples. Its broker
// is unreachable, so a command that watches an operation would never end. The test therefore runs
// commands without --watch.
func TestTheCommandsOfTheDocuments(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2 {
			return fs.SkipDir
		}
		if filepath.Ext(path) != ".md" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if list := shownCommands(string(text)); len(list) > 0 {
			t.Run(strings.TrimPrefix(path, "../../"), func(t *testing.T) {
				t.Parallel()
				d := newDocument(t)
				for _, command := range list {
					d.run(command)
				}
			})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestTheTargetsOfTheDocuments checks that each make target named in a document exists in the
// Makefile.
func TestTheTargetsOfTheDocuments(t *testing.T) {
	t.Parallel()
	rules, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	documents, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(documents) == 0 {
		t.Fatal("no documents", err)
	}
	for _, path := range append(documents, "../../README.md", "../../CONTRIBUTING.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range makeTarget.FindAllSubmatch(text, -1) {
			if !regexp.MustCompile(`(?m)^` + string(m[1]) + `:`).Match(rules) {
				t.Errorf("%s names make %s, which is no target", path, m[1])
			}
		}
	}
}

// shownCommands returns the commands in the code blocks of a document, without the comments after
// them.
func shownCommands(text string) (list []string) {
	text = regexp.MustCompile(`\\\n\s*`).ReplaceAllString(text, "")
	fenced := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
			continue
		}
		if (fenced || strings.HasPrefix(line, "    ")) && documentCommand.MatchString(line) {
			command, _, _ := strings.Cut(strings.TrimSpace(line), "  #")
			command, _, _ = strings.Cut(command, " # ")
			list = append(list, strings.TrimSpace(command))
		}
	}
	return list
}

// document is a running server with the letters and files that the examples of a document need.
type document struct {
	t       *testing.T
	p       *child
	dir     string
	letters int
	said    string // what the last command printed
}

func newDocument(t *testing.T) *document {
	d := &document{t: t, p: serve(t, "", away, nil).child, dir: t.TempDir()}
	for name, text := range map[string]string{
		"body.json": `{"number": 7}`, "definitions.json": `{"queues": []}`,
		"new.yaml": "rules: [{name: all, match: {queue: \"*\"}, retry: {delays: [5s]}}]\n",
	} {
		if err := os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(d.dir, "backups"), 0o700); err != nil {
		t.Fatal(err)
	}
	d.take("emails", "sms", "billing.invoices", "orders", "payments")
	return d
}

// take imports two letters for each queue. One was received now, and the other 40 days ago. It
// returns the id and the group of the newest letter.
func (d *document) take(queues ...string) (id, group string) {
	d.t.Helper()
	var lines strings.Builder
	for _, queue := range queues {
		lines.WriteString(exportLine(d.letters, queue, 60*24*40) + exportLine(d.letters+1, queue, 0))
		d.letters += 2
	}
	d.p.dlo(d.t.Context(), 0, lines.String(), "letters", "import", "-")
	var out string
	eventually(d.t, "the letters are classified: they are claimed once a second", func() bool {
		out, _ = d.p.dlo(d.t.Context(), 0, "", "letters", "list", "-o", "jsonl", "--limit", "1")
		return d.p.letters("received") == 0 && field(out, "group") != ""
	})
	return field(out, "id"), field(out, "group")
}

// field returns the text of a named field in one line of JSON. If the field is missing, it returns
// "".
func field(line, name string) string {
	m := regexp.MustCompile(`"` + name + `":"([^"]*)"`).FindStringSubmatch(line)
	if m == nil {
		return ""
	}
	return m[1]
}

// run runs a command of the document. It skips the commands in runElsewhere. The method "fill"
// replaces the names in the examples before the command runs.
func (d *document) run(command string) {
	d.t.Helper()
	for part := range runElsewhere {
		if strings.HasPrefix(command, part) {
			return
		}
	}
	filled := d.fill(command)
	if strings.HasPrefix(command, "curl ") {
		out, err := exec.CommandContext(
			d.t.Context(), "sh", "-c", strings.Replace(filled, "curl ", "curl --fail-with-body ", 1),
		).CombinedOutput()
		if err != nil {
			d.t.Errorf("%s: %v\n%s", filled, err, out)
		}
		d.said = string(out)
		return
	}
	filled, file, _ := strings.Cut(filled, " < ")
	input := ""
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			d.t.Fatal(err)
		}
		input = string(text)
	}
	filled, _, _ = strings.Cut(filled, " | ")
	filled, _, _ = strings.Cut(filled, " > ")
	args, err := arguments(filled)
	if err != nil {
		d.t.Fatal(err)
	}
	args = slices.DeleteFunc(args, func(a string) bool { return a == "--watch" })
	if slices.Contains([]string{
		"requeue", "discard", "release", "edit", "apply",
	}, args[1]) && !slices.Contains(args, "--dry-run") && !slices.Contains(args, "--yes") {
		args = append(args, "--yes") // the test has no terminal on which dlo could ask for confirmation
	}
	code := 0
	if command == "dlo topology check" {
		code = 1 // fails because the broker is unreachable
	}
	if strings.Contains(command, "doubt:") && args[1] != "list" {
		code = 2 // fails because no letter of this server is in doubt
	}
	out, errs := d.p.dlo(d.t.Context(), code, input, args...)
	if d.said = out + errs; code == 2 && !strings.Contains(errs, "no letter is selected") {
		d.t.Errorf("%s: %s", command, errs)
	}
}

// fill returns a command of the document with other names. It replaces the letters, groups,
// operations and files of the examples with those of the test's server.
func (d *document) fill(command string) string {
	d.t.Helper()
	for example, queue := range map[string]string{"G-418": "emails", "G-402": "sms"} {
		if strings.Contains(command, example) {
			_, group := d.take(queue)
			command = strings.ReplaceAll(command, example, group)
		}
	}
	if exampleLetter.MatchString(command) {
		id, _ := d.take("emails")
		command = exampleLetter.ReplaceAllString(command, id)
	}
	if strings.Contains(command, "O-77") {
		command = strings.ReplaceAll(command, "O-77", d.operation(command))
	}
	if offered := regexp.MustCompile(`groups undo \d+`).FindString(d.said); offered != "" {
		command = strings.Replace(command, "groups undo 12", offered, 1)
	}
	// the number of letters that the plan of the command before reported
	if strings.Contains(command, `"expect":12480`) {
		now := time.Now().UTC()
		count := regexp.MustCompile(`"letters":(\d+)`).FindStringSubmatch(d.said)
		command = strings.NewReplacer(
			"12480", count[1], "2026-11-20T12:03:10.482Z", now.Add(-2*time.Hour).Format(time.RFC3339),
			"2026-11-20T14:03:10.482Z", now.Format(time.RFC3339Nano),
		).Replace(command)
	}
	command = strings.NewReplacer(
		"localhost:8672", strings.TrimPrefix(d.p.url, "http://"), "/etc/dlo/dlo.yaml", d.p.config,
		"/var/backups/dlo", d.dir+"/backups", "/var/lib/dlo/", d.dir+"/lib/", "copy.db", d.dir+"/copy.db",
	).Replace(command)
	return exampleFile.ReplaceAllString(command, d.dir+"/$1")
}

// operation starts an operation for a command of the document, in the state that this command
// needs. It returns the id of the operation.
func (d *document) operation(command string) string {
	d.t.Helper()
	id, _ := d.take("emails")
	verb := "requeue"
	if strings.Contains(command, "watch") {
		verb = "hold" // a hold ends even while the broker is unreachable
	}
	out, _ := d.p.dlo(d.t.Context(), 0, "", "letters", verb, id, "--yes", "-o", "json")
	if verb == "requeue" && strings.Contains(out, `"state": "done"`) {
		_, letter := d.p.get("/api/v1/letters/" + id)
		d.t.Errorf("the operation is done at once: %s\n%s", out, letter)
	}
	operation := regexp.MustCompile(`"id": "(O-\d+)"`).FindStringSubmatch(out)[1]
	if strings.Contains(command, "resume") || strings.Contains(command, "take-over") {
		d.p.dlo(d.t.Context(), 0, "", "operations", "pause", operation)
	}
	return operation
}
