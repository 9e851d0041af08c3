package rabbitmq_test

import (
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// TestTheTagsOfEachCall makes the calls to the management API, each as users with different tags.
// docs/permissions.md lists these calls. A call must succeed only for users with a tag that the
// document gives for it. RabbitMQ answers 401 to a user without the needed tag.
func TestTheTagsOfEachCall(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/permissions.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := regexp.MustCompile(
		"(?m)^\\| `(GET|PUT|DELETE) (/api/[^`]+)` \\| ([a-z, ]+) \\|",
	).FindAllStringSubmatch(string(text), -1)
	if len(documented) < 10 {
		t.Fatalf("the document lists %d calls", len(documented))
	}
	node := testenv.Broker(t)
	vhost, address := node.VHost(t)
	declare(t, address, map[string]amqp.Table{"orders": nil})
	users := map[string]string{}
	for _, tag := range []string{"management", "policymaker", "monitoring", "administrator"} {
		own, _ := node.VHost(t)
		users[tag], _ = node.User(t, own, tag)
		node.Grant(t, vhost, users[tag], ".*", ".*", ".*")
	}
	for _, call := range documented {
		path := strings.NewReplacer(
			"VHOST", url.PathEscape(vhost), "EXCHANGE", "amq.fanout", "QUEUE", "orders", "USER", "guest", "NAME", "p",
		).Replace(call[2])
		var may []string
		for _, tag := range slices.Sorted(maps.Keys(users)) {
			r, err := http.NewRequestWithContext(t.Context(), call[1], node.ManagementURL()+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if call[1] == http.MethodPut {
				r.Body = io.NopCloser(strings.NewReader(`{"pattern":"^orders$","definition":{"max-length":9},"apply-to":"queues","priority":1}`))
			}
			r.SetBasicAuth(users[tag], "secret")
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			if answer.StatusCode != http.StatusUnauthorized && answer.StatusCode != http.StatusForbidden {
				may = append(may, tag)
			}
		}
		got := strings.Join(may, ", ")
		if len(may) == len(users) {
			got = "any"
		}
		if got != call[3] {
			t.Errorf("%s %s: %s may make this call, and the document says %s", call[1], call[2], got, call[3])
		}
	}
}
