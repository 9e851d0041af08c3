package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// sure maps each command that has --yes to arguments with which it does not ask.
var sure = map[string]string{
	"groups discard":     "G-1 --yes",
	"groups requeue":     "G-1 --yes",
	"letters discard":    "-q state:dead --yes",
	"letters edit":       "01a1fa78-7cd6-70b7-9438-fd9bc2a425ee --header a=b --yes",
	"letters hold":       "-q state:dead --yes",
	"letters purge":      "-q state:dead -y",
	"letters release":    "-q state:held --yes",
	"letters requeue":    "-q state:dead --yes",
	"letters reschedule": "-q state:scheduled --due-at 1h --yes",
	"letters restore":    "-q state:discarded --yes",
	"letters retry-now":  "-q state:scheduled --yes",
	"rules apply":        "--yes",
	"topology apply":     "--yes",
	"topology leave":     "orders --yes",
	"topology undo":      "orders --yes",
	"types remove":       "orders --yes",
}

// TestTheServerOfACommand checks to which server a command talks. A command that changes something
// must print that server on standard error. A command with --yes must not talk to a server that
// nothing names.
func TestTheServerOfACommand(t *testing.T) {
	t.Parallel()
	servers, asked := map[string]string{}, []string{}
	for _, name := range []string{"flag", "environment", "context", "listen", "file"} {
		s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			asked = append(asked, name)
			switch r.Method + " " + r.URL.Path {
			case "GET /api/v1/brokers":
				labels := []deadletter.BrokerStatus{{Label: "pro\x1bduction"}, {Label: "pro\x1bduction"}, {}, {Label: "spare"}}
				json.NewEncoder(rw).Encode(api.Brokers{Brokers: labels})
			case "POST /api/v1/tokens":
				grant := deadletter.Grant{Role: deadletter.RoleReader}
				json.NewEncoder(rw).Encode(api.NewSecret{APIToken: deadletter.APIToken{Grant: grant}, Secret: "dlo_1"})
			default:
				fmt.Fprint(rw, `{"letters": []}`)
			}
		}))
		t.Cleanup(s.Close)
		servers[name] = s.URL
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("home/.config/dlo/contexts.json",
		fmt.Sprintf(
			`{"current": "c", "contexts": [{"name": "c", "server": %q, "token": "dlo_1"}]}`, servers["context"],
		))
	write("broken/.config/dlo/contexts.json", "{")
	listen := strings.TrimPrefix(servers["listen"], "http://")
	const secret = "\nbrokers: [{amqp: {password_file: /no/such/file}}]\n"
	file := write("dlo.yaml", "listen: "+strings.TrimPrefix(servers["file"], "http://")+secret)
	run := func(env map[string]string, args ...string) (out, errs string, err error) {
		var o, e strings.Builder
		getenv := func(name string) string { return env[name] }
		p := Program{Ctx: t.Context(), Getenv: getenv, Stdin: strings.NewReader(""), Stdout: &o, Stderr: &e}
		err = Run(p, &struct{}{}, args)
		return o.String(), e.String(), err
	}
	home, broken := filepath.Join(dir, "home"), filepath.Join(dir, "broken")
	env := map[string]string{
		"DLO_SERVER": servers["environment"], "HOME": home, "DLO_LISTEN": listen, "DLO_CONFIG": file,
	}
	for _, c := range []struct{ name, flags, without string }{
		{"context", "--context c --server " + servers["flag"], ""},
		{"flag", "--server " + servers["flag"], ""},
		{"environment", "", ""},
		{"context", "", "DLO_SERVER"},
		{"listen", "", "HOME"},
		{"file", "", "DLO_LISTEN"},
	} {
		delete(env, c.without)
		asked = nil
		out, errs, err := run(env, strings.Fields("token add ci --role admin "+c.flags)...)
		if slices.Sort(asked); err != nil || !slices.Equal(slices.Compact(asked), []string{c.name}) ||
			out != "dlo_1\n" {
			t.Errorf("%s: asked %q, wrote %q, %v", c.name, asked, out, err)
		}
		if first, _, _ := strings.Cut(errs, "\n"); first != "server "+servers[c.name]+` (pro\x1bduction) (spare)` {
			t.Errorf("%s: the command says %q", c.name, errs)
		}
		for command, says := range map[string]bool{"rules apply --yes ": true, "letters list ": false} {
			_, errs, err := run(env, strings.Fields(command+c.flags)...)
			if err != nil || strings.HasPrefix(errs, "server ") != says {
				t.Errorf("%s: %q, %v", command, errs, err)
			}
		}
	}

	asked = nil
	refused := func(env map[string]string, want, command string) {
		t.Helper()
		_, errs, err := run(env, strings.Fields(command)...)
		if err == nil || !strings.Contains(err.Error(), want) || errs != "" {
			t.Errorf("dlo %s: %v, %q, want %q", command, err, errs, want)
		}
	}
	for command, args := range sure {
		refused(nil, "--yes needs a server that you name, with --server, DLO_SERVER or dlo login", command+" "+args)
	}
	for text, want := range map[string]string{
		"listen: unix:/d":            "only on Unix sockets; name a URL of the server with --server",
		"listen: [unix:/d, unix:/e]": "only on Unix sockets",
		"listen: '{'":                `--server "http://{" is not a URL`,
		"listen: [":                  "dlo config check, or name the server with --server",
	} {
		refused(map[string]string{"DLO_CONFIG": write("wrong.yaml", text)}, want, "letters list")
	}
	refused(map[string]string{"DLO_CONFIG": dir + "/none.yaml"}, "dlo config check, or name", "user reset lena")
	for text, want := range map[string]string{
		"":                                "http://127.0.0.1:8672",
		"listen: '[::1]:1'\nno: such key": "http://[::1]:1",
		"listen: dlo.example.com:1\ntls: {cert_file: /c, key_file: /k}": "https://dlo.example.com:1",
		"listen: [unix:/d, unix:/e, ':2', '[::1]:3']":                   "http://:2",
	} {
		env := map[string]string{"DLO_CONFIG": write("right.yaml", text+secret)}
		if got, err := listenURL(func(name string) string { return env[name] }); got != want || err != nil {
			t.Errorf("%q: %s, %v; want %s", text, got, err, want)
		}
	}
	for home, want := range map[string]string{home: `no context "none"`, broken: "run dlo login again"} {
		env := map[string]string{"HOME": home, "DLO_CONTEXT": "none", "DLO_LISTEN": listen, "DLO_TOKEN": "dlo_1"}
		refused(env, want, "letters list")
	}
	if len(asked) > 0 {
		t.Errorf("a command without a server asked %q", asked)
	}
	everyCommand(t, func(path string, _ command, node *kong.Node) {
		for _, f := range node.Flags {
			if _, known := sure[path]; f.Name == "yes" && !known && path != "init" { // init asks no server
				t.Errorf("dlo %s has --yes, and this test does not run it", path)
			}
		}
	})
}

// TestWhichRequestsChangeSomething compares the requests of which the command line says at which
// server they change something with the routes of the API.
func TestWhichRequestsChangeSomething(t *testing.T) {
	t.Parallel()
	routes, err := os.ReadFile("../../web/testdata/access.txt")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(routes)) {
		words := strings.Fields(line)
		if path, ok := strings.CutPrefix(
			words[1], "/api/v1",
		); ok && words[0] != http.MethodGet && !changes(words[0], path) {
			got = append(got, words[0]+" "+path)
		}
		if words[0] == http.MethodGet && changes(words[0], words[1]) {
			t.Errorf("%s changes something", line)
		}
	}
	want := []string{"POST /letters/{id}/reveal", "POST /rules/test", "POST /topology/plan", "POST /types/match"}
	if !slices.Equal(got, want) {
		t.Errorf("requests that only ask: %q, want %q", got, want)
	}
}
