// Package clients tests the OpenAPI document of the API. It generates clients from the document
// with widely used generators, and calls a running dlo with these clients. It is a separate module,
// because dlo does not need the generators.
package clients

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// TestAGoClient uses oapi-codegen 2.5.0, which reads OpenAPI 3.0 only.
func TestAGoClient(t *testing.T) {
	server := serve(t)
	folder := t.TempDir()
	document := fetch(t, server+"/api/v1/openapi.json?version=3.0", filepath.Join(folder, "openapi.json"))
	client := filepath.Join(folder, "client.go")
	run(t, ".", "go", "tool", "oapi-codegen", "-package", "client", "-generate", "types,client", "-o", client, document)

	// The generated file is not in the source tree. The option -overlay makes the Go compiler read
	// the file as if it were there.
	here, err := filepath.Abs("golang")
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]any{
		"Replace": map[string]string{filepath.Join(here, "client", "client.go"): client},
	})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(folder, "overlay.json")
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, ".", "go", "run", "-trimpath", "-overlay", overlay, "-tags", "generated", "./golang", server+"/api/v1")
}

// TestATypeScriptClient uses openapi-typescript 7.13.0, which reads OpenAPI 3.1.
func TestATypeScriptClient(t *testing.T) {
	if _, err := exec.LookPath("npm"); err != nil {
		testenv.Unavailable(t, testenv.ErrMissing)
	}
	server := serve(t)
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS("typescript")); err != nil {
		t.Fatal(err)
	}
	document := fetch(t, server+"/api/v1/openapi.json", filepath.Join(folder, "openapi.json"))
	run(t, folder, "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel", "error")
	run(t, folder, "node_modules/.bin/openapi-typescript", document, "-o", "client.d.ts")
	run(t, folder, "node_modules/.bin/tsc", "--strict", "--module", "nodenext", "--target", "es2022", "call.ts")
	run(t, folder, "node", "call.js", server+"/api/v1")
}

// serve starts a dlo whose broker cannot be reached, and returns its address.
func serve(t *testing.T) string {
	program := filepath.Join(t.TempDir(), "dlo")
	run(t, filepath.Join("..", ".."), "go", "build", "-trimpath", "-o", program, "./cmd/dlo")
	listen := "127.0.0.1:" + strconv.Itoa(testenv.FreePort(t))
	t.Setenv("DLO_LISTEN", listen)
	t.Setenv("DLO_STORE", filepath.Join(t.TempDir(), "dlo.db"))
	t.Setenv("DLO_AMQP_URL", "amqp://127.0.0.1:"+strconv.Itoa(testenv.FreePort(t)))
	testenv.Daemon(t, program, "", "serve")
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		resp, err := http.Get("http://" + listen + "/api/v1/me")
		if err == nil {
			resp.Body.Close()
			return "http://" + listen
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

func fetch(t *testing.T, url, file string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v\n%s", url, resp.Status, err, text)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func run(t *testing.T, folder, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = folder
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, said)
	}
}
