package system

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/cli"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/server"
)

// away is the configuration of a dlo whose broker is unreachable. This dlo can neither drain queues
// nor send letters, but everything else works.
const away = "brokers: [{url: 'amqp://127.0.0.1:1/', label: production, colour: red}]\ndefault: {retry: {delays: []}}\n"

// dlo runs a command of dlo against the child's server. It returns the output and the error output,
// and fails the test unless the exit code is the expected one.
func (p *child) dlo(ctx context.Context, code int, stdin string, args ...string) (string, string) {
	p.t.Helper()
	var out, errs strings.Builder
	getenv := func(name string) string {
		if name == "DLO_LISTEN" {
			return strings.TrimPrefix(p.url, "http://")
		}
		return ""
	}
	err := cli.Run(cli.Program{
		Ctx: ctx, Getenv: getenv, Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errs, Version: "test",
		Check: server.Check, Ask: server.Ask, Look: server.Look, Dropped: server.Dropped, Tokens: openTokens,
		Rename: server.RenameBroker, Backups: server.Backups{Version: "test"},
	}, &commands{}, args)
	if got := cli.ExitCode(err, &errs); got != code {
		p.t.Fatalf(
			"dlo %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), got, code, out.String(), errs.String(),
		)
	}
	if strings.Contains(out.String()+errs.String(), "\x1b") {
		p.t.Errorf("dlo %s writes a raw escape", strings.Join(args, " "))
	}
	return out.String(), errs.String()
}

// exportLine returns one line of an export file. The letter of that line died in the given queue
// and was received the given number of minutes ago.
func exportLine(number int, queue string, minutes int) string {
	at := time.Now().Add(-time.Duration(minutes) * time.Minute).UTC().Truncate(time.Millisecond)
	text, err := json.Marshal(map[string]any{
		"v":           1,
		"id":          deadletter.NewID(deadletter.SerialAt(at)+int64(number), uint64(number)),
		"state":       "dead",
		"inbox":       "dlo.letters",
		"exchange":    "dlo.dlx",
		"routing_key": queue,
		"received_at": at,
		"origin": map[string]any{
			"broker": "main", "vhost": "/", "queue": queue, "exchange": "events", "routing_key": "k",
		},
		"reason":     "rejected",
		"attempts":   0,
		"type":       "",
		"error":      "no such tenant \x1b[31m",
		"why":        "",
		"properties": map[string]any{},
		"headers":    map[string]any{},
		"body":       []byte(fmt.Sprintf(`{"number": %d}`, number)),
	})
	if err != nil {
		panic(err)
	}
	return string(text) + "\n"
}

// TestTheWholeCommandLine runs the commands in the order in which a person would use them in a
// shell, from an import to an export.
func TestTheWholeCommandLine(t *testing.T) {
	t.Parallel()
	p := serve(t, "", away, nil).child
	ctx := t.Context()
	has := func(text string, wanted ...string) {
		t.Helper()
		for _, w := range wanted {
			if !strings.Contains(text, w) {
				t.Errorf("%q is missing in:\n%s", w, text)
			}
		}
	}
	ok := func(args ...string) string {
		t.Helper()
		out, _ := p.dlo(ctx, 0, "", args...)
		return out
	}

	// A file with one damaged line is imported twice.
	var lines strings.Builder
	for i := range 150 {
		queue := "sms"
		if i%3 == 0 {
			queue = "email"
		}
		lines.WriteString(exportLine(i, queue, 150-i))
	}
	out, errs := p.dlo(ctx, 3, "damaged\n"+lines.String(), "letters", "import", "-")
	has(out, "150 letters imported, 0 were already there, 1 lines left out")
	has(
		errs, "server "+p.url+" (production)\n", "line 1 left out: the JSON cannot be read",
		"partly done: 1 lines were left out",
	)
	file := filepath.Join(t.TempDir(), "letters.ndjson")
	if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	has(ok("letters", "import", file, "-o", "jsonl"), `"imported":0,"already_there":150`)
	p.dlo(ctx, 1, "damaged", "letters", "import", "-")
	p.dlo(ctx, 1, "", "letters", "import", file+".nothing")
	eventually(t, "the letters are classified", func() bool { return p.letters("dead") == 150 })

	// The imported letters are found by queries.
	if out := ok("letters", "count", "-q", "queue:sms"); out != "100\n" {
		t.Error(out)
	}
	if out := ok("letters", "count", "-q", "-queue:sms"); out != "50\n" {
		t.Error(out)
	}
	p.dlo(ctx, 2, "", "letters", "count", "-q", "-o", "json")
	p.dlo(ctx, 2, "", "letters", "count", "-q", "--limit")
	has(ok("letters", "count", "-q", "queue:sms", "-o", "json"), `"exact": true`)
	_, errs = p.dlo(ctx, 2, "", "letters", "count", "-q", "queue:sms state:deaf")
	has(errs, "at character 17", "did you mean dead?")
	out = ok("letters", "facets", "-q", "queue:sms", "--field", "queue,reason")
	has(out, "queue   sms       100", "queue   email     50", "reason  rejected  100")
	if strings.Contains(out, "state ") {
		t.Errorf("facets that were not asked for:\n%s", out)
	}
	p.dlo(ctx, 2, "", "letters", "facets", "--field", "colour")
	var ids []string
	for line := range strings.Lines(ok("letters", "list", "-q", "queue:sms", "-n", "0", "-o", "jsonl")) {
		var l deadletter.Row
		if err := api.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, string(l.ID))
	}
	if len(ids) != 100 {
		t.Fatalf("%d letters", len(ids))
	}
	has(ok("letters", "body", ids[0]), `{"number": 149}`)
	body := filepath.Join(t.TempDir(), "body")
	ok("letters", "body", ids[0], "--out", body)
	if b, err := os.ReadFile(body); err != nil || string(b) != `{"number": 149}` {
		t.Error(string(b), err)
	}
	p.dlo(ctx, 1, "", "letters", "body", ids[0], "--out", body) // the file already exists

	// Plans show what an operation would do.
	out = ok(
		"letters", "requeue", "-q", "queue:sms since:3h", "--dry-run", "--except", ids[0]+","+ids[1], "--first", "60",
		"--rate", "7.5", "--canary", "3", "--canary-wait", "30s", "--stop-at", "2", "--max-depth", "9", "--order",
		"newest", "--to", "sms2",
	)
	has(
		out, "requeue: 60 of 98 letters", "sms2", "CAME BACK", "unknown",
		"can be undone for 10s; 3 go first and are watched for 30s, then 7.5 a second, newest first; stops when more than 2% come back; waits while a queue has 9 messages",
	)
	has(out, "letters on production")
	has(ok("letters", "discard", "-q", "", "--dry-run", "-o", "json"), `"eligible": 150`)
	has(
		ok("letters", "restore", "-q", "queue:email", "--dry-run"), "restore: 0 of 50 letters",
		"left alone: 50, it is dead, which cannot be restored",
	)

	// These commands change letters. They fail without --yes, because no person is there to
	// confirm.
	_, errs = p.dlo(ctx, 2, "", "letters", "discard", "-q", "queue:sms")
	has(errs, "needs --yes")
	_, errs = p.dlo(ctx, 2, strings.Join(append(ids, ids[0]), "\n"), "letters", "purge", "-")
	has(errs, "needs --yes")
	p.dlo(ctx, 2, "", "letters", "discard")
	p.dlo(ctx, 2, "", "letters", "discard", ids[0], "-q", "state:dead")
	p.dlo(ctx, 2, "", "letters", "requeue", ids[0], "--order", "biggest")
	p.dlo(ctx, 2, "", "letters", "requeue", ids[0], "--rate", "0")
	if n := p.count("operations", ""); n != 0 {
		t.Fatalf("%d operations", n)
	}

	// Each command that changes letters is run, and its output is checked.
	for _, step := range []struct{ verb, state string }{
		{"hold", "held"},
		{"release", "dead"},
		{"discard", "discarded"},
		{"restore", "dead"},
		{"purge", "purged"},
	} {
		args := []string{"letters", step.verb, ids[0], ids[1], "--watch", "--reason", "a test"}
		if step.verb == "purge" {
			args = append(args, "--hold", "0s")
		}
		has(ok(args...), step.verb+" of 2 letters, done, 2 done")
		has(ok("letters", "list", "-q", "id:"+ids[0]), step.state)
	}
	out, errs = p.dlo(ctx, 3, "", "letters", "discard", ids[0], ids[2], "--watch", "-o", "json")
	has(out, `"skipped": 1`)
	has(errs, "partly done: 1 of 2 letters")
	_, errs = p.dlo(ctx, 1, "", "letters", "discard", ids[0], "--watch")
	has(errs, "no letter was changed")

	// An operation is paused and resumed, and a command that watches it is interrupted.
	out = ok("letters", "requeue", "-q", "state:dead queue:sms", "--yes", "--hold", "1h", "--reason", "the fix is out")
	has(out, "requeue of 97 letters, begins at")
	id := out[:strings.IndexByte(out, ':')]
	has(ok("operations", "pause", id), "paused")
	p.dlo(ctx, 1, "", "operations", "pause", id)
	has(ok("operations", "resume", id), "begins at")
	has(ok("operations", "rate", id, "12.5", "-o", "jsonl"), `"rate":12.5`)
	p.dlo(ctx, 2, "", "operations", "rate", id, "0")
	has(ok("operations", "list", "-n", "1"), id, "requeue", "running", "97", "the fix is out")
	has(ok("operations", "show", id), "97 pending", "state:dead queue:sms", "12.5 a second", "local, by cli")
	has(ok("operations", "show", "O-1", "--result", "done"), ids[0], "done")
	p.dlo(ctx, 2, "", "operations", "show", "nonsense")
	p.dlo(ctx, 2, "", "operations", "show", id, "--result", "fine")
	leaving, leave := context.WithTimeout(ctx, 5*time.Second)
	defer leave()
	_, errs = p.dlo(leaving, 3, "", "operations", "watch", id)
	has(errs, "0 of 97 letters", id+" continues on the server; watch it with: dlo operations watch "+id)
	has(ok("operations", "cancel", id), "97 cancelled")
	p.dlo(ctx, 1, "", "operations", "watch", id)

	// The commands list the saved views and the actions of people.
	has(ok("views", "add", "overnight", "state:dead since:12h"), "view 1: overnight")
	p.dlo(ctx, 2, "", "views", "add", "broken", "state:deaf")
	has(ok("views", "list"), "overnight", "state:dead since:12h")
	ok("views", "remove", "1")
	p.dlo(ctx, 1, "", "views", "remove", "1")
	_, errs = p.dlo(ctx, 0, "", "views", "list")
	has(errs, "there are no views")
	has(ok("rules", "overrides", "add", "sms", "sms2", "--reason", "renamed"), "redirect 1: letters of sms go to sms2")
	p.dlo(ctx, 2, "", "rules", "overrides", "add", "email", "dlo.letters")
	p.dlo(ctx, 1, "", "rules", "overrides", "add", "sms", "sms3")
	has(ok("rules", "overrides", "list", "-o", "jsonl"), `"to":"sms2"`, `"reason":"renamed"`)
	ok("rules", "overrides", "remove", "1")
	has(ok("audit", "list", "--kind", "requeue"), id, "97", "the fix is out", "cli")
	has(ok("audit", "list", "--kind", "import"), "150 letters, 0 were already there", "cli", "letters imported")
	has(ok("audit", "list", "-q", "via:cli -action:import"), "operation "+id)
	has(ok("audit", "list", "--csv", "--kind", "redirect"), "time,what,who", "redirect,local,")
	p.dlo(ctx, 2, "", "audit", "list", "--since", "tomorrow")
	has(ok("queues", "list"), "main    /      sms", "unknown", "main is not connected: letters wait until it is back")
	has(ok("brokers", "list"), "main    production  /      no", "dlo.letters", "connection refused")
	has(ok("brokers", "connect", "main"), "broker main is not connected: ", "connection refused")
	p.dlo(ctx, 1, "", "brokers", "connect", "other")
	has(ok("queues", "list", "--inboxes"), "dlo.letters", "no", "unknown")
	has(
		ok("queues", "pause", "sms", "--reason", "the gateway\x1b is down"),
		"retries of queue sms: paused by local: the gateway\\x1b is down",
	)
	_, errs = p.dlo(ctx, 1, "", "queues", "pause", "sms", "--broker", "main", "--vhost", "/")
	has(errs, "already paused; to pause them for another reason, resume them first")
	p.dlo(ctx, 1, "", "queues", "pause", "nothing")
	p.dlo(ctx, 2, "", "queues", "pause")
	has(ok("queues", "list", "-o", "jsonl"), `"queue":"sms"`, `"depth":null`, `"state":"paused"`)
	has(ok("queues", "resume", "sms", "-o", "json"), `"state": "running"`)
	p.dlo(ctx, 1, "", "queues", "resume", "sms")
	has(ok("groups", "pause", "G-1", "--reason", "new template"), "retries of group G-1: paused by local: new template")
	p.dlo(ctx, 1, "", "groups", "pause", "g-1")
	p.dlo(ctx, 1, "", "groups", "pause", "G-99")
	p.dlo(ctx, 2, "", "groups", "pause", "nonsense")
	has(ok("queues", "list"), "G-1")
	has(ok("groups", "resume", "G-1"), "retries of group G-1: running")
	has(ok("audit", "list", "--kind", "retries paused"), "group G-1", "queue sms", "new template")
	p.dlo(ctx, 1, "", "queues", "drain", "old") // fails because the broker is unreachable
	ok("queues", "drains")
	p.dlo(ctx, 1, "", "queues", "stop", "D-1")

	// The letters are exported.
	has(ok("letters", "export", "-q", "queue:email", "--format", "csv"), "id,state,received_at", ",email,rejected,")
	all := filepath.Join(t.TempDir(), "all.ndjson")
	ok("letters", "export", "--out", all)
	b, err := os.ReadFile(all)
	if err != nil || strings.Count(string(b), "\n") != 150 {
		t.Error(strings.Count(string(b), "\n"), err)
	}
	second := serve(t, "", away, nil).child
	out, errs = second.dlo(ctx, 3, "", "letters", "import", all)
	has(out, "148 letters imported")
	has(errs, "purged")
	eventually(t, "they arrive", func() bool { return second.letters("dead") == 147 })
	if n := second.letters("discarded"); n != 1 {
		t.Errorf("%d discarded letters arrived", n)
	}
}
