package config_test

import (
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/config"
)

// TestVariables checks what variables of the environment become in values, and in mistakes.
func TestVariables(t *testing.T) {
	t.Parallel()
	getenv := env(map[string]string{
		"HOSTS": "a]\nread_only: true", "N": "7", "PASSWORD": "hunter2", "BAD": "hunter2 many", "DLO_LISTEN": "127.0.0.1:1",
	})
	text := `# ${NOT_IN_COMMENTS}
listen: ${LISTEN:-127.0.0.1:2}
hosts: ["${HOSTS}", "x-${N}", '$${N}', $N, "${EMPTY:-}"]
requests: ${N}
read_only: ${RO:-true}
brokers: [{url: "amqp://dlo:${PASSWORD}@h/"}]
`
	c, err := config.Parse("dlo.yaml", text, getenv)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(c.Hosts, "|"); got != "a]\nread_only: true|x-7|${N}|$N|" || c.Requests != 7 || !c.ReadOnly ||
		c.Listen != "127.0.0.1:1" || c.Brokers[0].URL != "amqp://dlo:hunter2@h/" {
		t.Errorf("%q %+v", got, c)
	}
	for text, want := range map[string]string{
		"hosts:\n- ${GONE}\n": "dlo.yaml:2:3: the environment has no variable GONE; set it, or write ${GONE:-default}",
		"hosts: ['${A B}']\n": "dlo.yaml:1:9: ${ is not closed, or its name is not valid; write ${NAME}, or $$ for a dollar sign",
		"requests: ${BAD}\n":  `dlo.yaml:1:11: give a number from 0 to 100000, not "${BAD}"`,
		"${N}: 1\n":           `there is no key "${N}"`,
	} {
		_, err := config.Parse("dlo.yaml", text, getenv)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
