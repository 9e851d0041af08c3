package system

import (
	"fmt"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/cli"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestAnOperationSurvivesKills requeues selected letters. It kills dlo after the selection is
// frozen, between two chunks, and while letters are published. dlo must send exactly the selected
// letters, and the counts of the operation must be right.
func TestAnOperationSurvivesKills(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	testenv.Broker(t)
	for _, point := range []string{
		"operation: frozen=1", "operation: advanced=1", "requeue: publishing=2", "requeue: confirmed=2",
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			_, url := testenv.VHost(t)
			a := newAudit(t, url, "work", nil)
			p := newChild(t, url, "default: {retry: {delays: []}}\nrequeue: {watch: 1s, in_flight: 100}\n")
			p.Start("")
			p.Draining()
			a.work()
			const letters, chosen = 1300, 1100 // so many that the operation needs more than two chunks
			a.publish(letters, func(i int) (string, string) { return fmt.Sprintf("letter %d", i), fmt.Sprint(i) })
			eventually(t, "all letters dead", func() bool { return p.letters("dead") == letters })
			if code := p.Stop(); code != 0 {
				t.Fatalf("exit code %d", code)
			}
			ids := p.ids(`SELECT id, random FROM letters ORDER BY id LIMIT $1`, chosen)
			p.Start(point)
			p.tryPost("/api/v1/operations", requeueAtOnce(ids))
			p.Crashed("the crash")
			p.Start("")
			eventually(t, "the operation done", func() bool { return p.count("operations", `state = 'done'`) == 1 })
			eventually(t, "the chosen letters back", func() bool { return a.acceptedLetters() == chosen })
			eventually(t, "the chosen letters settled", func() bool { return p.letters("settled") == chosen })
			if n := p.letters("dead"); n != letters-chosen {
				t.Errorf("%d letters stayed dead, want %d", n, letters-chosen)
			}
			_, body := p.get("/api/v1/operations/O-1")
			var op api.Operation
			if err := api.Unmarshal(
				[]byte(body), &op,
			); err != nil || op.Total != chosen || op.Counts["quiet"]+op.Counts["unverified"] != chosen {
				t.Errorf("the operation says %s (%v)", body, err)
			}
			if surplus, duplicates := a.checkStore(p); surplus != 0 || duplicates > 100 {
				t.Errorf("%d rows more than letters, %d duplicates", surplus, duplicates)
			}
		})
	}
}

// TestTheCommandLine runs commands against a running server, as a new user would.
func TestTheCommandLine(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	testenv.Broker(t)
	_, url := testenv.VHost(t)
	a := newAudit(t, url, "work", nil)
	p := newChild(t, url, "default: {retry: {delays: []}}\nrequeue: {watch: 1s}\n")
	p.Start("")
	p.Draining()
	a.work()
	a.publish(3, func(i int) (string, string) {
		return fmt.Sprintf(`{"number": %d, "esc": "\u001b[31m"}`, i), fmt.Sprint(i)
	})
	eventually(t, "all letters dead", func() bool { return p.letters("dead") == 3 })
	dlo := func(code int, stdin string, args ...string) string {
		t.Helper()
		var out, errs strings.Builder
		err := cli.Run(cli.Program{
			Ctx: t.Context(), Getenv: noEnvironment, Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errs,
		}, &commands{}, append(args, "--server", p.url))
		if got := cli.ExitCode(err, &errs); got != code {
			t.Fatalf(
				"dlo %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), got, code, out.String(), errs.String(),
			)
		}
		if strings.Contains(out.String()+errs.String(), "\x1b") {
			t.Errorf("dlo %s writes a raw escape", strings.Join(args, " "))
		}
		return out.String() + errs.String()
	}
	list := dlo(0, "", "letters", "list", "-q", "state:dead queue:work", "-o", "jsonl")
	var ids []deadletter.ID
	for line := range strings.Lines(list) {
		var l deadletter.Row
		if err := api.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, l.ID)
	}
	if len(ids) != 3 {
		t.Fatalf("%d letters listed:\n%s", len(ids), list)
	}
	if out := dlo(
		0, "", "letters", "list",
	); !strings.Contains(out, "work") || !strings.Contains(out, "rejected") || !strings.Contains(out, "number: 2") {
		t.Errorf("the table:\n%s", out)
	}
	if out := dlo(2, "", "letters", "list", "-q", "state:deaf"); !strings.Contains(out, "at character 7") {
		t.Errorf("a mistake in the query:\n%s", out)
	}
	if out := dlo(
		0, "", "letters", "show", string(ids[0]),
	); !strings.Contains(out, `"number": 2`) || !strings.Contains(out, "no retries") {
		t.Errorf("show:\n%s", out)
	}
	if out := dlo(
		0, "", "letters", "requeue", string(ids[0]), string(ids[1]), "--dry-run",
	); !strings.Contains(out, "requeue: 2 of 2 letters") {
		t.Errorf("dry run:\n%s", out)
	}
	if out := dlo(
		0, string(ids[0])+"\n"+string(ids[1])+"\n", "letters", "requeue", "-", "--watch", "--reason", "fixed", "--hold",
		"0s",
	); !strings.Contains(out, "2 unverified") {
		t.Errorf("requeue:\n%s", out)
	}
	eventually(t, "two letters back", func() bool { return a.acceptedLetters() == 2 })
	eventually(t, "two letters quiet", func() bool { return p.letters("settled") == 2 })
	if out := dlo(
		3, "", "letters", "discard", string(ids[0]), string(ids[2]), "--watch",
	); !strings.Contains(out, "1 of 2 letters") {
		t.Errorf("partly done:\n%s", out)
	}
	dlo(0, "", "letters", "restore", string(ids[2]), "--watch")
	if out := dlo(
		1, "", "letters", "discard", string(ids[0]), "--watch",
	); !strings.Contains(out, "no letter was changed") {
		t.Errorf("nothing done:\n%s", out)
	}
	dlo(2, "", "letters", "discard", "nonsense")
	dlo(2, "", "letters", "discord", "x")
	if out := dlo(
		1, "", "letters", "show", "01a1fa78-7cd6-70b7-9438-fd9bc2a425ee",
	); !strings.Contains(out, "there is no letter 01a1fa78") {
		t.Errorf("an unknown letter:\n%s", out)
	}
	if out := dlo(
		0, "", "letters", "show", string(ids[0]),
	); !strings.Contains(out, "requeue") || !strings.Contains(out, "fixed") || !strings.Contains(out, "settled") {
		t.Errorf("the history:\n%s", out)
	}
}
