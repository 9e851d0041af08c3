package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/config"
)

// TestSeveralBrokers checks to which broker DLO_AMQP_URL belongs. A mistake that it makes must be
// reported at its place in the file.
func TestSeveralBrokers(t *testing.T) {
	t.Parallel()
	_, err := config.Load("", env(map[string]string{"DLO_AMQP_URL": "amqp://h/v"}))
	if err != nil {
		t.Error(err)
	}
	path := filepath.Join(t.TempDir(), "dlo.yaml")
	if err := os.WriteFile(
		path, []byte("brokers:\n- {url: amqp://h/a}\n- {name: b, url: amqp://h/b, exchange: ''}\n"), 0o600,
	); err != nil {
		t.Fatal(err)
	}
	_, err = config.Load(path, env(map[string]string{"DLO_AMQP_URL": "amqp://u:p@h:5672/b"}))
	if err == nil || !strings.Contains(
		err.Error(), ":3:3: inbox dlo.letters of this broker and vhost is already drained by broker main",
	) {
		t.Error(err)
	}
}
