package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/config"
)

// TestSeveralBrokers checks that a mistake in one of several brokers is reported at its position.
func TestSeveralBrokers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		want       []place
	}{
		{"two vhosts", "[{url: amqp://h/a}, {name: b, url: amqp://h/b}]", nil},
		{"two hosts", "[{url: amqp://h/}, {name: b, url: amqp://i/}]", nil},
		{
			"one vhost, as two users, with an inbox each",
			"[{url: amqp://h/}, {name: b, url: amqp://guest@h/, inboxes: [b], exchange: ''}]", nil,
		},
		{
			"two names that are one",
			"[{url: amqp://h/a}, {url: amqp://h/b}]",
			[]place{{2, 2, "another broker is named main already"}},
		},
		{
			"a name that is taken",
			"[{url: amqp://h/a}, {url: amqp://h/b, name: main}]",
			[]place{{2, 26, "another broker is named main already"}},
		},
		{"no name", "[{url: amqp://h/a, name: ''}]", []place{{1, 35, "a broker needs a name"}}},
		{
			"the same inbox",
			"[{url: amqp://h/a, inboxes: [x, y]}, {name: b, url: amqp://h/a, exchange: '', inboxes: [z, y]}]",
			[]place{{2, 56, "inbox y of this broker and vhost is already drained by broker main"}},
		},
		{
			"the same inbox by another spelling",
			"[{url: 'amqp://H:5672', inboxes: [x]}, {name: b, url: 'amqp://guest:guest@h/%2F', exchange: '', inboxes: [x]}]",
			[]place{{2, 69, "inbox x of this broker and vhost is already drained by broker main"}},
		},
		{
			"the same inbox by default",
			"[{}, {name: b, exchange: '', url: 'amqp://localhost/'}]",
			[]place{{2, 2, "inbox dlo.letters of this broker and vhost"}},
		},
		{"an inbox twice", "[{inboxes: [x, x]}]", []place{{1, 25, "inbox x is listed twice"}}},
		{"an inbox without a name", "[{inboxes: ['']}]", []place{{1, 22, "an inbox needs a name"}}},
		{
			"two inboxes on one exchange", "[{inboxes: [x]}, {name: b, inboxes: [y], exchange: dlo.dlx}]",
			[]place{
				{
					2, 36,
					"broker main, of the same broker and vhost, already binds its inbox to exchange dlo.dlx, so each letter would arrive twice",
				},
			},
		},
		{"origins", "[{inboxes: [dlo.letters, e, f], origins: {e: orders, f: orders}}]", nil},
		{"no origins", "[{origins: {}}, {name: b, url: amqp://h/, origins: }]", nil},
		{"origins that are a list", "[{origins: [a]}]", []place{{1, 21, "for example {orders_error: orders}"}}},
		{
			"an origin of no inbox",
			"[{origins: {e: orders}}]",
			[]place{{1, 22, `origins names "e", which is not an inbox of broker main`}},
		},
		{"an origin that is an inbox", "[{inboxes: [d, e], origins: {e: d}}]", []place{{1, 42, `"d" is an inbox`}}},
		{
			"an origin that is an inbox of another entry",
			"[{inboxes: [d], origins: {d: e}}, {name: b, exchange: '', inboxes: [e]}]",
			[]place{{1, 39, `"e" is an inbox`}},
		},
		{
			"an origin of dlo",
			"[{inboxes: [d], origins: {d: dlo.wait.1}}]",
			[]place{{1, 39, `"dlo.wait.1" belongs to dlo`}},
		},
		{"an origin without a name", "[{inboxes: [d], origins: {d: ''}}]", []place{{1, 39, "needs a name"}}},
		{"an origin of nothing", "[{inboxes: [d], origins: {d: }}]", []place{{1, 39, "a text is wanted here"}}},
		{
			"one queue of annotations, and none",
			"[{inboxes: [x]}, {name: b, inboxes: [y], exchange: '', annotations: ''}]", nil,
		},
		{
			"annotations that are an inbox",
			"[{inboxes: [x]}, {name: b, inboxes: [y], exchange: '', annotations: x}]",
			[]place{{2, 53, `"x" is both an inbox and the queue for`}},
		},
		{
			"an inbox that is the queue of annotations",
			"[{inboxes: [dlo.annotations]}]",
			[]place{{1, 11, `"dlo.annotations" is both an inbox`}},
		},
		{"annotations of the broker", "[{annotations: amq.x}]", []place{{1, 25, `"amq.x" belongs to the broker`}}},
		{
			"an origin that is the queue of annotations",
			"[{inboxes: [d], origins: {d: r}, annotations: r}]",
			[]place{{1, 39, `"r" belongs to dlo`}},
		},
		{
			"an earlier name", "[{name: b, was: [a]}]",
			[]place{{1, 21, `"was" in brokers; to rename a broker, stop dlo and run: dlo brokers rename OLD NEW`}},
		},
		{
			"a second entry for what the store has under an old name",
			"[{name: b, url: amqp://h/}, {name: a, url: amqp://h/, exchange: dlo.second, inboxes: [dlo.second]}]", nil,
		},
		{"two origins of one inbox", "[{inboxes: [d], origins: {d: a, d: b}}]", []place{{1, 42, "d is listed twice"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := load(t, "brokers: "+strings.Replace(c.text, "}, {", "},\n {", 1))
			if c.want == nil {
				if err != nil {
					t.Error(err)
				}
				return
			}
			mistakes(t, err, c.want)
		})
	}
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
	mistakes(t, err, []place{{3, 3, "inbox dlo.letters of this broker and vhost is already drained by broker main"}})
}
