package cli

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/topology"
)

const wrongFile = `{
  "rabbitmq_version": "4.3.6",
  "policies": [],
  "queues": [
    {"name": "orders", "vhost": "/", "durable": true, "auto_delete": false, "arguments": {}},
    {"name": "emails", "vhost": "/", "durable": true, "auto_delete": false, "arguments": {}},
    {"name": "\u001b[2J", "vhost": "/", "durable": true, "auto_delete": false, "arguments": {"x-dead-letter-exchange": "gone"}}
  ]
}`

// runTopology runs `dlo topology` with the given arguments. It returns standard output, standard
// error and the exit code.
func runTopology(t *testing.T, p Program, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	p.Ctx, p.Getenv, p.Stdout, p.Stderr = t.Context(), func(string) string { return "" }, &out, &errs
	if p.Stdin == nil {
		p.Stdin = strings.NewReader("")
	}
	err := Run(p, &struct{}{}, append([]string{"topology"}, args...))
	code = ExitCode(err, &errs)
	return out.String(), errs.String(), code
}

// TestTheCheckOfAFile checks the output of `dlo topology check` for a definitions file with faults,
// in several output formats.
func TestTheCheckOfAFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "definitions.json")
	if err := os.WriteFile(file, []byte(wrongFile), 0o600); err != nil {
		t.Fatal(err)
	}
	want := `3 of 3 queues will drop what their consumers reject

page  exchange_missing
  \x1b[2J dead-letters to exchange gone, which does not exist
    loses: every dead letter of this queue
    why:   An argument of the queue names exchange gone. The broker drops a dead letter without a trace if its exchange does not exist.
    cure:  Declare the exchange gone and bind a queue to it, or dead-letter to an exchange that exists.

notify  no_exchange
  orders has no dead-letter exchange; the same is true of 1 more: emails
    loses: every message that a consumer rejects
    why:   If a queue has no dead-letter exchange, the broker deletes each message that a consumer rejects without requeue.
    cure:  Set a policy with a dead-letter exchange. The queue stays as it is: no argument changes, so no consumer gets a 406 when it declares the queue.
`
	for name, stdin := range map[string]string{file: "", "-": wrongFile} {
		out, errs, code := runTopology(t, Program{Stdin: strings.NewReader(stdin)}, "check", name)
		if out != want || errs != "dlo: 2 findings\n" || code != 5 {
			t.Errorf("%s: %d %q\n%s", name, code, errs, out)
		}
	}
	out, _, _ := runTopology(t, Program{}, "check", file, "-o", "jsonl")
	if strings.Count(out, "\n") != 2 || !strings.HasPrefix(
		out, `{"kind":"exchange_missing","severity":"page","broker":"","vhost":"/","queue":"\u001b[2J","title":`,
	) {
		t.Error(out)
	}
	if out, errs, code := runTopology(
		t, Program{}, "check", file, "--vhost", "other",
	); out != "" || !strings.Contains(errs, "there is no vhost other; there is: /") || code != 2 {
		t.Errorf("another vhost: %d %q %q", code, errs, out)
	}
	unnamed := strings.ReplaceAll(wrongFile, `"vhost": "/", `, "")
	if out, errs, code := runTopology(
		t, Program{Stdin: strings.NewReader(unnamed)}, "check", "-", "--vhost", "/",
	); out != "" || !strings.Contains(errs, "the file does not name its vhost; leave out --vhost") || code != 2 {
		t.Errorf("a file without vhosts: %d %q %q", code, errs, out)
	}
}

// TestTheCheckOfABroker checks the exit codes of `dlo topology check --broker`. The URL and the
// vhosts must be passed on to Program.Look.
func TestTheCheckOfABroker(t *testing.T) {
	t.Parallel()
	var asked string
	answer := func(s []topology.Snapshot, err error) Program {
		return Program{Look: func(_ context.Context, management string, vhosts []string) ([]topology.Snapshot, error) {
			asked = management + " " + strings.Join(vhosts, ",")
			return s, err
		}}
	}
	right := topology.Snapshot{VHost: "/"}
	partly := topology.Snapshot{VHost: "/", Gaps: []topology.Gap{{What: topology.PartBindings, Why: "500"}}}
	for name, c := range map[string]struct {
		program Program
		out     string
		errs    string
		code    int
	}{
		"right": {
			answer([]topology.Snapshot{right}, nil), "0 queues, 0 findings; no queue drops what its consumers reject\n",
			"", 0,
		},
		"partly": {
			answer([]topology.Snapshot{partly}, nil),
			"0 queues, 0 findings; it is not known whether a queue drops what its consumers reject\n\nnot known: bindings of vhost /: 500\n",
			"could not look at everything", 1,
		},
		"not at all": {answer(nil, errors.New("connection refused")), "", "connection refused", 1},
	} {
		out, errs, code := runTopology(t, c.program, "check", "--broker", "http://a:b@host:15672", "--vhost", "/")
		if !strings.HasSuffix(out, c.out) || !strings.Contains(errs, c.errs) || code != c.code {
			t.Errorf("%s: %d %q %q", name, code, errs, out)
		}
		if asked != "http://a:b@host:15672 /" {
			t.Errorf("%s: asked %s", name, asked)
		}
	}
}

// TestTheCheckCountsWhatWasDropped checks the line about the messages that a node has dropped. If
// the counter cannot be read, the command must fail only if the user gave the URL of the counter.
func TestTheCheckCountsWhatWasDropped(t *testing.T) {
	t.Parallel()
	program := func(n int64, err error) Program {
		return Program{
			Look: func(context.Context, string, []string) ([]topology.Snapshot, error) {
				return []topology.Snapshot{{VHost: "/", Queues: []topology.Queue{{Name: "orders", Durable: true}}}}, nil
			},
			Dropped: func(_ context.Context, management, metrics string) (int64, error) {
				if management != "http://a:b@host:15672" {
					t.Error(management)
				}
				return n, err
			},
		}
	}
	unknown := errors.New("metrics: connection refused")
	for name, c := range map[string]struct {
		n     int64
		err   error
		args  []string
		first string
		code  int
	}{
		"counted": {
			12408, nil, nil,
			"1 of 1 queues will drop what its consumers reject; the node has dropped 12,408 messages since it started",
			5,
		},
		"one": {
			1,
			nil,
			[]string{"--metrics", "http://host:1"},
			"1 of 1 queues will drop what its consumers reject; the node has dropped 1 message since it started",
			5,
		},
		"none":    {0, nil, nil, "1 of 1 queues will drop what its consumers reject", 5},
		"unknown": {0, unknown, nil, "1 of 1 queues will drop what its consumers reject", 5},
		"refused": {
			0,
			unknown,
			[]string{"--metrics", "http://host:1"},
			"1 of 1 queues will drop what its consumers reject",
			1,
		},
	} {
		out, errs, code := runTopology(t, program(c.n, c.err), append([]string{
			"check", "--broker", "http://a:b@host:15672",
		}, c.args...)...)
		if first, _, _ := strings.Cut(out, "\n"); first != c.first || code != c.code {
			t.Errorf("%s: %d %q %s", name, code, first, errs)
		}
	}
	if _, errs, code := runTopology(
		t, Program{}, "check", "--metrics", "http://host:1",
	); code != 2 || !strings.Contains(errs, "--metrics works only with --broker") {
		t.Errorf("%d %s", code, errs)
	}
}

// TestTheCheckOfAServer checks that `dlo topology check` prints the findings of a running server.
// If the server could not read a vhost, the command must return an error.
func TestTheCheckOfAServer(t *testing.T) {
	t.Parallel()
	answer := `{"findings":[{"kind":"no_exchange","severity":"notify","broker":"main","vhost":"/","queue":"q","title":"q has none"}],"looks":[{"broker":"main","vhost":"/","queues":2}]}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/topology/findings" {
			_, _ = w.Write([]byte(answer))
		}
	}))
	defer server.Close()
	if out, _, code := runTopology(t, Program{}, "check", "--server", server.URL); code != 5 ||
		!strings.Contains(out, "1 of 2 queues will drop what its consumers reject") ||
		!strings.Contains(out, "  q has none\n") {
		t.Errorf("%d %s", code, out)
	}
	answer = `{"findings":[],"looks":[{"broker":"main","vhost":"/","failed":"the API answered 500"}]}`
	if _, errs, code := runTopology(
		t, Program{}, "check", "--server", server.URL, "--vhost", "shop",
	); code != 2 || !strings.Contains(errs, "there is no vhost shop; there is: /") {
		t.Errorf("%d %s", code, errs)
	}
	if _, errs, code := runTopology(
		t, Program{}, "check", "--server", server.URL,
	); code != 1 || !strings.Contains(errs, "main /: the API answered 500") {
		t.Errorf("%d %s", code, errs)
	}
}

// TestThePlanOfAFile checks the exit codes of `dlo topology plan` and its output, as text for
// people and as commands.
func TestThePlanOfAFile(t *testing.T) {
	t.Parallel()
	text := strings.Replace(
		wrongFile, `"policies": []`,
		`"policies": [{"vhost": "/", "name": "limits", "pattern": "^e", "priority": 4, "definition": {"max-length": 5}}], "exchanges": [{"name": "dlo.dlx", "vhost": "/", "type": "fanout"}],
		"bindings": [{"source": "dlo.dlx", "vhost": "/", "destination": "dlo.letters", "destination_type": "queue", "routing_key": ""}]`, 1,
	)
	text = strings.Replace(text, `"queues": [`, `"queues": [{"name": "dlo.letters", "vhost": "/", "arguments": {}},`, 1)
	run := func(args ...string) (string, string, int) {
		return runTopology(
			t, Program{Stdin: strings.NewReader(text)}, append([]string{"plan", "--definitions", "-"}, args...)...,
		)
	}
	out, errs, code := run()
	want := `policy dlo-f30c01c7 in vhost /, priority 0, for 1 queue
  orders
    dead-letter-exchange: "dlo.dlx" is added
policy dlo-2f0a2f1c in vhost /, priority 5, for 1 queue
  emails
  instead of policy limits, whose other keys it repeats
    dead-letter-exchange: "dlo.dlx" is added
    all keys: {"dead-letter-exchange":"dlo.dlx","max-length":5}
nothing was changed; ` + "`dlo topology apply`" +
		` sets these policies, -o rabbitmqctl prints the commands, and -o definitions prints a file
`
	names, probes := regexp.MustCompile(`dlo-[0-9a-f]{8}`), regexp.MustCompile(`probe\\.[0-9a-f]{8}`)
	if names.ReplaceAllString(out, "dlo-N") != names.ReplaceAllString(want, "dlo-N") || errs != "" || code != 0 {
		t.Errorf("%d %q\n%s", code, errs, out)
	}
	out, errs, code = run("emails", "\x1b[2J", "-o", "rabbitmqctl")
	if want := "# vhost /\nrabbitmqctl set_policy --vhost / --priority 5 --apply-to queues dlo-N \\\n  '^(emails|dlo\\.probe\\.N)$' \\\n  '{\"dead-letter-exchange\":\"dlo.dlx\",\"max-length\":5}'\n"; probes.ReplaceAllString(
		names.ReplaceAllString(out, "dlo-N"), `probe\.N`,
	) != want {
		t.Errorf("%q, want %q", out, want)
	}
	if !strings.HasPrefix(
		errs, "left alone: \\x1b[2J in vhost /: the name of the queue or of the vhost has invisible characters",
	) || code != 3 {
		t.Errorf("%d %q", code, errs)
	}
	if _, errs, code = run("--vhost", "shop"); code != 2 ||
		!strings.Contains(errs, "there is no vhost shop; there is: /") {
		t.Errorf("%d %q", code, errs)
	}
	if _, errs, code = run("nowhere"); code != 1 ||
		!strings.Contains(errs, "nothing is planned: 1 queue is left alone") {
		t.Errorf("%d %q", code, errs)
	}
}

// TestAShovelIsSeenAndNotJudged checks a definitions file without faults that contains shovels. The
// exit code must be 0, and the output must mention the shovel that takes messages out of a queue.
func TestAShovelIsSeenAndNotJudged(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "definitions.json")
	text := `{"rabbitmq_version": "4.3.6", "policies": [], "queues": [
		{"name": "orders", "vhost": "/", "durable": true, "auto_delete": false, "arguments": {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}},
		{"name": "dead", "vhost": "/", "durable": true, "auto_delete": false, "arguments": {}}],
		"parameters": [{"vhost": "/", "component": "shovel", "name": "archive", "value": {"src-queue": "orders", "dest-uri": "amqp://me:hunter2@h"}}, {"vhost": "/", "component": "shovel", "name": "odd", "value": 7}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code := runTopology(t, Program{}, "check", file)
	if code != 0 || !strings.Contains(stdout, "The shovel archive takes messages out of orders") ||
		!strings.HasPrefix(stdout, "2 queues, 0 findings; no queue drops") || strings.Contains(stdout, "hunter2") {
		t.Errorf("%d %s %s", code, stdout, stderr)
	}
}

// TestSeveralPlaces checks the output for several vhosts and brokers. If the user names a queue
// that exists in one of the vhosts, the output must not report it as left alone in the others. Each
// line must name its vhost and, if there are several brokers, its broker.
func TestSeveralPlaces(t *testing.T) {
	t.Parallel()
	look := func(names map[string][]string) Program {
		return Program{Look: func(context.Context, string, []string) ([]topology.Snapshot, error) {
			var list []topology.Snapshot
			for _, vhost := range slices.Sorted(maps.Keys(names)) {
				s := topology.Snapshot{
					VHost:     vhost,
					Exchanges: []topology.Exchange{{Name: "dlo.dlx", Type: "fanout"}},
					Bindings:  []topology.Binding{{Source: "dlo.dlx", Destination: "dlo.letters", To: "queue"}},
					Queues:    []topology.Queue{{Name: "dlo.letters"}},
				}
				for _, q := range names[vhost] {
					s.Queues = append(s.Queues, topology.Queue{Name: q})
				}
				list = append(list, s)
			}
			return list, nil
		}}
	}
	two := look(map[string][]string{"a": {"orders", "*"}, "b": {"mail"}})
	out, errs, code := runTopology(t, two, "plan", "--broker", "http://a:b@host", "orders")
	if code != 0 || errs != "" || strings.Contains(out, "left alone") || strings.Count(out, "in vhost a,") != 1 {
		t.Errorf("%d %q\n%s", code, errs, out)
	}
	out, _, code = runTopology(t, two, "plan", "--broker", "http://a:b@host", "orders", "nowhere")
	if code != 3 || !strings.Contains(out, "left alone: nowhere in vhost a: there is no such queue\n") ||
		!strings.Contains(out, "left alone: nowhere in vhost b: ") {
		t.Errorf("%d\n%s", code, out)
	}
	out, _, code = runTopology(t, two, "plan", "--broker", "http://a:b@host", "*")
	if code != 0 || strings.Contains(out, "orders") {
		t.Errorf("a queue with the name of a glob: %d\n%s", code, out)
	}
	answer := `{"findings":[{"kind":"no_exchange","severity":"notify","broker":"main","vhost":"/","queue":"q","title":"q has none","sure":"likely","since":"2026-11-23T08:00:00Z"},
		{"kind":"no_exchange","severity":"notify","broker":"other","vhost":"/","queue":"q","title":"q has none","sure":"likely"}],
		"looks":[{"broker":"main","vhost":"/","queues":2,"read_at":"2026-11-23T09:00:00Z","failed":"500"},{"broker":"other","vhost":"/","queues":2}]}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(answer)) }))
	defer server.Close()
	out, _, _ = runTopology(t, Program{}, "check", "--server", server.URL)
	for _, want := range []string{
		"  q has none (vhost / of broker main), since 2026-11-23 08:00 UTC\n",
		"  q has none (vhost / of broker other)\n",
		"could not look at vhost / of broker main now: 500\n  what is known about it is from 2026-11-23 09:00 UTC\n",
		"sure:  this is likely, not certain",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q:\n%s", want, out)
		}
	}
}

// TestUndoOfAQueueWithTheNameOfAGlob checks `dlo topology undo '*'` while a queue has the name *.
// The command must choose only this queue.
func TestUndoOfAQueueWithTheNameOfAGlob(t *testing.T) {
	t.Parallel()
	all := []topology.Adopted{
		{Policy: topology.Policy{Name: "a"}, Queues: []string{"*"}},
		{Policy: topology.Policy{Name: "b"}, Queues: []string{"orders"}},
	}
	if got := (topologyUndoCmd{Queues: []string{"*"}}).choosePolicies(slices.Clone(all)); len(got) != 1 || got[0].Name != "a" {
		t.Errorf("%+v", got)
	}
	if got := (topologyUndoCmd{Queues: []string{"o*"}}).choosePolicies(slices.Clone(all)); len(got) != 1 || got[0].Name != "b" {
		t.Errorf("%+v", got)
	}
}

// TestLeavingWarnsOfLettersOnTheWay takes queues out of dlo to which dlo has sent letters. Before
// the command asks, it must say that these letters are lost if they fail again.
func TestLeavingWarnsOfLettersOnTheWay(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := `{"policies":[{"broker":"main","vhost":"/","name":"dlo-1","queues":["mail"]}]}`
		if q := r.URL.Query().Get("q"); strings.Contains(q, "queue:mail") && strings.Contains(q, "requeued") {
			text = `{"count":1,"exact":true}`
		}
		_, _ = w.Write([]byte(text))
	}))
	defer server.Close()
	for _, act := range []string{"leave", "undo"} {
		if _, errs, code := runTopology(
			t, Program{}, act, "mail", "--server", server.URL,
		); code != 2 || !strings.Contains(errs, "sent 1 letter back to these queues") {
			t.Errorf("%s: %d %s", act, code, errs)
		}
	}
}
