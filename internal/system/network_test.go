package system

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/cli"
	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/server"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// writeConfig writes a configuration to a file of the test and loads it.
func writeConfig(t *testing.T, text string) config.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dlo.yaml")
	writeFile(t, path, fmt.Sprintf("store: %s/dlo.db\n%s%s", filepath.Dir(path), away, text))
	cfg, err := config.Load(path, noEnvironment)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// TestANetworkAddressNeedsMore checks the errors for configurations that would expose dlo to other
// machines without enough protection.
func TestANetworkAddressNeedsMore(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "none")
	for text, want := range map[string]string{
		"listen: 0.0.0.0:0": "needs auth (auth.proxy, auth.users or auth.tokens)",
		"listen: ':0'":      "needs auth (auth.proxy, auth.users or auth.tokens)",
		"{listen: '0.0.0.0:0', auth: {tokens: true}}":                                                        "needs tls, or auth.proxy",
		"{listen: '0.0.0.0:0', auth: {proxy: {from: [10.0.0.1]}}, grants: [{role: reader, to: [everyone]}]}": "set public_url, or hosts",
		"{listen: '127.0.0.1:0', ops_listen: '0.0.0.0:0'}":                                                   "set ops_open: true",
		"{listen: '127.0.0.1:0', tls: {cert_file: '" + secret + "', key_file: '" + secret +
			"'}}": "no such file",
	} {
		text = strings.TrimSuffix(strings.TrimPrefix(text, "{"), "}")
		if strings.Contains(text, ", ") {
			text = strings.NewReplacer(
				"', auth", "'\nauth", ", grants", "\ngrants", "', ops", "'\nops", "', tls", "'\ntls",
			).Replace(text)
		}
		s, err := server.New(t.Context(), writeConfig(t, text), server.Options{Getenv: noEnvironment, Log: io.Discard})
		if err == nil {
			s.Close()
		}
		var usage interface{ ExitCode() int }
		if !errors.As(err, &usage) || usage.ExitCode() != 2 || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestANetworkAddress serves dlo at an address that other machines can reach, with TLS, tokens and
// a proxy. It replaces the certificate while dlo runs.
func TestANetworkAddress(t *testing.T) {
	t.Parallel()
	certificate, key, pool := writeCertificate(t)
	ops := testenv.FreePort(t)
	cfg := writeConfig(
		t,
		fmt.Sprintf(
			"listen: 0.0.0.0:0\npublic_url: https://dlo.example.com\ntls: {cert_file: %s, key_file: %s}\nops_listen: 0.0.0.0:%d\nops_open: true\nauth: {tokens: true, proxy: {from: [127.0.0.1], user: X-Signed-In}}\ngrants: [{role: viewer, to: [everyone]}]\n",
			certificate, key, ops,
		),
	)

	var log strings.Builder
	s, err := server.New(t.Context(), cfg, server.Options{
		Getenv: noEnvironment, Log: &log, Version: "test", Crash: func(string) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	file, err := server.Tokens(t.Context(), cfg.Store)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := file.Add("first", deadletter.Grant{Role: deadletter.RoleAdmin}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = server.New(t.Context(), cfg, server.Options{
		Getenv: noEnvironment, Log: &log, Version: "test", Crash: func(string) {},
	}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	_, port, _ := strings.Cut(s.Addr(), "]:") // the address is [::]:PORT or 0.0.0.0:PORT
	if port == "" {
		_, port, _ = strings.Cut(s.Addr(), "0.0.0.0:")
	}
	call := func(pool *x509.CertPool, headers ...string) (*http.Response, error) {
		client := &http.Client{
			Timeout: 10 * time.Second,
			Transport: &http.Transport{
				ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "dlo.example.com"},
			},
		}
		defer client.CloseIdleConnections()
		r, err := http.NewRequest("GET", "https://127.0.0.1:"+port+"/api/v1/me", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "dlo.example.com"
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		answer, err := client.Do(r)
		if err == nil {
			answer.Body.Close()
		}
		return answer, err
	}
	if answer, err := call(
		pool, "Authorization", "Bearer "+secret,
	); err != nil || answer.StatusCode != 200 || answer.Proto != "HTTP/2.0" ||
		answer.Header.Get("Strict-Transport-Security") == "" {
		t.Errorf("%v %+v", err, answer)
	}
	if answer, err := call(pool, "X-Signed-In", "ana"); err != nil || answer.StatusCode != 200 {
		t.Errorf("the proxy names a person over TLS: %v %+v", err, answer)
	}
	if answer, err := call(pool); err != nil || answer.StatusCode != 401 {
		t.Errorf("without a token: %v %+v", err, answer)
	}
	if answer, err := http.Get("http://127.0.0.1:" + port + "/"); err != nil || answer.StatusCode != 400 {
		t.Errorf("in the clear: %v %+v", err, answer)
	}
	// /readyz answers 503, because the broker is unreachable
	for path, code := range map[string]int{
		"/healthz": 200, "/readyz": 503, "/metrics": 200, "/": 404, "/api/v1/letters": 404,
	} {
		answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d%s", ops, path))
		if err != nil || answer.StatusCode != code {
			t.Errorf("ops %s: %v %+v", path, err, answer)
		}
	}

	again, anotherKey, another := writeCertificate(t)
	// the new certificate does not match the old key, so dlo keeps the previous certificate
	if err := os.Rename(again, certificate); err != nil {
		t.Fatal(err)
	}
	time.Sleep(1100 * time.Millisecond) // longer than a second, because dlo checks the files once a second
	if _, err := call(pool); err != nil {
		t.Errorf("half of a renewal: %v", err)
	}
	if err := os.Rename(anotherKey, key); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		if _, err := call(another); err == nil {
			return
		} else if time.Now().After(until) {
			t.Fatal(err)
		}
	}
}

// TestTokensOnTheCommandLine adds the first token to the store of a stopped dlo, as
// docs/security.md says. It then uses this token.
func TestTokensOnTheCommandLine(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	p := serve(t, "", away, nil)
	run := func(code int, token string, args ...string) (out, errs string) {
		t.Helper()
		var o, e strings.Builder
		getenv := func(name string) string {
			return map[string]string{"DLO_SERVER": p.url, "DLO_TOKEN": token}[name]
		}
		err := cli.Run(cli.Program{
			Ctx: t.Context(), Getenv: getenv, Stdin: strings.NewReader(""), Stdout: &o, Stderr: &e, Version: "test",
			Tokens: openTokens,
		}, &commands{}, args)
		if got := cli.ExitCode(err, &e); got != code {
			t.Errorf("dlo %q: exit code %d, want %d\n%s%s", args, got, code, &o, &e)
		}
		return o.String(), e.String()
	}
	if _, errs := run(
		4, "", "token", "add", "admin", "--role", "admin", "--store", p.store,
	); !strings.Contains(errs, "dlo") {
		t.Error(errs)
	}
	if _, errs := run(
		2, "", "token", "add", "admin", "--role", "admin", "--store", p.store+".none",
	); !strings.Contains(errs, "start dlo once") {
		t.Error(errs)
	}
	p.stop()
	out, errs := run(0, "", "token", "add", "admin", "--role", "admin", "--store", p.store)
	admin := strings.TrimSpace(out)
	if !strings.HasPrefix(admin, "dlo_") || !strings.Contains(errs, "only time that it is shown") {
		t.Fatalf("%s%s", out, errs)
	}
	run(1, "", "token", "add", "admin", "--role", "admin", "--store", p.store) // fails because the name is already used

	writeFile(
		t, p.config,
		fmt.Sprintf("listen: 127.0.0.1:0\nstore: %s\n%sauth: {tokens: true, users: true}\n", p.store, away),
	)
	cfg, err := config.Load(p.config, noEnvironment)
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(t.Context(), cfg, server.Options{
		Getenv: noEnvironment, Log: io.Discard, Version: "test", Crash: func(string) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	defer func() { stop(); <-ended }()
	p.url = "http://" + s.Addr()

	if _, errs := run(1, "", "letters", "list"); !strings.Contains(errs, "run dlo login URL, or set DLO_TOKEN") {
		t.Error(errs)
	}
	if _, errs := run(
		1, admin+"x", "letters", "list",
	); !strings.Contains(errs, "the token is not valid") || strings.Contains(errs, admin) {
		t.Error(errs)
	}
	if out, _ := run(0, admin, "whoami"); out != "token:admin\n  admin\n" {
		t.Error(out)
	}
	out, _ = run(0, admin, "token", "add", "ci", "--role", "reader", "--expires", "90d")
	ci := strings.TrimSpace(out)
	run(2, admin, "token", "add", "x", "--role", "reader", "--expires", "soon")
	// fails because this admin lacks the permission reveal
	run(1, admin, "token", "add", "x", "--role", "reader", "--reveal")
	run(0, ci, "letters", "list")
	if _, errs := run(1, ci, "token", "list"); !strings.Contains(
		errs, "token:ci may not see or change who may do what; that needs the role admin",
	) {
		t.Error(errs)
	}
	if out, _ := run(
		0, admin, "token", "list",
	); !strings.Contains(out, "ci") || !strings.Contains(out, "reader") || strings.Count(out, "127.0.0.1") != 2 ||
		strings.Contains(out, ci) {
		t.Error(out)
	}
	run(0, admin, "token", "revoke", "ci")
	run(1, ci, "letters", "list")
	if out, _ := run(0, admin, "user", "add", "lena", "--role", "operator"); !strings.HasPrefix(
		out, "lena can choose a password at this link, which works once and for 72 hours: "+p.url+"/welcome?code=dlo_",
	) {
		t.Error(out)
	}
	run(1, admin, "user", "add", "Lena", "--role", "operator")
	if out, _ := run(
		0, admin, "user", "list",
	); !strings.Contains(out, "lena") || !strings.Contains(out, "never; invited") {
		t.Error(out)
	}
	if out, _ := run(0, admin, "user", "reset", "lena"); !strings.Contains(out, "/welcome?code=dlo_") {
		t.Error(out)
	}
	if out, _ := run(0, admin, "user", "remove", "lena"); out != "user lena is removed\n" {
		t.Error(out)
	}
	run(1, admin, "user", "remove", "lena")
	if out, _ := run(
		0, admin, "audit", "list", "-q", "action:token-revoked,denied",
	); !strings.Contains(out, "token:admin") || !strings.Contains(out, "token:ci") {
		t.Error(out)
	}
}

// TestTheFirstRun opens the link that a new dlo logs, and chooses the password of the first user.
// This dlo is served below a path, and the link contains that path. The test restarts dlo and signs
// in with this password. After the restart, dlo must not log a link.
func TestTheFirstRun(t *testing.T) {
	t.Parallel()
	cfg := writeConfig(t, "listen: 127.0.0.1:0\nbase_path: /tools/dlo\nauth: {users: true}\n")
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Timeout: 10 * time.Second, Jar: jar}
	run := func(visit func(base, log string)) {
		t.Helper()
		var log strings.Builder
		s, err := server.New(t.Context(), cfg, server.Options{
			Getenv: noEnvironment, Log: &log, Version: "test", Crash: func(string) {},
		})
		if err != nil {
			t.Fatal(err)
		}
		logged := log.String()
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		defer func() {
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}()
		visit("http://"+s.Addr()+cfg.BasePath, logged)
	}
	post := func(address string, form url.Values) (int, string) {
		t.Helper()
		answer, err := client.PostForm(address, form)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}
	const password = "four words make one"
	run(func(base, log string) {
		for _, path := range []string{"/", "/letters", "/audit", "/account"} {
			answer, err := client.Get(base + path)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			if answer.StatusCode != 200 && answer.StatusCode != 401 ||
				answer.StatusCode == 200 && answer.Request.URL.Path != cfg.BasePath+"/signin" {
				t.Errorf("%s before the first password: %d at %s", path, answer.StatusCode, answer.Request.URL)
			}
		}
		link := regexp.MustCompile(`link="?(http://[^"\s]+/welcome\?code=(dlo_[\w-]+))`).FindStringSubmatch(log)
		if link == nil || !strings.HasPrefix(link[1], base) {
			t.Fatal(log)
		}
		if code, text := post(base+"/welcome", url.Values{
			"code":     {link[2]},
			"new":      {password},
			"repeated": {password},
		}); code != 200 || !strings.Contains(text, "admin") {
			t.Fatal(code, text)
		}
	})
	run(func(base, log string) {
		if strings.Contains(log, "/welcome") {
			t.Error(log)
		}
		jar, _ := cookiejar.New(nil)
		client.Jar = jar
		if code, _ := post(base+"/signin", url.Values{"name": {"admin"}, "password": {"password"}}); code != 401 {
			t.Error(code)
		}
		if code, text := post(base+"/signin", url.Values{
			"name":     {"admin"},
			"password": {password},
			"next":     {"/account"},
		}); code != 200 || !strings.Contains(text, "admin, reveal, purge") {
			t.Errorf("%d %.500s", code, text)
		}
	})
}

// TestDloStartsWithoutAFirstUser starts dlo with a user whose role it does not know, so that it can
// make no link for the first user. dlo must start, because it has to take letters in. The log must
// say what to do.
func TestDloStartsWithoutAFirstUser(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	cfg := writeConfig(t, "listen: 127.0.0.1:0\nauth: {users: true}\n")
	var log strings.Builder
	start := func() {
		t.Helper()
		log.Reset()
		s, err := server.New(t.Context(), cfg, server.Options{
			Getenv: noEnvironment, Log: &log, Version: "test", Crash: func(string) {},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	start()
	db, err := sql.Open("sqlite", cfg.Store)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Exec(`UPDATE users SET role = 'emperor'`)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	start()
	if !strings.Contains(log.String(), "dlo token add") || strings.Contains(log.String(), "/welcome") {
		t.Error(log.String())
	}
}

// TestTheAuditIsCopied checks that the copy of the audit log contains every action up to the stop
// of the server.
func TestTheAuditIsCopied(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	p := serve(t, "", away+"audit: {file: "+file+"}\n", nil)
	p.dlo(t.Context(), 0, "", "deploys", "add", "mailer", "1.2")
	p.stop()
	text, err := os.ReadFile(file)
	if err != nil || strings.Count(string(text), "\n") != 1 ||
		!strings.Contains(string(text), `"kind":"deploy","actor":"local","through":"cli","address":"127.0.0.1"`) {
		t.Errorf("%v %s", err, text)
	}
}

// TestGrantsAreReloaded removes a grant while dlo runs. The next request must be denied. The audit
// must record the change of the grants immediately. A change of another key must be recorded only
// after a restart.
func TestGrantsAreReloaded(t *testing.T) {
	t.Parallel()
	text := func(role, more string) string {
		return "auth: {proxy: {from: [127.0.0.1], user: X-User}}\ngrants:\n  - {role: admin, to: ['user:root']}\n  - {role: " + role + ", to: ['user:ana']}\n" + more
	}
	p := newChild(t, "", away+text("operator", ""))
	p.Start("")
	ask := func(method, path, who, body string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, p.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-User", who)
		r.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}
	if code, text := ask("POST", "/api/v1/views", "ana", `{"name":"a","query":""}`); code != 201 {
		t.Fatal(code, text)
	}
	p.Configure(away + text("viewer", "ops_listen: 127.0.0.1:0\n"))
	p.Hangup()
	eventually(t, "the grant is taken away", func() bool {
		code, _ := ask("POST", "/api/v1/views", "ana", `{"name":"a","query":""}`)
		return code == 403
	})
	changes := func() string {
		t.Helper()
		code, text := ask("GET", "/api/v1/audit?kind=configuration+changed", "root", "")
		if code != 200 {
			t.Fatal(code, text)
		}
		return text
	}
	eventually(
		t, "the audit has the change",
		func() bool { return strings.Contains(changes(), "grants[1].role: viewer, before operator") },
	)
	if text := changes(); strings.Contains(text, "ops_listen") {
		t.Error(text)
	}
	eventually(
		t, "the log has the other change",
		func() bool { return strings.Contains(p.Log(), "apply from the next start") },
	)
	p.Stop()
	p.Start("")
	if text := changes(); !strings.Contains(text, "ops_listen added: 127.0.0.1:0") {
		t.Error(text)
	}
}

// TestReadOnly sets read_only. Nobody may change anything, and pages must still be shown.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	p := serve(t, "", away+"read_only: true\n", nil)
	p.dlo(t.Context(), 0, "", "letters", "list")
	if _, errs := p.dlo(t.Context(), 1, "", "deploys", "add", "mailer", "1.2"); !strings.Contains(
		errs, "nobody may mark deploys, because read_only is set",
	) {
		t.Error(errs)
	}
	answer, err := http.Get(p.url + "/")
	if err != nil || answer.StatusCode != 200 {
		t.Fatal(err, answer)
	}
	answer.Body.Close()
}
