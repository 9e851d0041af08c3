package system

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestNestJS publishes packets with a client of NestJS. When a consumer rejects them, the letters
// of each pattern must be a group of their own.
func TestNestJS(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	testenv.Broker(t)
	modules, err := filepath.Abs("../../.cache/nestjs/node_modules")
	if err == nil {
		_, err = os.Stat(filepath.Join(modules, "@nestjs/microservices"))
	}
	if err != nil {
		testenv.Unavailable(
			t, fmt.Errorf("%w: NestJS; to install it: .ci/install nodejs npm && .ci/consumers", testenv.ErrMissing),
		)
	}
	_, url := testenv.VHost(t)
	newAudit(t, url, "shop", nil)
	p := newChild(t, url, "default: {retry: {delays: []}}\n")
	p.Start("")
	p.Draining()
	_, ch := testenv.Channel(t, url)
	deliveries, err := ch.Consume("shop", "", false, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for d := range deliveries {
			_ = d.Reject(false)
		}
	}()
	client := exec.Command("node", "testdata/nestjs.js")
	client.Env = append(os.Environ(), "NODE_PATH="+modules, "AMQP_URL="+url, "QUEUE=shop")
	if out, err := client.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	eventually(t, "the packets are dead", func() bool { return p.letters("dead") == 3 })
	for _, title := range []string{"order.placed rejected", "order.paid rejected", `{"cmd":"place"} rejected`} {
		if n := p.count("letters l JOIN groups g ON g.id = l.grp", "g.title = '"+title+"'"); n != 1 {
			t.Errorf("%d letters are in the group %s", n, title)
		}
	}
}
