package system

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// nightRules is a configuration that pages when letters of the queue "payments" die. All other
// letters go to the digest.
const nightRules = `default: {retry: {delays: []}, dead: {severity: digest}}
rules: [{name: payments, match: {queue: payments}, retry: {delays: []}, dead: {severity: page, notify: [pager]}}]
requeue: {watch: 2s}
digest: {at: "08:30", days: [mon], zone: Europe/Berlin, notify: [team]}
`

// TestANightIsSettledFromTheDigest shows what the digest is for. Many letters die in a night, but
// only the letters of the queue "payments" cause a page. A person follows the links of the digest
// and settles all letters with the buttons on these pages.
func TestANightIsSettledFromTheDigest(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	tab := testenv.Browser(t)
	_, amqpURL := testenv.VHost(t)
	pager, team := newReceiver(t), newReceiver(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := newChild(
		t, amqpURL,
		nightRules+fmt.Sprintf(
			"channels: {pager: {webhook: {url: %q, secret_file: %s}, allow_private: true}, team: {webhook: {url: %q, secret_file: %[2]s}, allow_private: true}}\n",
			pager.URL, secret, team.URL,
		),
	)
	p.env = []string{"DLO_MANAGEMENT_URL=" + node.ManagementURLOf("guest:guest")}
	p.Start("")
	p.Draining()

	// presses a button of the group and, if it leads to a plan, the button of the plan
	press := func(button string) string {
		return `document.querySelector('[data-peek-source] ` + button + `').click()`
	}
	then := map[string]string{
		"email": press(`[value="requeue"]`), "payments": press(`[value="requeue"]`), "sms": press(`[value="discard"]`),
		"search": press(`[data-do="resolve"]`),
		"reports": `document.querySelector('[data-peek-source] [data-menu="snooze"]').open = true; ` +
			press(`[data-do="snooze"]`),
	}
	queues := slices.Sorted(maps.Keys(then))
	const each = 8
	fixed := map[string]*audit{}
	for _, queue := range queues {
		a := newAudit(t, amqpURL, queue, nil)
		a.header = amqp.Table{"x-error-message": queue + " is down since 02:14"}
		a.work()
		a.publish(each, func(i int) (string, string) {
			return fmt.Sprintf(`{"queue": %q, "n": %d}`, queue, i), fmt.Sprint(queue, i)
		})
		fixed[queue] = a // the worker of this queue accepts requeued letters
	}
	eventually(t, "all are dead", func() bool { return p.letters("dead") == each*len(queues) })
	eventually(t, "payments paged", func() bool { return len(pager.notices("notice.opened")) == 1 })

	if code, body := p.post("/api/v1/digest/send", nil); code != 200 {
		t.Fatal(code, body)
	}
	eventually(t, "the digest is there", func() bool { return team.count() == 1 })
	lines := team.told[0].Data.Lines
	if len(lines) != len(queues) {
		t.Fatalf("the digest has %+v", lines)
	}
	tab.Viewport(390, 900) // the size of a phone, because the person is on the way to work
	for _, line := range lines {
		i := slices.IndexFunc(
			queues, func(q string) bool { return strings.Contains(line.Title+line.Text, q+" is down") },
		)
		if i < 0 {
			t.Fatalf("which is %+v", line)
		}
		tab.Open(line.URL)
		waitUntil(t, tab, `document.querySelector('[data-peek-source]')?.innerText.includes('`+queues[i]+` is down')`)
		tab.Act(then[queues[i]])
		if queues[i] == "search" || queues[i] == "reports" {
			waitUntil(t, tab, `document.querySelector('form.note.good[action="/triage/undo"]')`)
			continue
		}
		waitUntil(t, tab, `document.querySelector('[data-confirm-btn]')`)
		tab.Do(chromedp.Evaluate[chromedp.Void](`for (const [name, value] of [['canary', '0'], ['stop_at', '0']]) document.querySelectorAll('[name=' + name + ']').forEach(x => x.value = value)`))
		tab.Act(`document.querySelector('[data-confirm-btn]').click()`)
		waitUntil(t, tab, `location.pathname.startsWith('/operations/O-')`)
	}
	eventually(t, "nothing is left of the night", func() bool {
		var d struct{ Groups int }
		_, body := p.get("/api/v1/digest")
		if err := json.Unmarshal([]byte(body), &d); err != nil {
			t.Fatal(err, body)
		}
		return d.Groups == 0
	})
	tab.Open(p.url + "/triage?tab=digest")
	waitUntil(t, tab, `document.querySelector('main').innerText.includes('All clear')`)
	for _, queue := range []string{"email", "payments"} {
		eventually(t, queue+" has its letters back", func() bool {
			fixed[queue].mu.Lock()
			defer fixed[queue].mu.Unlock()
			return len(fixed[queue].accepted) == each
		})
	}
	eventually(t, "the page is resolved by itself", func() bool { return len(pager.notices("notice.resolved")) == 1 })
	if opened := pager.notices("notice.opened"); len(opened) != 1 || pager.count() != 2 || team.count() != 1 {
		t.Errorf("paged %v, and the team was told %d times", opened, team.count())
	}
}
