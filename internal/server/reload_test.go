package server

import (
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const reloadConfig = "store: %[1]s/dlo.db\nlisten: 127.0.0.1:0\nschemas: {directory: %[1]s/schemas}\n" +
	"brokers:\n- {name: main, url: \"amqp://guest:guest@127.0.0.1:1/\"%[3]s}\n%[2]s\n"

// reloaded writes a configuration file with other settings, and lets a running dlo read it.
func reloaded(t *testing.T, s *Server, path, top, broker string) (deadletter.Reload, error) {
	t.Helper()
	text := fmt.Sprintf(reloadConfig, filepath.Dir(path), top, broker)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return s.Reload(t.Context(), "ana", false)
}

// runReloadable starts a dlo with a configuration file that reloaded can write. It ends without an
// error.
func runReloadable(t *testing.T) (*Server, string) {
	t.Helper()
	s, path, ended := startReloadable(t, t.Output())
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s, path
}

func startReloadable(t *testing.T, log io.Writer) (*Server, string, <-chan error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dlo.yaml")
	text := fmt.Sprintf(reloadConfig, filepath.Dir(path), "", "")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(path, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(t.Context(), cfg, Options{Getenv: os.Getenv, Log: log, Crash: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Run(t.Context()) }()
	return s, path, ended
}

// successful returns the value of the metric dlo_config_last_reload_successful.
func successful(t *testing.T, s *Server) float64 {
	t.Helper()
	families, err := s.current.Load().Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "dlo_config_last_reload_successful" {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	return -1
}

// TestEveryKeyIsReloaded gives each key of the configuration another value while dlo is running.
// After a reload, dlo works with the configuration that it would have after a start.
func TestEveryKeyIsReloaded(t *testing.T) {
	t.Parallel()
	s, path := runReloadable(t)
	dir := filepath.Dir(path)
	web := func() *Server { return s.current.Load() }
	tested := slices.Clone(config.NextStart)
	for _, c := range []struct {
		key, top, broker string
		used             func() bool // nil = the components of a start with this configuration use it
	}{
		{key: "public_url", top: "public_url: http://127.0.0.1:9", used: func() bool { return web().web.PublicURL != "" }},
		{key: "hosts", top: "hosts: [dlo.example]", used: func() bool {
			return slices.Contains(web().web.Hosts, "dlo.example")
		}},
		{key: "base_path", top: "base_path: /dlo", used: func() bool { return web().web.BasePath == "/dlo" }},
		{key: "ops_open", top: "ops_open: true"},
		{key: "auth", top: "auth: {users: true}", used: func() bool { return web().accounts != nil }},
		{key: "grants", top: "auth: {users: true}\ngrants: [{role: admin, to: [everyone]}]", used: func() bool {
			return len(web().who.Granted("user:x")) > 0
		}},
		{key: "requests", top: "auth: {users: true}\nrequests: 7", used: func() bool { return web().web.Requests == 7 }},
		{key: "read_only", top: "read_only: true", used: func() bool {
			p := deadletter.Local
			web().web.Restrict(&p)
			return p.Fixed != ""
		}},
		{key: "log", top: "log: {format: json, level: error, requests: true}", used: func() bool {
			return s.logged.json.Load() && s.logged.level.Level() > 0 && web().web.Logged != nil
		}},
		{key: "audit", top: "audit: {file: " + dir + "/audit.json}", used: func() bool {
			text, err := os.ReadFile(dir + "/audit.json")
			return err == nil && strings.Contains(string(text), "audit.file")
		}},
		{key: "disk", top: "disk: {stop_below: 900000GiB}", used: func() bool { return s.space.Room() != nil }},
		{key: "ingest", top: "ingest: {letters: 7}"},
		{key: "requeue", top: "requeue: {max_body: 1MiB}", used: func() bool {
			return web().web.MaxBody == 1<<20 && web().decoderNow().MaxBody == 1<<20
		}},
		{key: "rules", top: "rules: [{name: a, match: {queue: q}, discard: true}]", used: func() bool {
			return len(s.rules.Set().Rules) == 1
		}},
		{key: "default", top: "default: {retry: {delays: [3s]}}", used: func() bool {
			return s.rules.Set().Default.Retry.Delays[0] == 3*time.Second
		}},
		{key: "schemas", top: "", used: func() bool { return web().library.Directory == dir+"/schemas" }},
		{key: "masking", top: "masking: [{header: x-card}]", used: func() bool {
			_, masked := web().outbox.mask("x-card", "4111")
			return masked
		}},
		{key: "failure_headers", top: "failure_headers: {type: [x-kind]}", used: func() bool {
			return len(web().web.FailureHeaders.Type) == 1
		}},
		{key: "search", top: "search: {fields: [a.b]}", used: func() bool { return len(web().web.Fields) == 1 }},
		{key: "links", top: "links: [{name: T, url: \"https://t.example/{trace_id}\"}]", used: func() bool {
			return len(web().web.Links) == 1
		}},
		{
			key: "channels", top: "channels: {am: {alertmanager: {url: \"http://127.0.0.1:9\"}, allow_private: true}}",
			used: func() bool { return len(*s.channels.Load()) == 1 },
		},
		{key: "quiet_hours", top: "quiet_hours: {days: [mon]}"},
		{key: "problems", top: "channels: {am: {alertmanager: {url: \"http://127.0.0.1:9\"}, allow_private: true}}\n" +
			"problems: {notify: [am]}", used: func() bool { return len(s.problemChannels()) == 1 }},
		{key: "digest", top: "digest: {at: \"09:00\"}"},
		{key: "retention", top: "retention: {discarded: 3d}", used: func() bool {
			return web().web.Restore == 72*time.Hour
		}},
		{key: "backup", top: "backup: {folder: " + dir + "}", used: func() bool { return web().backups.Folder == dir }},
		{key: "brokers[0].label", broker: ", label: production", used: func() bool {
			return web().brokers()[0].Label == "production"
		}},
		{key: "brokers[0].inboxes", broker: ", inboxes: [other]", used: func() bool {
			return web().links[0].Status().Inboxes[0].Queue == "other"
		}},
		{key: "brokers[0].read_only", broker: ", read_only: true", used: func() bool {
			p := deadletter.Local
			web().web.Restrict(&p)
			return len(p.Frozen) == 1
		}},
		{key: "brokers[0].observe", broker: ", observe: true", used: func() bool {
			return web().targets.Observed(deadletter.Origin{Broker: "main", VHost: "/", Queue: "q"})
		}},
		{key: "brokers[0].origins", broker: ", origins: {dlo.letters: q}", used: func() bool {
			return web().configuredOrigin("main", "/", "dlo.letters") == "q"
		}},
		{key: "brokers[0].requeue_to", broker: ", requeue_to: [q]"},
		{key: "brokers[0].rates", broker: ", rates: {q: 1}"},
		{key: "brokers[0].intents", broker: ", intents: {q: never}"},
		{key: "brokers[0].idle_after", broker: ", idle_after: 1h"},
		{key: "brokers[0].exchange", broker: ", exchange: \"\"", used: func() bool { return web().setup().Exchange == "" }},
		{key: "brokers[0].accept_limited", broker: ", accept_limited: [dlo.letters]"},
		{key: "brokers[0].annotations", broker: ", annotations: \"\""},
		{key: "brokers[0].management", broker: ", management: \"http://127.0.0.1:1\"", used: func() bool {
			return web().links[0].Managed()
		}},
	} {
		tested = append(tested, c.key)
		done, err := reloaded(t, s, path, c.top, c.broker)
		if err != nil || len(done.NextStart) > 0 {
			t.Fatalf("%s: %+v %v", c.key, done, err)
		}
		wanted, err := config.Load(path, os.Getenv)
		if err != nil {
			t.Fatal(err)
		}
		if now := s.current.Load(); !now.cfg.SameWork(wanted) || !s.loaded.Load().SameWork(wanted) {
			t.Errorf("%s: dlo does not work with the new configuration", c.key)
		}
		for until := time.Now().Add(5 * time.Second); c.used != nil && !c.used(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(until) {
				t.Errorf("%s: the new value is not used", c.key)
				break
			}
		}
	}
	example, err := os.ReadFile("../../docs/examples/dlo.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range regexp.MustCompile(`(?m)^(?:# )?([a-z_]+): `).FindAllStringSubmatch(string(example), -1) {
		if !slices.Contains(tested, found[1]) {
			t.Errorf("nothing says whether a reload applies %s", found[1])
		}
	}
	rw := httptest.NewRecorder()
	s.current.Load().web.ServeHTTP(rw, httptest.NewRequest(http.MethodGet, "http://"+s.Addr()+"/", nil))
	if rw.Code != http.StatusOK {
		t.Errorf("after all reloads, the page has status %d", rw.Code)
	}
}

// TestAReloadIsRefusedWhole checks that a reload with a mistake changes nothing, and that keys that
// need a start are named and wait.
func TestAReloadIsRefusedWhole(t *testing.T) {
	t.Parallel()
	s, path := runReloadable(t)
	dir := filepath.Dir(path)
	secret := filepath.Join(dir, "hook")
	if err := os.WriteFile(secret, []byte("https://hooks.slack.example/a"), 0o600); err != nil {
		t.Fatal(err)
	}
	channel := "channels: {team: {slack: {url_file: " + secret + "}}}\n"
	if _, err := reloaded(t, s, path, channel, ""); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(secret); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ top, broker, want string }{
		{channel + "read_only: true", "", "no such file"},
		{"read_only: true\nrequests: many", "", "give a number"},
		{"read_only: true\naudit: {file: " + dir + "/none/audit}", "", "the folder " + dir + "/none does not exist"},
		{"read_only: true\nsearch: {fields: ['${NO_SUCH_VARIABLE}']}", "", "the environment has no variable NO_SUCH_VARIABLE"},
	} {
		now := s.current.Load()
		_, err := reloaded(t, s, path, c.top, c.broker)
		if err == nil || !strings.Contains(err.Error(), c.want) || s.current.Load() != now || now.cfg.ReadOnly {
			t.Errorf("%s: %v", c.top, err)
		}
		if v := successful(t, s); v != 0 {
			t.Errorf("%s: the metric is %v", c.top, v)
		}
	}
	done, err := reloaded(t, s, path, "read_only: true\nops_listen: 127.0.0.1:0", ", annotations: x}\n- {name: more, url: \"amqp://h/\"")
	if err != nil || len(done.Changes) == 0 || !s.current.Load().cfg.ReadOnly || len(s.current.Load().links) != 1 ||
		!slices.ContainsFunc(done.NextStart, func(c string) bool { return strings.HasPrefix(c, "ops_listen") }) ||
		!slices.ContainsFunc(done.NextStart, func(c string) bool { return strings.HasPrefix(c, "brokers[1]") }) {
		t.Errorf("%+v %v", done, err)
	}
	if v := successful(t, s); v != 1 {
		t.Errorf("the metric is %v", v)
	}
	kept := s.current.Load().links[0]
	if _, err := reloaded(t, s, path, "links: []\nbase_path: /x", ""); err != nil || s.current.Load().links[0] != kept {
		t.Errorf("a key that does not concern the broker has connected it again: %v", err)
	}
}

// TestAReloadThatFailsLate lets a new configuration fail after the work of the present one was
// stopped. dlo must work on with the present one.
func TestAReloadThatFailsLate(t *testing.T) {
	t.Parallel()
	s, path := runReloadable(t)
	db, err := sql.Open("sqlite", s.cfg.Store+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`CREATE TRIGGER stop_it BEFORE UPDATE ON meta WHEN new.key = 'grouping'
		BEGIN SELECT RAISE(ABORT, 'not today'); END`); err != nil {
		t.Fatal(err)
	}
	top := "read_only: true\nfailure_headers: {message: [x-problem]}"
	if _, err := reloaded(t, s, path, top, ""); err == nil || !strings.Contains(err.Error(), "not today") {
		t.Error(err)
	}
	if now := s.current.Load(); now.cfg.ReadOnly || now.picked.Load() == nil || now.web.Draining() || successful(t, s) != 0 {
		t.Error("dlo does not work with the configuration that it had")
	}
	if _, err := db.Exec(`DROP TRIGGER stop_it`); err != nil {
		t.Fatal(err)
	}
	if _, err := reloaded(t, s, path, top, ""); err != nil || !s.current.Load().cfg.ReadOnly || successful(t, s) != 1 {
		t.Error(err)
	}
}

// TestAReloadWaitsForRequests checks that a request that changes something is finished before a
// reload replaces the parts of dlo that it uses, that one that comes meanwhile waits, and that dlo
// stays ready.
func TestAReloadWaitsForRequests(t *testing.T) {
	t.Parallel()
	s, path := runReloadable(t)
	begun, finish, answered := make(chan struct{}), make(chan struct{}), make(chan int, 2)
	// the client sends a body only after the server has begun to read it
	client := http.Client{Transport: &http.Transport{ExpectContinueTimeout: time.Minute}}
	post := func(body io.Reader) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.Addr()+"/api/v1/deploys", body)
		if err != nil {
			t.Error(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Expect", "100-continue")
		answer, err := client.Do(r)
		if err != nil {
			t.Error(err)
			answered <- 0
			return
		}
		answer.Body.Close()
		answered <- answer.StatusCode
	}
	slow, w := io.Pipe()
	go post(slow)
	go func() {
		io.WriteString(w, `{"service":"mailer",`)
		close(begun)
		<-finish
		io.WriteString(w, `"version":"1"}`)
		w.Close()
	}()
	<-begun
	now := s.current.Load()
	over := make(chan error, 1)
	go func() {
		_, err := reloaded(t, s, path, "requests: 9", "")
		over <- err
	}()
	for !now.web.Draining() {
		time.Sleep(time.Millisecond)
	}
	go post(strings.NewReader(`{"service":"mailer","version":"2"}`))
	select {
	case err := <-over:
		t.Fatal("the reload did not wait:", err)
	case code := <-answered:
		t.Fatal("a request did not wait:", code)
	case <-time.After(300 * time.Millisecond):
	}
	close(finish)
	if err := <-over; err != nil || s.current.Load() == now {
		t.Error(err)
	}
	for range 2 {
		if code := <-answered; code != http.StatusCreated {
			t.Errorf("a request was answered with %d", code)
		}
	}
}

// TestAReloadThatCannotGoBack lets a reload fail, and then the configuration that was in use. dlo
// must end with the reason, and must not go on without its parts.
func TestAReloadThatCannotGoBack(t *testing.T) {
	t.Parallel()
	s, path, ended := startReloadable(t, io.Discard) // it ends at once, and its connections go on
	db, err := sql.Open("sqlite", s.cfg.Store+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), `ALTER TABLE picks RENAME TO others`); err != nil {
		t.Fatal(err)
	}
	if _, err := reloaded(t, s, path, "read_only: true", ""); err == nil || successful(t, s) != 0 {
		t.Error("the reload counts as successful:", err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "cannot be used again, so dlo ends") {
		t.Error(err)
	}
}
