package system

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestLostDeadLettersAreFound declares a queue without a dead-letter exchange. It checks that dlo
// finds the queue with a look at the broker, in the broker's definitions file, and while it serves.
// After the policy that cures it, dlo finds nothing.
func TestLostDeadLettersAreFound(t *testing.T) {
	t.Parallel()
	node := testenv.Broker(t)
	vhost, address := node.VHost(t)
	text := fmt.Sprintf("brokers: [{url: %q, management: %q}]\n", address, node.ManagementURLOf("guest:guest"))
	in := url.PathEscape(vhost)
	if err := node.API(http.MethodPut, "/api/queues/"+in+"/orders", map[string]any{"durable": true}, nil); err != nil {
		t.Fatal(err)
	}
	p := serve(t, address, text, nil).child
	file := filepath.Join(t.TempDir(), "url")
	if err := os.WriteFile(file, []byte(node.ManagementURLOf("guest:guest")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	definitions := func() string {
		var all json.RawMessage
		if err := node.API(http.MethodGet, "/api/definitions/"+in, nil, &all); err != nil {
			t.Fatal(err)
		}
		return string(all)
	}
	eventually(t, "the server finds it", func() bool {
		_, body := p.get("/api/v1/topology/findings")
		return strings.Contains(body, `"kind":"no_exchange"`)
	})
	for name, args := range map[string][]string{"server": nil, "broker": {"--broker", "@" + file, "--vhost", vhost}, "file": {"-"}} {
		out, _ := p.dlo(t.Context(), 5, definitions(), append([]string{"topology", "check"}, args...)...)
		if !strings.Contains(out, "queues will drop what its consumers reject\n\nnotify  no_exchange\n  orders has no dead-letter exchange\n") || strings.Count(out, "cure:") != 1 {
			t.Errorf("%s:\n%s", name, out)
		}
	}
	policy := map[string]any{"pattern": "^orders$", "apply-to": "queues", "definition": map[string]string{"dead-letter-exchange": "dlo.dlx"}}
	if err := node.API(http.MethodPut, "/api/policies/"+in+"/dlo-orders", policy, nil); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--broker", "@" + file, "--vhost", vhost}, {"-"}} {
		p.dlo(t.Context(), 0, definitions(), append([]string{"topology", "check"}, args...)...)
	}
}
