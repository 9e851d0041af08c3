package system

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestWhoMayRunEachCommand lists two facts for each command: the lowest role that may make its API
// calls, and whether the grant has to be for all queues. The roles of the calls are in
// web/testdata/access.txt, and a test checks them with requests. A new command changes the list.
func TestWhoMayRunEachCommand(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../web/testdata/access.txt")
	if err != nil {
		t.Fatal(err)
	}
	roles := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		route, role, _ := strings.Cut(strings.Join(strings.Fields(line), " "), " /")
		path, role, _ := strings.Cut(role, " ")
		role, _, _ = strings.Cut(role, "; of others")
		if path, ok := strings.CutPrefix(path, "api/v1"); ok {
			roles[route+" "+path] = role
		}
	}
	needs := map[string][]string{}
	for _, c := range capabilities {
		for _, command := range c.cli {
			for _, route := range c.api {
				role, known := roles[route]
				if !known {
					t.Errorf("%s calls %s, which is not in the list of routes", command, route)
				}
				if !slices.Contains(needs[command], role) {
					needs[command] = append(needs[command], role)
				}
			}
			if len(c.api) == 0 {
				needs[command] = append(needs[command], "nobody is asked")
			}
		}
	}
	var list []string
	for command, all := range needs {
		slices.Sort(all)
		list = append(list, fmt.Sprintf("dlo %s: %s", command, strings.Join(slices.Compact(all), "; ")))
	}
	slices.Sort(list)
	const file = "testdata/access_commands.txt"
	got := strings.Join(list, "\n") + "\n"
	if testenv.Updates() {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("who may run a command has changed; go test ./internal/system -run WhoMayRun -update writes the list:\n%s", got)
	}
}
