package system

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

const (
	soakRate = 2000 // letters that die per second
	soakStep = 50 * time.Millisecond
)

// TestPagesThatStayOpen keeps pages open for ten minutes while 2,000 letters die per second. Each
// page may request changes at most once a second. The memory of a page must not grow. After a
// forced garbage collection, it may differ by at most 10 % between the second and the tenth minute.
func TestPagesThatStayOpen(t *testing.T) {
	testenv.Soak(t)
	testenv.Broker(t)
	_, amqpURL := testenv.VHost(t)
	p := newChild(t, amqpURL, later)
	p.Start("")
	p.Draining()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	dying := make(chan error, 1)
	_, ch := testenv.Channel(t, amqpURL)
	go func() { dying <- dieOn(ctx, ch) }()
	eventually(t, "letters come in", func() bool { return p.letters() > soakRate })

	paths := []string{"/", "/triage", "/letters?q=state:dead", "/queues"}
	var tabs []*testenv.Tab
	for _, path := range paths {
		tab := testenv.Browser(t)
		tab.OnEveryPage(countFetches)
		tab.Open(p.url + path)
		tabs = append(tabs, tab)
	}
	heaps := map[string][]float64{}
	for _, at := range []time.Duration{2 * time.Minute, 8 * time.Minute} {
		select {
		case <-time.After(at):
		case err := <-dying:
			t.Fatal("the letters stopped: ", err)
		}
		for i, tab := range tabs {
			heaps[paths[i]] = append(heaps[paths[i]], tab.Heap())
		}
	}
	letters := p.letters()
	for i, path := range paths {
		h := heaps[path]
		asked, soonest := testenv.Run(tabs[i], chromedp.Evaluate[float64]("window.live.n")), testenv.Run(
			tabs[i], chromedp.Evaluate[float64]("window.live.soonest"),
		)
		t.Logf(
			"%s: heap %.2f MB and %.2f MB, %.0f fetches, the two closest %.0f ms apart", path, h[0]/1e6, h[1]/1e6,
			asked, soonest,
		)
		if h[1] > 1.1*h[0] {
			t.Errorf("%s: the page has %.0f bytes after two minutes, and %.0f after ten", path, h[0], h[1])
		}
		if asked < 60 || soonest < 1000 {
			t.Errorf("%s: it asked %.0f times, at least once after %.0f ms", path, asked, soonest)
		}
		if errors := tabs[i].Console(); len(errors) > 0 {
			t.Errorf("%s: %q", path, errors)
		}
	}
	t.Logf("%d letters were stored", letters)
	if letters < 9*60*soakRate {
		t.Errorf("%d letters are fewer than %d a second", letters, soakRate)
	}
}

// countFetches is a script that counts how often a page requests changes.
const countFetches = `window.live = {n: 0, last: 0, soonest: 1e9}; const real = window.fetch;
window.fetch = (to, options) => {
	if (options?.headers?.['Dlo-Live']) { const l = window.live, now = Date.now(); if (l.n++) l.soonest = Math.min(l.soonest, now - l.last); l.last = now; }
	return real(to, options);
};`

// dieOn publishes soakRate letters per second to the inbox, until ctx is done. The letters come
// from 40 queues and have 80 causes.
func dieOn(ctx context.Context, ch *amqp.Channel) error {
	tick := time.NewTicker(soakStep)
	for n := 0; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		for range soakRate * int(soakStep/time.Millisecond) / 1000 {
			queue := fmt.Sprintf("queue-%02d", n%40)
			headers := amqp.Table{
				"x-death":         rejectedIn(queue, "events", "key", time.Now()),
				"x-error-message": fmt.Sprintf("com.example.mail.MailException: cause %c of the failure", 'a'+n%2),
			}
			if err := ch.PublishWithContext(ctx, "", "dlo.letters", false, false, amqp.Publishing{
				Headers: headers, Body: fmt.Appendf(nil, `{"n":%d,"tenant":"acme"}`, n), DeliveryMode: 2,
				MessageId: fmt.Sprint(n),
			}); err != nil {
				return err
			}
			n++
		}
	}
}
