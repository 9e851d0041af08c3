package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestContexts checks how servers and their tokens are saved and chosen. A token must be sent only
// to the server with which it was saved.
func TestContexts(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	env := map[string]string{"HOME": home}
	var got []string // requests that the servers received: name of the server, then the token
	serve := func(name, token string) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			sent := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
			got = append(got, name+" "+sent)
			if sent != token {
				rw.WriteHeader(http.StatusUnauthorized)
				json.NewEncoder(rw).Encode(api.Problem{Title: "Unauthorized", Detail: "the token is not valid"})
				return
			}
			grants := []deadletter.Grant{{Role: deadletter.RoleReader}}
			json.NewEncoder(rw).Encode(api.Me{Name: "token:" + name, Grants: grants})
		}))
		t.Cleanup(s.Close)
		return s
	}
	one, two := serve("one", "dlo_1"), serve("two", "dlo_2")
	run := func(stdin string, args ...string) (string, error) {
		var out, complaints strings.Builder
		var commands struct{}
		err := Run(Program{
			Ctx: t.Context(), Getenv: func(n string) string { return env[n] }, Stdin: strings.NewReader(stdin),
			Stdout: &out, Stderr: &complaints, Version: "test",
		}, &commands, args)
		return out.String(), err
	}
	must := func(want, stdin string, args ...string) {
		t.Helper()
		if text, err := run(stdin, args...); err != nil || !strings.Contains(text, want) {
			t.Fatalf("dlo %v: %q, %v; want %q", args, text, err, want)
		}
	}
	refused := func(want, stdin string, args ...string) {
		t.Helper()
		if text, err := run(stdin, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Fatalf("dlo %v: %q, %v; want %q", args, text, err, want)
		}
	}
	refused("a token begins with dlo_", "secret\n", "login", one.URL)
	refused("is not valid", "dlo_9\n", "login", one.URL)
	refused("this server needs a token: run dlo login URL, or set DLO_TOKEN", "", "whoami", "--server", one.URL)
	refused("is not a URL", "dlo_1\n", "login", "http://me:hunter2@dlo.example")
	if _, err := run("dlo_1\n", "login", "http://me:hunter2@dlo.example"); strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
	must("there are no contexts", "", "context", "list")
	must("You are token:one", "dlo_1\n", "login", one.URL, "--name", "first")
	must("You are token:two", "dlo_2", "login", two.URL+"/", "--name", "second")
	file := filepath.Join(home, ".config", "dlo", "contexts.json")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatal(info.Mode(), err)
	}
	must("* second", "", "context", "ls")
	must("token:two", "", "whoami")
	must("token:one", "", "whoami", "--context", "first")
	must("token:two", "", "whoami", "--server", two.URL)
	must("first is in use", "", "context", "use", "first")
	must("token:one", "", "whoami")
	env["DLO_CONTEXT"] = "second"
	must("token:two", "", "whoami")
	delete(env, "DLO_CONTEXT")

	got = nil
	other := serve("other", "")
	must("token:other", "", "whoami", "--server", other.URL)
	if len(got) != 1 || got[0] != "other " {
		t.Errorf("another server got %q", got)
	}
	env["DLO_SERVER"], env["DLO_TOKEN"] = two.URL, "dlo_2"
	must("token:two", "", "whoami")
	must("token:one", "", "whoami", "--context", "first")
	delete(env, "DLO_SERVER")
	delete(env, "DLO_TOKEN")

	refused(`no context "third"`, "", "whoami", "--context", "third")
	refused(`no context "third"`, "", "context", "use", "third")
	if text, err := run("", "context", "list"); err != nil || strings.Contains(text, "dlo_1") {
		t.Errorf("the list shows a token: %s, %v", text, err)
	}
	must("first is removed", "", "context", "remove", "first")
	if text, err := os.ReadFile(file); err != nil || strings.Contains(string(text), "dlo_1") ||
		!strings.Contains(string(text), "dlo_2") {
		t.Errorf("%s, %v", text, err)
	}
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	refused("can be read by others", "", "context", "list")
	refused("can be read by others", "", "whoami", "--context", "second")
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	refused("run dlo login again", "", "context", "list")
}

// TestATokenIsNotSentOn checks that the command line follows no redirect, so that no other server
// gets the token. The error must name the URL of the other server.
func TestATokenIsNotSentOn(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the other server got %s with %q", r.URL, r.Header)
	}))
	defer other.Close()
	for _, c := range []struct {
		to   string
		code int
		want string
	}{
		{
			other.URL + "/dlo/api/v1/me", http.StatusMovedPermanently,
			"the server redirects to " + other.URL + "/dlo; use that URL with --server",
		},
		{
			other.URL + "/api/v1/me", http.StatusTemporaryRedirect,
			"the server redirects to " + other.URL + "; use that URL with --server",
		},
		{
			other.URL + "/api/v1/me", http.StatusPermanentRedirect,
			"the server redirects to " + other.URL + "; use that URL with --server",
		},
		{
			other.URL + "/signin?next=secret", http.StatusFound,
			"the server redirects to " + other.URL +
				"/signin, which is not its API; --server needs the URL at which dlo answers",
		},
		{"/signin", http.StatusSeeOther, "/signin, which is not its API"},
		{"", http.StatusFound, "the server answered 302 Found"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			if c.to != "" {
				rw.Header().Set("Location", c.to)
			}
			rw.WriteHeader(c.code)
		}))
		env := map[string]string{"DLO_SERVER": server.URL, "DLO_TOKEN": "dlo_1", "HOME": t.TempDir()}
		var out, complaints strings.Builder
		var commands struct{}
		err := Run(Program{
			Ctx: t.Context(), Getenv: func(n string) string { return env[n] }, Stdin: strings.NewReader(""),
			Stdout: &out, Stderr: &complaints, Version: "test",
		}, &commands, []string{"whoami"})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("a redirect to %q: %v, want %q", c.to, err, c.want)
		}
		server.Close()
	}
}
