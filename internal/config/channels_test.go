package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deadletteroffice/dlo/internal/config"
)

// file writes a secret to a new file and returns the path of the file.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestChannels(t *testing.T) {
	t.Parallel()
	link, secret := file(t, "https://hooks.slack.com/services/T/B/x\n"), file(t, "s3cret\r\n")
	got, err := load(t, fmt.Sprintf(`rules: [{name: a, dead: {severity: page, notify: [oncall, team]}}]
default: {dead: {notify: [mail]}}
channels:
  oncall: {pagerduty: {key_file: %[2]s}}
  team: {slack: {url_file: %[1]s}}
  alerts: {alertmanager: {url: "http://127.0.0.1:9093/"}, allow_private: true}
  mail: {smtp: {host: mail.example.com, user: dlo, password_file: %[2]s, from: dlo@example.com, to: [team@example.com, "Ana <ana@example.com>"]}}
  hook: {allow_private: false, webhook: {url: "https://example.com/dlo", secret_file: %[2]s}}
digest: {notify: [team]}
`, link, secret))
	if err != nil {
		t.Fatal(err)
	}
	want := []config.Channel{
		{Name: "oncall", PagerDuty: &config.PagerDuty{Key: "s3cret"}},
		{Name: "team", Slack: &config.Slack{URL: "https://hooks.slack.com/services/T/B/x"}},
		{Name: "alerts", Alertmanager: &config.Alertmanager{URL: "http://127.0.0.1:9093"}, AllowPrivate: true},
		{
			Name: "mail",
			SMTP: &config.SMTP{
				Host:     "mail.example.com",
				Port:     587,
				User:     "dlo",
				Password: "s3cret",
				From:     "dlo@example.com",
				To:       []string{"team@example.com", "Ana <ana@example.com>"},
			},
		},
		{Name: "hook", Webhook: &config.Webhook{URL: "https://example.com/dlo", Secret: "s3cret"}},
	}
	if diff := cmp.Diff(want, got.Channels); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"oncall", "team"}, got.Rules.Rules[0].Notify); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([][]string{{"mail"}, {"team"}}, [][]string{
		got.Rules.Default.Notify, got.Digest.Notify,
	}); diff != "" {
		t.Error(diff)
	}
}

// kinds returns those fields of the struct Channel that stand for the kinds of channels, such as
// Mail.
func kinds() []reflect.StructField {
	var list []reflect.StructField
	for field := range reflect.TypeFor[config.Channel]().Fields() {
		if field.Type.Kind() == reflect.Pointer {
			list = append(list, field)
		}
	}
	return list
}

// TestEveryKindOfChannelHasAKey checks that each kind of channel has a key in the configuration,
// such as "slack". If a channel has no such key, the mistake must list all of these keys.
func TestEveryKindOfChannelHasAKey(t *testing.T) {
	t.Parallel()
	_, none := load(t, "channels: {a: {}}")
	if none == nil {
		t.Fatal("a channel of no kind was read")
	}
	words := strings.FieldsFunc(none.Error(), func(r rune) bool { return r == ' ' || r == ',' })
	for _, kind := range kinds() {
		key := strings.ToLower(kind.Name)
		if !slices.Contains(words, key) {
			t.Errorf("%s is not named: %v", key, none)
		}
		if _, err := load(t, "channels: {a: {"+key+": x}}"); err == nil ||
			!strings.Contains(err.Error(), key+": give keys with values") {
			t.Errorf("%s is not read: %v", key, err)
		}
	}
}

func TestTheManualHasEveryKindOfChannel(t *testing.T) {
	t.Parallel()
	manual, err := os.ReadFile("../../docs/notifications.md")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(readme), "each incident: by")
	list, _, _ = strings.Cut(list, ".")
	for _, kind := range kinds() {
		key := strings.ToLower(kind.Name)
		name := strings.Replace(key, "smtp", "mail", 1)
		for _, want := range []string{"\n| " + name + " |", "\n### " + name + "\n", "{" + key + ": {"} {
			if !strings.Contains(strings.ToLower(string(manual)), want) {
				t.Errorf("docs/notifications.md has no %q", want)
			}
		}
		if !strings.Contains(strings.ToLower(list), name) {
			t.Errorf("README.md does not name %s: %s", name, list)
		}
	}
}

// TestWhoIsToldOfProblems checks that only existing channels can be notified of problems.
func TestWhoIsToldOfProblems(t *testing.T) {
	t.Parallel()
	const channels = "channels: {oncall: {alertmanager: {url: \"http://127.0.0.1:9093\"}, allow_private: true}}\n"
	c, err := load(t, channels+"problems: {notify: [oncall]}")
	if err != nil || !slices.Equal(c.Problems.Notify, []string{"oncall"}) {
		t.Errorf("%v, %v", c.Problems, err)
	}
}
