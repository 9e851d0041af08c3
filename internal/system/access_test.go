package system

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/cli"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestWhoMayRunEachCommand compares testdata/access_commands.txt with the roles that the commands
// need. For each command, the file lists the lowest role that may make its API calls. It also says
// whether the grant must be for all queues. The role of each API call comes from
// web/testdata/access.txt, which another test checks with requests.
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
				needs[command] = append(needs[command], nobodyAsked)
			}
		}
	}
	var list []string
	for command, all := range needs {
		slices.Sort(all)
		list = append(list, fmt.Sprintf("dlo %s: %s", command, strings.Join(slices.Compact(all), "; ")))
	}
	slices.Sort(list)
	testenv.GoldenText(t, "access_commands.txt", strings.Join(list, "\n")+"\n")
}

// nobodyAsked stands in testdata/access_commands.txt in the place of a role. It means that the
// command sends no request to the server, so that nobody checks the role.
const nobodyAsked = "nobody is asked"

// trial is a command with its arguments. The field "need" is the role that the command needs with
// these arguments. If "need" is empty, the role in testdata/access_commands.txt applies.
type trial struct{ command, args, need string }

// trials contains the arguments for each command that does not run without arguments. $LETTER
// stands for the id of a letter from the queue "own". $FILE stands for a file with the export of
// that letter. Some arguments name an object that does not exist, because the server checks the
// role first.
var trials = []trial{
	{"annotations add", "--message-id 1 --queue own --message x", ""},
	{"brokers connect", "main", ""},
	{"deploys add", "mailer 1", ""},
	{"digest preview", "", "viewer"},
	{"digest send", "", "operator, for all queues"},
	{"groups assign", "G-1 --to ana", ""},
	{"groups discard", "G-1 --yes", ""},
	{"groups merge", "G-2 --into G-1", ""},
	{"groups note", "G-1 seen", ""},
	{"groups pause", "G-1", ""},
	{"groups reopen", "G-1", ""},
	{"groups requeue", "G-1 --yes", ""},
	{"groups resolve", "G-1", ""},
	{"groups resume", "G-1", ""},
	{"groups severity", "G-1 --to page", ""},
	{"groups show", "G-1", ""},
	{"groups snooze", "G-1 --for 1h", ""},
	{"groups split", "G-1", ""},
	{"groups undo", "", "viewer"},
	{"groups undo", "1", "operator"},
	{"letters body", "$LETTER", ""},
	{"letters discard", "$LETTER", ""},
	{"letters edit", "$LETTER --header a=b", "editor"},
	{"letters hold", "$LETTER", ""},
	{"letters import", "$FILE", ""},
	{"letters purge", "$LETTER --yes", "operator with purge"},
	{"letters release", "$LETTER", ""},
	{"letters requeue", "$LETTER", ""},
	{"letters reschedule", "$LETTER --due-at 1h", ""},
	{"letters restore", "$LETTER", ""},
	{"letters retry-now", "$LETTER", ""},
	{"letters reveal", "$LETTER number", ""},
	{"letters show", "$LETTER", ""},
	{"letters type", "$LETTER a.B", ""},
	{"man", "", nobodyAsked}, // this command is part of the program and asks no server
	{"notify test", "team", ""},
	{"operations cancel", "O-1", ""},
	{"operations pause", "O-1", ""},
	{"operations rate", "O-1 5", ""},
	{"operations resume", "O-1", ""},
	{"operations show", "O-1", ""},
	{"operations watch", "O-99", ""},
	{"queues drain", "old", ""},
	{"queues pause", "own", ""},
	{"queues resume", "own", ""},
	{"queues stop", "00000000", ""},
	{"rules apply", "--yes", ""},
	{"rules overrides add", "own own", ""},
	{"rules overrides remove", "1", ""},
	{"token add", "another --role viewer", ""},
	{"token revoke", "none", ""},
	// without a broker, there is no plan, so a viewer may run this command
	{"topology apply", "--yes", "viewer, for all queues"},
	{"topology leave", "own --yes", ""},
	{"topology undo", "own --yes", "viewer, for all queues"}, // dlo has set no policy, so there is nothing to delete
	{"try", "", "operator, for all queues"},
	{"types add", "$FILE", ""},
	{"types bind", "own a.B", ""},
	{"types decode", "$FILE --type a.B", ""},
	{"types match", "$FILE", ""},
	{"types remove", "none --yes", ""},
	{"types show", "a.B", ""},
	{"types unbind", "1", ""},
	{"user add", "lena --role viewer", ""},
	{"user remove", "none", ""},
	{"user reset", "none", ""},
	{"views add", "dead state:dead", "operator"}, // saves a view for everybody
	{"views remove", "99", ""},
}

// runner is somebody who runs commands, with a token or without one.
type runner struct {
	name, token    string
	rank           int // index of the role in ranks; -1 = without a token
	bounded        bool
	reveal, purges bool
}

var ranks = []string{"viewer", "reader", "operator", "editor", "admin"}

// denials are the texts by which the test recognises that a command was denied.
var denials = []string{"send a token", "that needs", "concerns all queues"}

// denial returns the text that must be in the error if the runner may not run a command. The
// parameter "need" is the role that the command needs. If the runner may run the command, denial
// returns "".
func (r runner) denial(t *testing.T, need string) string {
	t.Helper()
	role, everywhere := strings.CutSuffix(need, ", for all queues")
	role, reveal := strings.CutSuffix(role, " with reveal")
	role, purge := strings.CutSuffix(role, " with purge")
	least := slices.Index(ranks, role)
	switch {
	case least < 0:
		t.Fatalf("the need %q is no role: say in the table what the arguments need", need)
	case r.rank < 0:
		return denials[0]
	case r.rank < least || reveal && !r.reveal || purge && !r.purges:
		return denials[1]
	case everywhere && r.bounded:
		return denials[2]
	}
	return ""
}

// commandNeeds returns the role that each command needs, by command. It leaves out the commands
// that do not send a request to the server.
func commandNeeds(t *testing.T) map[string]string {
	t.Helper()
	// TestWhoMayRunEachCommand checks that this file is current
	listed, err := os.ReadFile("testdata/access_commands.txt")
	if err != nil {
		t.Fatal(err)
	}
	needs := map[string]string{}
	for line := range strings.Lines(string(listed)) {
		command, need, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if !strings.Contains(need, nobodyAsked) {
			needs[strings.TrimPrefix(command, "dlo ")] = need
		}
	}
	return needs
}

// TestEachCommandAsEachRole runs each command that sends a request to the server. It runs each
// without a token, and with each role. Each role has one token for all queues and one token for a
// single queue. The trials and testdata/access_commands.txt say which commands must be denied. No
// other command may be denied.
func TestEachCommandAsEachRole(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	p := newChild(t, "", away+"auth: {tokens: true}\n")
	p.Start("") // creates the store
	p.Stop()
	run := func(token string, args ...string) (code int, out, errs string) {
		t.Helper()
		var o, e strings.Builder
		getenv := func(name string) string {
			return map[string]string{"DLO_SERVER": p.url, "DLO_TOKEN": token}[name]
		}
		err := cli.Run(cli.Program{
			Ctx: t.Context(), Getenv: getenv, Stdin: strings.NewReader(""), Stdout: &o, Stderr: &e, Version: "test",
			Tokens: openTokens,
		}, &commands{}, args)
		code = cli.ExitCode(err, &e)
		return code, o.String(), e.String()
	}
	token := func(as string, args ...string) string {
		t.Helper()
		code, out, errs := run(as, append([]string{"token", "add"}, args...)...)
		if code != 0 {
			t.Fatal(errs)
		}
		return strings.TrimSpace(out)
	}
	root := token("", "root", "--role", "admin", "--reveal", "--purge", "--store", p.store)
	p.Start("")
	file, line := filepath.Join(t.TempDir(), "letters.ndjson"), exportLine(1, "own", 1)
	writeFile(t, file, line)
	if code, _, errs := run(root, "letters", "import", file); code != 0 {
		t.Fatal(errs)
	}
	eventually(t, "the letter is in a group", func() bool { return p.letters("dead") == 1 })
	_, id, _ := strings.Cut(line, `"id":"`)
	replaced := strings.NewReplacer("$LETTER", id[:36], "$FILE", file)

	runners := []runner{{name: "nobody", rank: -1}}
	for i, role := range ranks {
		runners = append(runners, runner{name: role, token: token(root, role, "--role", role), rank: i},
			runner{
				name: role + " of own", token: token(root, role+"-of-own", "--role", role, "--queues", "own"), rank: i,
				bounded: true,
			})
	}
	runners = append(runners, runner{
		name: "reader with reveal", token: token(root, "reveals", "--role", "reader", "--reveal"), rank: 1,
		reveal: true,
	},
		runner{
			name: "operator with purge", token: token(root, "purges", "--role", "operator", "--purge"), rank: 2,
			purges: true,
		})
	tried, needs := slices.Clone(trials), commandNeeds(t)
	for _, command := range slices.Sorted(maps.Keys(needs)) {
		if !slices.ContainsFunc(tried, func(c trial) bool { return c.command == command }) {
			tried = append(tried, trial{command: command})
		}
	}
	for _, c := range tried {
		need := cmp.Or(c.need, needs[c.command])
		if need == nobodyAsked {
			continue
		}
		for _, who := range runners {
			want := who.denial(t, need)
			// skipped, because the token for all queues is denied with the same text
			if who.bounded && want == denials[1] {
				continue
			}
			code, _, errs := run(who.token, strings.Fields(c.command+" "+replaced.Replace(c.args))...)
			said := ""
			for _, part := range denials {
				if strings.Contains(errs, part) {
					said = part
				}
			}
			// the server limits requests without a token from one address
			if who.rank < 0 && strings.Contains(errs, "more requests than") {
				said = want
			}
			if said != want || want != "" && code != 1 || strings.Contains(errs, "usage:") {
				t.Errorf("dlo %s %s of %s: exit code %d, %q; want %q", c.command, c.args, who.name, code, errs, want)
			}
		}
	}
}
