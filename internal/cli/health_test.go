package cli

import (
	"bytes"
	"net"
	"net/http"
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
