package config_test

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/deadletteroffice/dlo/internal/config"
)

// TestWhatIsShownIsInForce reads again what Show returns. It must be the same configuration, and
// nothing may be left to defaults or to the environment.
func TestWhatIsShownIsInForce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("https://example.com/hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	variables := env(map[string]string{
		"DLO_LISTEN": "127.0.0.1:9", "DLO_STORE": "other.db", "DLO_AMQP_URL": "amqp://guest:guest@other/",
		"DLO_MANAGEMENT_URL": "none", "QUEUE": "$${x}",
	})
	for name, c := range map[string]struct {
		text   string
		getenv func(string) string
	}{
		"no key": {"", noEnv}, "a null": {"disk:\nhosts:\n", noEnv}, "every key": {everySetting(secret), noEnv},
		"other keys": {
			"# a comment\nretention: {settled: 1d} # old\ndefault: {retry: {first: 1s, attempts: 3}}\n" +
				"listen: [127.0.0.1:1, 127.0.0.1:2]\n" +
				"brokers: &b [{name: x}, {name: y, url: amqp://y/, rates: {b: 2, a: 1}}]\n" +
				"rules: [{name: a, match: {queue: q}, retry: {first: 2s, attempts: 2}}, {name: b, discard: false}]\n" +
				"channels: {a: {slack: {url_file: " + secret + "}}}\n", noEnv,
		},
		"the environment": {
			"brokers: [{name: main, amqp: {host: h}}]\n" +
				"rules: [{name: a, match: {queue: 'a${QUEUE}', type: b$$c}}]", variables,
		},
		"the environment alone": {"", variables},
	} {
		path := filepath.Join(dir, "dlo.yaml")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		want, err := config.Load(path, c.getenv)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		shown, err := config.Show(path, c.getenv)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := load(t, shown)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, shown)
		}
		for i := range want.Rules.Rules {
			want.Rules.Rules[i].YAML = got.Rules.Rules[i].YAML
		}
		if diff := cmp.Diff(
			want, got, patterns, origin, cmpopts.EquateEmpty(),
			cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
		); diff != "" {
			t.Errorf("%s: (-in force +shown):\n%s\n%s", name, diff, shown)
		}
		for _, key := range []string{"listen", "brokers", "ingest", "requeue", "retention", "type_headers", "session"} {
			if !regexp.MustCompile(`\b` + key + `:`).MatchString(shown) {
				t.Errorf("%s: %s is not shown", name, key)
			}
		}
	}
}

// TestWhatIsShownHasNoSecret shows files whose URLs contain secrets.
func TestWhatIsShownHasNoSecret(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "dlo.yaml")
	if err := os.WriteFile(path, []byte(`
brokers:
  - {name: a, url: "amqps://dlo:${PASSWORD}@h/v", management: "http://dlo:${PASSWORD}@h:15672"}
  - {name: main, annotations: "", inboxes: [x], exchange: ""}
channels: {oncall: {alertmanager: {url: "https://hooks.example.com/hunter2?key=hunter2"}}}
public_url: https://dlo.example.com/?api_key=hunter2
links:
  - {name: a, url: "https://h/?token=hunter2&q={queue}#access_token=hunter2"}
  - {name: b, url: "https://h/?X-Amz-Signature=hunter2{queue}&routing_key={queue}"}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	shown, err := config.Show(path, env(map[string]string{
		"PASSWORD": "hunter2", "DLO_AMQP_URL": "amqp://u:hunter2%2F@h2/?password=hunter2&certfile=c",
		"DLO_MANAGEMENT_URL": "https://u:hunter2@h2",
	}))
	if err != nil || strings.Contains(shown, "hunter2") {
		t.Errorf("%v: %s", err, shown)
	}
	for _, want := range []string{
		"amqps://dlo:••••@h/v", "http://dlo:••••@h:15672", "amqp://u:••••@h2/?password=••••&certfile=c", "https://u:••••@h2",
		"https://hooks.example.com/••••", "https://dlo.example.com/?api_key=••••",
		"https://h/?token=••••&q={queue}#access_token=••••", "https://h/?X-Amz-Signature=••••&routing_key={queue}",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("%s is not in\n%s", want, shown)
		}
	}
	const putBack = "the password or token in this URL is hidden, as dlo config show prints it; put it back"
	if _, err := load(t, shown); err == nil || strings.Count(err.Error(), "\n")+1 != strings.Count(err.Error(), putBack) ||
		strings.Count(err.Error(), putBack) != strings.Count(shown, "://")-strings.Count(shown, "guest") {
		t.Errorf("what is hidden is loaded: %v", err)
	}
	if err := os.WriteFile(path, []byte("listen: [\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if shown, err := config.Show(path, noEnv); err == nil || shown != "" {
		t.Errorf("a file with a mistake is shown: %s", shown)
	}
}

// TestAPipeIsShown shows a configuration that can be read only once.
func TestAPipeIsShown(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.WriteString("store: mine.db"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	shown, err := config.Show(fmt.Sprintf("/dev/fd/%d", r.Fd()), noEnv)
	if err != nil || !strings.Contains(shown, "store: mine.db") {
		t.Errorf("%v\n%s", err, shown)
	}
}
