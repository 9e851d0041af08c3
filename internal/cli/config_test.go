package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// configCheck runs `dlo config check` on a configuration with the given text.
func configCheck(t *testing.T, text string, args ...string) (code int, out, errs string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dlo.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr strings.Builder
	err := Run(Program{
		Ctx: t.Context(), Getenv: func(string) string { return "" }, Stdin: strings.NewReader(""), Stdout: &stdout,
		Stderr: &stderr, Check: nil,
	}, &struct{}{}, append([]string{"config", "check", path}, args...))
	code = ExitCode(err, &stderr)
	return code, stdout.String(), strings.ReplaceAll(stderr.String(), path, "dlo.yaml")
}

// TestConfigCheckReadsTheFileThatIsNamed checks the three ways to name the configuration file: an
// argument, --config and the environment.
func TestConfigCheckReadsTheFileThatIsNamed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "dlo.yaml")
	if err := os.WriteFile(path, []byte("rules: [{}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	mistake := "dlo: " + path + ":1:9: a rule needs a name\n"
	for _, c := range []struct {
		name        string
		args        []string
		environment string
		code        int
		errs        string
	}{
		{"none", nil, "", 0, ""},
		{"an argument", []string{path}, "/none", ExitUsage, mistake},
		{"the flag", []string{"--config", path}, "/none", ExitUsage, mistake},
		{"the environment", nil, path, ExitUsage, mistake},
		{"both alike", []string{path, "--config=" + path}, "", ExitUsage, mistake},
		{
			"two",
			[]string{path, "--config=/none"},
			"",
			ExitUsage,
			"dlo: usage: the configuration is " + path + " as an argument and /none with --config; name one of them\n",
		},
	} {
		var stdout, stderr strings.Builder
		getenv := func(name string) string { return map[string]string{"DLO_CONFIG": c.environment}[name] }
		err := Run(Program{
			Ctx: t.Context(), Getenv: getenv, Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr,
		}, &struct{}{}, append([]string{"config", "check"}, c.args...))
		if code := ExitCode(err, &stderr); code != c.code || stderr.String() != c.errs {
			t.Errorf("%s: exit code %d\n%s", c.name, code, stderr.String())
		}
	}
}

// TestConfigShowPrintsTheConfigurationInForce shows a file that DLO_CONFIG names, and a
// file with a mistake.
func TestConfigShowPrintsTheConfigurationInForce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "dlo.yaml")
	for text, want := range map[string]string{
		"brokers: [{name: main, url: 'amqp://dlo:${PASSWORD}@h/'}]": "amqp://dlo:••••@h/", "no_key: 1": "there is no key",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var stdout, stderr strings.Builder
		getenv := func(name string) string {
			return map[string]string{"DLO_CONFIG": path, "PASSWORD": "hunter2"}[name]
		}
		code := ExitCode(Run(Program{
			Ctx: t.Context(), Getenv: getenv, Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr,
		}, &struct{}{}, []string{"config", "show"}), &stderr)
		if all := stdout.String() + stderr.String(); !strings.Contains(all, want) || strings.Contains(all, "hunter2") ||
			(code == 0) != strings.Contains(all, "retention:") {
			t.Errorf("%s: exit code %d\n%s", text, code, all)
		}
	}
}

func TestConfigCheckWarnsOfQueuesThatNobodyKnows(t *testing.T) {
	t.Parallel()
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.Method != http.MethodGet || r.URL.Path != "/api/v1/queues" {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		io.WriteString(
			w,
			`{"queues":[{"broker":"main","vhost":"/","queue":"billing.invoices","paused":false},{"broker":"main","vhost":"/eu","queue":"sms"}]}`,
		)
	}))
	defer server.Close()
	const text = `rules:
- {name: known, match: {queue: ["billing.*", "s*s"], reason: rejected}}
- {name: one of two, match: {queue: ["billing.invoices", "biling.*"], reason: expired}}
- {name: elsewhere, match: {queue: sms, vhost: /}}
- {name: other, match: {queue: sms, broker: west}}
- {name: no queue, match: {error: "*"}}
`
	for _, c := range []struct {
		name string
		args []string
		text string
		code int
		errs string
	}{
		{"offline", nil, text, 0, ""},
		{
			"asking",
			[]string{"--server", server.URL + "/"},
			text,
			0,
			"dlo: warning: rule one of two: no queue that the server knows fits biling.*\n" +
				"dlo: warning: rule elsewhere: no queue that the server knows fits sms\ndlo: warning: rule other: no queue that the server knows fits sms\n",
		},
		{"no rules", []string{"--server", server.URL}, "", 0, ""},
		{
			"a mistake: nobody is asked",
			[]string{"--server", server.URL},
			"rules: [{}]",
			ExitUsage,
			"dlo: dlo.yaml:1:9: a rule needs a name\n",
		},
		{
			"no URL",
			[]string{"--server", "localhost"},
			"",
			ExitUsage,
			"dlo: usage: --server \"localhost\" is not a URL such as http://127.0.0.1:8672\n",
		},
	} {
		code, out, errs := configCheck(t, c.text, c.args...)
		if code != c.code || errs != c.errs || (out == "the configuration is good\n") != (code == 0) {
			t.Errorf("%s: exit code %d, %q\n%s", c.name, code, out, errs)
		}
	}
	if asked != 2 {
		t.Errorf("the server was asked %d times", asked)
	}
	server.Close()
	if code, _, errs := configCheck(
		t, "", "--server", server.URL,
	); code != ExitFailed || !strings.Contains(errs, "no dlo answers") {
		t.Errorf("no server: exit code %d\n%s", code, errs)
	}
}

// TestConfigCheckWarnsOfPathsThatNoTypeHas checks search.fields against the types of a server.
func TestConfigCheckWarnsOfPathsThatNoTypeHas(t *testing.T) {
	t.Parallel()
	types := `{"sets":[{"name":"shop"}],"paths":[]}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/api/v1/queues":
			io.WriteString(w, `{"queues":[]}`)
		case r.URL.Path == "/api/v1/types" && r.URL.Query().Get("q") == "buyer.fullName":
			io.WriteString(w, `{"sets":[{"name":"shop"}],"paths":["buyer.full_name"]}`)
		case r.URL.Path == "/api/v1/types" && r.URL.Query().Get("q") == "tenant id":
			io.WriteString(w, types)
		default:
			t.Errorf("%s %s", r.Method, r.URL)
		}
	}))
	defer server.Close()
	const text = "search: {fields: [buyer.fullName, tenant id]}"
	for _, want := range []string{
		"dlo: warning: search.fields: no type that the server knows has tenant id, so it finds only JSON bodies\n", "",
	} {
		if code, _, errs := configCheck(t, text, "--server", server.URL); code != 0 || errs != want {
			t.Errorf("exit code %d, %q, want %q", code, errs, want)
		}
		types = `{"sets":[],"paths":[]}` // a server without types can say nothing about a path
	}
	if code, _, errs := configCheck(t, text); code != 0 || errs != "" {
		t.Errorf("offline: exit code %d, %q", code, errs)
	}
}

// TestConfigCheckNamesLettersThatAreLeftBehind checks the warning for a broker that was renamed in
// the configuration while the server still has letters under its old name.
func TestConfigCheckNamesLettersThatAreLeftBehind(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(
			w,
			`{"queues":[{"broker":"main","queue":"sms","scheduled":3,"held":1},{"broker":"main","queue":"email","dead":2},{"broker":"old","queue":"sms"}]}`,
		)
	}))
	defer server.Close()
	const warning = "dlo: warning: broker main is not in this file, but 6 of its letters on the server wait or need people, and dlo would not send them; if the broker has another name now, stop dlo and run dlo brokers rename main NEW\n"
	for text, want := range map[string]string{
		"":                        "",
		"brokers: [{name: prod}]": warning,
	} {
		code, out, errs := configCheck(t, text, "--server", server.URL)
		if code != 0 || out != "the configuration is good\n" || errs != want {
			t.Errorf("%q: exit code %d, %q\n%s", text, code, out, errs)
		}
	}
}
