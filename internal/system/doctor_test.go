package system

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/cli"
	"github.com/deadletteroffice/dlo/internal/server"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// doctor runs `dlo doctor` with the given configuration. It returns the output, and fails the test
// unless the exit code is the expected one.
func doctor(t *testing.T, code int, text string, args ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dlo.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs strings.Builder
	program := cli.Program{
		Ctx: t.Context(), Getenv: noEnvironment, Stdout: &out, Stderr: &errs, Version: "test", Doctor: server.Doctor,
	}
	err := cli.Run(program, &commands{}, append([]string{"doctor", "--config", path}, args...))
	if got := cli.ExitCode(err, &errs); got != code {
		t.Fatalf("exit code %d, want %d\n%s%s", got, code, out.String(), errs.String())
	}
	return out.String()
}

// TestTheDoctor runs `dlo doctor` for a healthy dlo that runs, and for a dlo with a fault in each
// part. For every problem, the doctor must name a cure.
func TestTheDoctor(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	vhost, address := node.VHost(t)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"slack": "https://hooks.slack.example/a", "secret": "secret",
		"types/a.proto": "syntax = \"proto3\"; message A { int32 a = 1; }", "bad/a.proto": "message {",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	brokers := fmt.Sprintf("brokers: [{url: %q, management: %q}]\n", address, node.ManagementURLOf("guest:guest"))
	text := brokers + fmt.Sprintf(
		"channels: {ops: {slack: {url_file: %s/slack}}}\nschemas: {directory: %[1]s/types}\n", dir,
	)
	p := newChild(t, address, text)
	p.Start("")
	p.Draining()
	text += "store: " + p.store + "\n"
	running := doctor(t, 0, "amqp: this file is not read", "--server", p.url)
	if first, _, _ := strings.Cut(running, "\n"); !strings.HasSuffix(first, "the dlo that runs at "+p.url) {
		t.Errorf("the doctor asked %q", first)
	}
	out := doctor(t, 0, text)
	if !strings.Contains(running, "ok       broker main") || !strings.HasPrefix(out, "ok       checked") ||
		strings.Contains(out, "runs at") {
		t.Errorf("by the running dlo:\n%swith the file:\n%s", running, out)
	}
	for _, part := range []string{
		"configuration", "broker main", "paths of main", "room at main", "clock", "store", "disk", "channel ops",
		"schemas",
	} {
		if !strings.Contains(out, "\nok       "+part+" ") && !strings.HasPrefix(out, "ok       "+part+" ") {
			t.Errorf("%s is not ok:\n%s", part, out)
		}
	}
	hung, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer hung.Close()
	silent := newChild(t, address, strings.Replace(
		brokers, node.ManagementURLOf("guest:guest"), "http://guest:guest@"+hung.Addr().String(), 1,
	))
	silent.Start("")
	if out := doctor(t, 1, "", "--server", silent.url); !strings.Contains(out, "no answer within 10s") ||
		!strings.Contains(out, "ok       schemas") {
		t.Errorf("the management API does not answer:\n%s", out)
	}
	var list api.Doctor
	if err := json.Unmarshal([]byte(doctor(t, 0, text, "-o", "json")), &list); err != nil || len(list.Checks) != 10 {
		t.Errorf("%v, %d results", err, len(list.Checks))
	}

	user, powerless := node.User(t, vhost, "management")
	limited := fmt.Sprintf(
		"brokers: [{amqp: %s, management: {url: %q, user: %q, password_file: %s/secret}}]\nstore: %s\n",
		amqpOf(t, powerless), strings.Replace(node.ManagementURLOf("x"), "x@", "", 1), user, dir, p.store,
	)
	a := adoptable(t, node, vhost, address)
	if out := doctor(t, 1, brokers); !strings.Contains(out, "ok       channels               none is configured") {
		t.Errorf("without channels:\n%s", out)
	}
	for what, c := range map[string]struct{ text, want string }{
		"paths": {text, "2 of 2 findings lose dead letters or can lose them"},
		"broker": {
			"brokers: [{url: 'amqp://guest:guest@127.0.0.1:1/'}]\nstore: " + p.store + "\n",
			"Until dlo has connected once",
		},
		"management": {
			strings.Replace(text, node.ManagementURLOf("guest:guest"), "http://guest:guest@127.0.0.1:1", 1),
			"the management API does not answer",
		},
		"rights":  {limited, "set_permissions"},
		"store":   {strings.Replace(text, p.store, dir+"/types", 1), "is not a file"},
		"folder":  {strings.Replace(text, p.store, dir+"/none/dlo.db", 1), "none does not exist"},
		"disk":    {text + "disk: {stop_below_percent: 99}\n", "disk"},
		"schemas": {strings.Replace(text, "/types", "/bad", 1), "a.proto"},
	} {
		t.Run(what, func(t *testing.T) {
			out := doctor(t, 1, c.text)
			if !strings.Contains(out, c.want) {
				t.Errorf("%q is missing in:\n%s", c.want, out)
			}
			if problems, cures := strings.Count(
				"\n"+out, "\nproblem ",
			), strings.Count(out, " cure: "); problems == 0 || problems != cures {
				t.Errorf("%d problems, %d cures:\n%s", problems, cures, out)
			}
		})
	}
	// The user has all rights, but only the tag "management". With this tag, the doctor can check
	// everything except how much room for letters the broker has. If the user has no tag, the
	// doctor names the tag that is missing.
	node.Grant(t, vhost, user, ".*", ".*", ".*")
	out = doctor(t, 1, limited)
	for _, want := range []string{
		"ok       broker main", "problem  paths of main", "ok       room at main", "The user needs the tag monitoring",
		"ok       clock",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("with the tag management, %q is missing in:\n%s", want, out)
		}
	}
	if err := node.API(http.MethodPut, "/api/users/"+user, map[string]string{
		"password": "secret", "tags": "",
	}, nil); err != nil {
		t.Fatal(err)
	}
	if out = doctor(t, 1, limited); !strings.Contains(out, "rabbitmqctl set_user_tags") {
		t.Errorf("without a tag, the doctor names none:\n%s", out)
	}
	a.api(http.MethodPut, "policies", "short", map[string]any{
		"pattern":    "^dlo.letters$",
		"definition": map[string]any{"message-ttl": 60000},
		"priority":   9,
		"apply-to":   "queues",
	})
	eventually(t, "the doctor sees that the broker deletes letters", func() bool {
		out := doctor(t, 1, text)
		return strings.Contains(out, "problem  broker main") && strings.Contains(out, "message-ttl 60000") &&
			strings.Contains(out, "GiB before its disk alarm blocks all publishers")
	})
}
