package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/config"
)

// TestAnOutlineHasNoSecret checks that the outline contains every key. If a key can contain a
// secret, the outline must not contain its value.
func TestAnOutlineHasNoSecret(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "dlo.yaml")
	text := `
requests: 5
public_url: https://hunter2.example.com
grants: [{role: operator, to: ["group:payments"], queues: ["pay.*"]}]
auth: {proxy: {from: [10.0.0.1], secret_file: /run/hunter2}}
brokers:
  - {name: main, url: "amqps://dlo:hunter2@h/", management: "http://dlo:hunter2@h:15672", read_only: true}
channels: {oncall: {webhook: {url: "https://hooks.example.com/hunter2", headers: {Authorization: "Bearer hunter2"}}}}
masking: [{field: hunter2}]
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	outline, err := config.Outline(path, noEnv)
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range outline {
		if strings.Contains(value, "hunter2") {
			t.Errorf("%s: %s", key, value)
		}
	}
	for key, want := range map[string]string{
		"requests": "5", "grants[0].role": "operator", "grants[0].to[0]": "group:payments",
		"grants[0].queues[0]": "pay.*", "auth.proxy.from[0]": "10.0.0.1", "brokers[0].read_only": "true",
	} {
		if outline[key] != want {
			t.Errorf("%s is %q, want %q", key, outline[key], want)
		}
	}
	for _, key := range []string{
		"public_url", "auth.proxy.secret_file", "brokers[0].url", "brokers[0].management",
		"channels.oncall.webhook.url", "channels.oncall.webhook.headers.Authorization", "masking[0].field",
	} {
		if value := outline[key]; len(value) != 5 || value[0] != '#' {
			t.Errorf("%s is %q", key, value)
		}
	}
	before := outline["brokers[0].url"]
	if err := os.WriteFile(
		path, []byte(strings.Replace(text, "dlo:hunter2@h/", "dlo:hunter3@h/", 1)), 0o600,
	); err != nil {
		t.Fatal(err)
	}
	if outline, err = config.Outline(path, noEnv); err != nil || outline["brokers[0].url"] == before {
		t.Error("a new password is not noticed", err)
	}
}
