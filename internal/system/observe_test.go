package system

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestAQueueThatIsOnlyObserved lets letters of an observed queue die. dlo must store and group them
// and show what its rules would have done. It must notify nobody and send nothing, even on request.
// After dlo stops observing the queue, nothing may start for these letters, but a person can
// requeue them. New letters must be retried.
func TestAQueueThatIsOnlyObserved(t *testing.T) {
	t.Parallel()
	node := testenv.Broker(t)
	vhost, address := node.VHost(t)
	a := adoptable(t, node, vhost, address)
	slack := filepath.Join(t.TempDir(), "slack")
	if err := os.WriteFile(slack, []byte("https://hooks.slack.example/a"), 0o600); err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(
		"channels: {ops: {slack: {url_file: %s}}}\ndefault: {retry: {delays: [1s]}, dead: {severity: page, notify: [ops]}}\nbrokers: [{url: %q, management: %q, observe: %%s}]\n",
		slack, address, node.ManagementURLOf("guest:guest"),
	)
	p := newChild(t, address, fmt.Sprintf(config, "[ord*]"))
	p.Start("")
	p.Draining()
	p.post("/api/v1/topology/apply", p.plan("orders"))
	a.reject("orders")
	eventually(t, "the letter is dead", func() bool { return p.letters("dead") == 1 })
	id := string(p.ids(`SELECT id, random FROM letters WHERE state = 'dead'`)[0])
	if _, body := p.get("/api/v1/letters/" + id); !strings.Contains(body, `"rule":"observed"`) ||
		!strings.Contains(body, "only observed. Otherwise: retry 1 of 1 in 1s (rule default, severity page)") ||
		!strings.Contains(body, `"severity":"digest"`) {
		t.Errorf("%s", body)
	}
	eventually(t, "the letter is found by its rule", func() bool { // once it is indexed
		out, _ := p.dlo(t.Context(), 0, "", "letters", "count", "-q", "rule:observed")
		return strings.TrimSpace(out) == "1"
	})
	by := map[string]any{"action": "requeue", "ids": []string{id}, "hold": "0s", "canary": 0, "dry_run": true}
	if status, body := p.post("/api/v1/operations", by); status != http.StatusOK ||
		!strings.Contains(body, "queue orders is only observed") {
		t.Errorf("the plan of a requeue by hand: %d %s", status, body)
	}
	delete(by, "dry_run")
	if status, body := p.post("/api/v1/operations", by); status != http.StatusAccepted {
		t.Errorf("a requeue by hand: %d %s", status, body)
	}
	eventually(
		t, "the requeue by hand skips the letter", func() bool { return p.operation("O-1").Counts["skipped"] == 1 },
	)
	time.Sleep(1500 * time.Millisecond) // longer than the 1 s after which a retry would come
	if n := p.count("attempts", "") + p.count("notices", "grp IS NOT NULL"); n != 0 || p.letters("dead") != 1 {
		t.Errorf("%d attempts and notices about groups", n)
	}

	p.Stop()
	p.Configure(fmt.Sprintf(config, "false"))
	p.Start("")
	p.Draining()
	a.reject("orders")
	eventually(t, "the new letter is retried", func() bool { return p.count("attempts", "") == 1 })
	if p.letters("dead") != 1 {
		t.Error("the observed letter did not stay dead")
	}
	if status, body := p.post("/api/v1/operations", by); status != http.StatusAccepted {
		t.Errorf("a requeue by hand: %d %s", status, body)
	}
	eventually(t, "the observed letter is requeued", func() bool { return p.count("attempts", "") == 2 })
}
