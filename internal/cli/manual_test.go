package cli

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

// serverCommand matches the declaration of a command that opens the file of the store, or connects
// to a broker itself. Such commands are declared in cmd/dlo/main.go.
var serverCommand = regexp.MustCompile(`(\w+)\s+server\.\w+\s+.cmd:"" help:"([^"]*)"`)

// TestTheManualHasEveryCommand checks that the table of commands in docs/cli.md matches the
// program.
func TestTheManualHasEveryCommand(t *testing.T) {
	t.Parallel()
	const path, begin, end = "../../docs/cli.md", "<!-- commands: go test ./internal/cli -update -->\n", "<!-- end of commands -->"
	parser, err := newParser(&struct{}{}, Program{Getenv: os.Getenv})
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	table.WriteString("| command | what it does |\n|---|---|\n")
	program, err := os.ReadFile("../../cmd/dlo/main.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range serverCommand.FindAllStringSubmatch(string(program), -1) {
		fmt.Fprintf(&table, "| `dlo %s` | %s |\n", strings.ToLower(c[1]), c[2])
	}
	for _, leaf := range parser.Model.Leaves(true) {
		help := strings.ReplaceAll(strings.TrimSuffix(leaf.Help, ".")+".", "|", "\\|")
		fmt.Fprintf(&table, "| `dlo %s` | %s |\n", pathOf(leaf), help)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	had, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatal("docs/cli.md has no place for the commands")
	}
	if had != table.String() {
		if !testenv.Updates() {
			t.Fatal("docs/cli.md has other commands: go test ./internal/cli -update")
		}
		if err := os.WriteFile(path, []byte(before+begin+table.String()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	_, codes, _ := strings.Cut(manFile, ".SH EXIT STATUS\n")
	codes, _, _ = strings.Cut(codes, ".SH ")
	list := regexp.MustCompile(`\.TP\n\.B (\d)\n(.*)`).FindAllStringSubmatch(codes, -1)
	for _, code := range list {
		if row := "| " + code[1] + " | " + code[2] + " |\n"; !strings.Contains(before, row) {
			t.Errorf("docs/cli.md has no %s", row)
		}
	}
	if len(list) < 5 {
		t.Errorf("the manual has the exit codes %q", list)
	}
}
