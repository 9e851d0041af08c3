package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deadletteroffice/dlo/internal/config"
)

// TestTheInitialFile loads the files for some URLs. They must be the defaults but for the broker,
// and no file may contain a password that is a secret.
func TestTheInitialFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "dlo's #1 $${HOME}.password")
	for _, c := range []struct{ address, url, password, management string }{
		{"amqp://guest:guest@127.0.0.1:5672/", "amqp://guest:guest@127.0.0.1:5672/", "", ""},
		{"amqp://guest:guest@rabbit/a$$b", "amqp://guest:guest@rabbit/a$$b", "", "http://rabbit:15672/$${a}"},
		{"amqp://dlo:hunter2@rabbit/a$${HOME}", "amqp://dlo:hunter2@rabbit:5672/a$$%7BHOME%7D", "hunter2", "none"},
		{"amqps://rabbit/a%2Fb?auth_mechanism=EXTERNAL", "amqps://rabbit/a%2Fb?auth_mechanism=EXTERNAL", "", ""},
		{"amqp://dlo:p%2Fw%23%24%7B@rabbit", "amqp://dlo:p%2Fw%23$%7B@rabbit:5672/%2F", "p/w#${", ""},
		{
			"amqps://dlo:hunter2@[::1]:5679/a%2Fb?cacertfile=/ca.pem&server_name_indication=rabbit",
			"amqps://dlo:hunter2@[::1]:5679/a%2Fb?cacertfile=%2Fca.pem&server_name_indication=rabbit", "hunter2", "",
		},
	} {
		text, password, err := config.Initial(c.address, c.management, file)
		if err != nil || password != c.password || strings.Contains(text, "hunter2") {
			t.Errorf("%s: %q, %v\n%s", c.address, password, err, text)
		}
		if err := os.WriteFile(file, []byte(password+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := load(t, text)
		if err != nil {
			t.Errorf("%v\n%s", err, text)
			continue
		}
		want := config.Defaults()
		want.Brokers[0].URL = c.url
		if want.Brokers[0].Management = c.management; c.management == "none" {
			want.Brokers[0].Management, want.Brokers[0].NoManagement = "", true
		}
		if password != "" {
			want.Brokers[0].PasswordFile = file
		}
		if diff := cmp.Diff(want, got, patterns, origin); diff != "" {
			t.Errorf("%s (-want +got):\n%s\n%s", c.address, diff, text)
		}
	}
	for _, address := range []string{"", "rabbit:5672", "http://rabbit/", "amqp://a:hunter2/3@rabbit/"} {
		_, _, err := config.Initial(address, "", file)
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", address, err)
		}
	}
}
