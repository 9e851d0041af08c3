package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/google/go-cmp/cmp"
)

func TestEnvironment(t *testing.T) {
	t.Parallel()
	got, err := config.Load("", env(map[string]string{
		"DLO_LISTEN": "127.0.0.1:1", "DLO_STORE": "other.db", "DLO_AMQP_URL": "amqps://u:p%2F@h/v",
		"DLO_MANAGEMENT_URL": "http://u:p@h:15672", "DLO_CONFIG": "x", "DLO_REQUEUE_RATE": "1",
	}))
	if err != nil {
		t.Fatal(err)
	}
	want := config.Defaults()
	want.Listen, want.Store = "127.0.0.1:1", "other.db"
	want.Brokers[0].URL, want.Brokers[0].Management = "amqps://u:p%2F@h/v", "http://u:p@h:15672"
	if diff := cmp.Diff(want, got, patterns, origin); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	path := filepath.Join(t.TempDir(), "dlo.yaml")
	if err := os.WriteFile(path, []byte("listen: 127.0.0.1:2\nbrokers: [{name: west}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err = config.Load(path, env(map[string]string{"DLO_LISTEN": "127.0.0.1:3"}))
	if err != nil || got.Listen != "127.0.0.1:3" {
		t.Errorf("the environment comes first: %s, %v", got.Listen, err)
	}
	_, err = config.Load(path, env(map[string]string{"DLO_AMQP_URL": "amqp://h/", "DLO_MANAGEMENT_URL": "http://h/"}))
	if err == nil || !strings.Contains(err.Error(), "DLO_AMQP_URL is for the broker named main, and there is none") ||
		!strings.Contains(err.Error(), "DLO_MANAGEMENT_URL is for the broker named main") {
		t.Error(err)
	}
}

// TestThePasswordOfTheEnvironmentWins sets URLs with and without a password where the file names
// files with passwords.
func TestThePasswordOfTheEnvironmentWins(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := "brokers: [{name: main, amqp: {password_file: " + secret + "}, management: {url: 'http://h', password_file: " +
		secret + "}}]"
	for user, want := range map[string]string{"u:new@": "", "u@": secret, "": secret} {
		c, err := config.Parse("", text, env(map[string]string{
			"DLO_AMQP_URL": "amqp://" + user + "h/", "DLO_MANAGEMENT_URL": "http://" + user + "h",
		}))
		if b := c.Brokers[0]; err != nil || b.PasswordFile != want || b.APIPassword != want {
			t.Errorf("%s: the files are %q and %q: %v", user, b.PasswordFile, b.APIPassword, err)
		}
	}
}

// TestPasswordsAreNotRepeated checks that no error contains a password. It tries every place in
// which a password can be written, and other mistakes in the same value.
func TestPasswordsAreNotRepeated(t *testing.T) {
	t.Parallel()
	const password = "hunter2"
	for _, text := range []string{
		"brokers: [{url: amqp://dlo:hunter2@h/}]", "brokers: [{url: amqp://dlo:hunter2@h:x/}]",
		"brokers: [{url: http://dlo:hunter2@h/}]", "brokers: [{url: 'amqp://dlo:hunter2#@h/'}]",
		"brokers: [{management: http://dlo:hunter2@h}]", "brokers: [{management: 'http://dlo:hunter2 @h'}]",
		"brokers: [{management: {url: http://dlo:hunter2@h}}]", "brokers: amqp://dlo:hunter2@h/",
		"brokers: [amqp://dlo:hunter2@h/]", "brokers: [{amqp: amqp://dlo:hunter2@h/}]",
		"brokers: [{amqp: {password: hunter2}}]", "brokers: [{url: [amqp://dlo:hunter2@h/]}]",
		"brokers: [{url: amqp://dlo:5672/hunter2@h/}]", "brokers: [{management: http://dlo:15672/hunter2@h}]",
		"public_url: http://dlo:hunter2@h/", "amqp_url: amqp://dlo:hunter2@h/", "brokers: [{url: amqp://dlo:hunter2@h/",
		"store: postgres://dlo:hunter2@h/",
	} {
		_, err := load(t, text)
		if err == nil || strings.Contains(err.Error(), password) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, url := range []string{
		"amqp://dlo:hunter2#@h/", "amqp://dlo:5672/hunter2@h/", "http://dlo:5672/hunter2@h/",
		"amqp://dlo:hunter2@h:port/", "://hunter2", "amqp://dlo:hunter2%zz@h/", "\x7fhunter2",
	} {
		for _, name := range []string{"DLO_AMQP_URL", "DLO_MANAGEMENT_URL"} {
			if _, err := config.Load(
				"", env(map[string]string{name: url}),
			); err == nil || strings.Contains(err.Error(), password) {
				t.Errorf("%s=%s: %v", name, url, err)
			}
		}
	}
}

func TestPasswordFiles(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{}":                           "amqp://guest:@127.0.0.1:5672/%2F",
		"{host: rabbit, port: 1}":      "amqp://guest:@rabbit:1/%2F",
		"{host: '::1', vhost: orders}": "amqp://guest:@[::1]:5672/orders",
		"{tls: true, ca_file: /c a, cert_file: /c, key_file: /k, server_name: b, external: true}": "amqps://guest:@127.0.0.1:5671/%2F?auth_mechanism=EXTERNAL&cacertfile=%2Fc+a&certfile=%2Fc&keyfile=%2Fk&server_name_indication=b",
		"{tls: true, user: 'a:b'}": "amqps://a%3Ab:@127.0.0.1:5671/%2F",
	} {
		got, err := load(t, "brokers: [{amqp: "+text+"}]")
		if err != nil || got.Brokers[0].URL != want {
			t.Errorf("%s: %s, %v", text, got.Brokers[0].URL, err)
		}
	}
}

// TestWhichSettingHasTheURL checks which setting is recorded for the URL of a broker. This is
// either an environment variable or a key of the file.
func TestWhichSettingHasTheURL(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "dlo.yaml")
	if err := os.WriteFile(
		path,
		[]byte("brokers: [{name: main}, {name: west, url: amqp://h/}, {name: east, amqp: {host: h}, inboxes: [b]}]"),
		0o600,
	); err != nil {
		t.Fatal(err)
	}
	url := map[string]string{"DLO_AMQP_URL": "amqp://dlo:hunter2@h/v"}
	for _, c := range []struct {
		name, path string
		set        map[string]string
		want       []string
	}{
		{"no file, nothing set", "", nil, []string{"DLO_AMQP_URL"}},
		{"no file", "", url, []string{"DLO_AMQP_URL"}},
		{
			"a file",
			path,
			nil,
			[]string{
				"url of broker main in " + path, "url of broker west in " + path, "amqp of broker east in " + path,
			},
		},
		{
			"the variable wins",
			path,
			url,
			[]string{"DLO_AMQP_URL", "url of broker west in " + path, "amqp of broker east in " + path},
		},
	} {
		got, _ := config.Load(c.path, env(c.set))
		var settings []string
		for _, b := range got.Brokers {
			settings = append(settings, b.Setting)
		}
		if diff := cmp.Diff(c.want, settings); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// TestNoManagementAPI checks the value with which dlo does not look for a management API.
func TestNoManagementAPI(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "dlo.yaml")
	if err := os.WriteFile(path, []byte("brokers: [{name: main, url: amqp://h/, management: none}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path, variable, want string
		none                 bool
	}{
		{path: path, none: true},
		{variable: "none", none: true},
		{variable: ""},
		{path: path, variable: "http://u:p@h:15672", want: "http://u:p@h:15672"},
	} {
		cfg, err := config.Load(c.path, env(map[string]string{"DLO_MANAGEMENT_URL": c.variable}))
		if err != nil || cfg.Brokers[0].Management != c.want || cfg.Brokers[0].NoManagement != c.none {
			t.Errorf("%+v: %+v, %v", c, cfg.Brokers, err)
		}
	}
}
