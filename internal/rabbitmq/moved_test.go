package rabbitmq_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/rabbitmq"
	"github.com/deadletteroffice/dlo/internal/testenv"
	"github.com/deadletteroffice/dlo/internal/topology"
	amqp "github.com/rabbitmq/amqp091-go"
)

// TestShovelsAndFederationAreSeen creates a shovel and a federated queue on a broker that has both
// plugins. It checks what dlo can see of them, depending on the tags of dlo's user.
func TestShovelsAndFederationAreSeen(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.PrivateBrokerWith(t, testenv.Options{Plugins: []string{"rabbitmq_shovel", "rabbitmq_federation"}})
	vhost, address := node.VHost(t)
	declare(t, address, map[string]amqp.Table{"orders": nil, "archive": nil, "emails": nil})
	in := url.PathEscape(vhost)
	shovel := map[string]any{
		"value": map[string]any{
			"src-protocol": "amqp091", "src-uri": address, "src-queue": "orders", "dest-protocol": "amqp091",
			"dest-uri": address, "dest-queue": "archive",
		},
	}
	if err := node.API(http.MethodPut, "/api/parameters/shovel/"+in+"/to-the-archive", shovel, nil); err != nil {
		t.Fatal(err)
	}
	if err := node.API(http.MethodPut, "/api/parameters/federation-upstream/"+in+"/other", map[string]any{
		"value": map[string]any{"uri": address},
	}, nil); err != nil {
		t.Fatal(err)
	}
	setPolicy(t, node, vhost, "policies", "fed", map[string]any{
		"pattern":    "^emails$",
		"apply-to":   "queues",
		"priority":   1,
		"definition": map[string]any{"federation-upstream": "other"},
	})
	for tag, want := range map[string][]string{
		"policymaker": {
			"Policy fed federates emails", "The shovel to-the-archive puts messages into archive",
			"The shovel to-the-archive takes messages out of orders",
		},
		"management": {"Policy fed federates emails"},
	} {
		own, _ := node.VHost(t)
		user, _ := node.User(t, own, tag)
		node.Grant(t, vhost, user, ".*", ".*", ".*")
		var got []string
		for until := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
			list, err := rabbitmq.Look(t.Context(), node.ManagementURLOf(user+":secret"), []string{vhost})
			if err != nil || len(list) != 1 {
				t.Fatal(len(list), err)
			}
			got = nil
			for _, f := range topology.Inspect(&list[0], topology.Options{}) {
				if f.Kind == topology.Moved {
					got = append(got, f.Title)
				}
			}
			slices.Sort(got)
			if slices.Equal(got, want) {
				break
			}
			if time.Now().After(until) {
				t.Fatalf(
					"with the tag %s: %s, want %s; gaps %v", tag, strings.Join(got, "; "), strings.Join(want, "; "),
					list[0].Gaps,
				)
			}
		}
	}
}
