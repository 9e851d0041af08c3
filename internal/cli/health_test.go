package cli

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/config"
)

// TestHealth asks a dlo on a socket, which is alive and not ready.
func TestHealth(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go http.Serve(l, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			http.Error(rw, `{"ready":false}`, http.StatusServiceUnavailable)
		}
	}))
	var out bytes.Buffer
	p := &Program{Ctx: t.Context(), Stdout: &out, Getenv: func(name string) string {
		return map[string]string{"DLO_LISTEN": config.Unix + socket}[name]
	}}
	if err := (healthCmd{}).Run(p); err != nil || out.String() != "alive\n" {
		t.Errorf("%q %v", out.String(), err)
	}
	err = healthCmd{Ready: true}.Run(p)
	if err == nil || !strings.Contains(err.Error(), `503 Service Unavailable {"ready":false}`) {
		t.Error(err)
	}
}

// TestHealthOfAServer asks servers that a configuration file describes: one with names of its own
// and another address for probes, one whose file has got a mistake, and one that redirects.
func TestHealthOfAServer(t *testing.T) {
	t.Parallel()
	var host string
	alive := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { host = r.Host }))
	defer alive.Close()
	elsewhere := httptest.NewServer(http.RedirectHandler(alive.URL+"/healthz", http.StatusFound))
	defer elsewhere.Close()
	at, other := strings.TrimPrefix(alive.URL, "http://"), strings.TrimPrefix(elsewhere.URL, "http://")
	for _, c := range []struct{ file, host, want string }{
		{"listen: " + at, at, ""},
		{"listen: " + at + "\nhosts: [dlo.example]", "dlo.example", ""},
		{"listen: " + other + "\nops_listen: " + at + "\nhosts: [dlo.example]", at, ""},
		{"listen: " + at + "\nsearch: {fields: ['${GONE}']}", at, ""},
		{"listen: " + other, "", "302 Found"},
		{"listen: 127.0.0.1:1\nsearch: {fields: ['${GONE}']}", "", "no variable GONE"},
	} {
		path := filepath.Join(t.TempDir(), "dlo.yaml")
		if err := os.WriteFile(path, []byte(c.file), 0o600); err != nil {
			t.Fatal(err)
		}
		host = ""
		p := &Program{Ctx: t.Context(), Stdout: io.Discard, Getenv: func(name string) string {
			return map[string]string{"DLO_CONFIG": path}[name]
		}}
		err := (healthCmd{}).Run(p)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) || host != c.host {
			t.Errorf("%q: asked for %q: %v", c.file, host, err)
		}
	}
}
