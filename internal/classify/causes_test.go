package classify_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/storetest"

	"github.com/deadletteroffice/dlo/internal/classify"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/internal/store"
)

// causes contains 40 causes of deaths. Each has headers, and some have a body. The variable parts
// are in brackets. Many causes differ only slightly.
var causes = []struct {
	headers map[string]string
	body    string
}{
	{headers: map[string]string{"x-error": "order [n] not found"}},
	{headers: map[string]string{"x-error": "user [n] not found"}},
	{headers: map[string]string{"x-error": "user [uuid] of [email] is locked until [time]"}},
	{headers: map[string]string{"x-error": "user [uuid] of [email] is unknown"}},
	{headers: map[string]string{"x-error": "dial tcp [ip]: connect: connection refused"}},
	{headers: map[string]string{"x-error": "dial tcp [ip]: i/o timeout after [duration]"}},
	{headers: map[string]string{"x-error": "dial tcp: lookup db.internal on [ip]: no such host"}},
	{headers: map[string]string{"x-error": "dial tcp: lookup cache.internal on [ip]: no such host"}},
	{headers: map[string]string{"x-error": `pq: column "emial" of relation "users" does not exist`}},
	{headers: map[string]string{"x-error": `pq: column "phnoe" of relation "users" does not exist`}},
	{
		headers: map[string]string{
			"x-error": `duplicate key value violates unique constraint "users_email_key": Key (email)=([email]) already exists.`,
		},
	},
	{
		headers: map[string]string{
			"x-error": `duplicate key value violates unique constraint "orders_number_key": Key (number)=([n]) already exists.`,
		},
	},
	{headers: map[string]string{"x-error": "Duplicate entry '[n]-[name]' for key 'users.PRIMARY'"}},
	{headers: map[string]string{"x-error": "Lock wait timeout exceeded; try restarting transaction [hex]"}},
	{headers: map[string]string{"x-error": "Deadlock found when trying to get lock; try restarting transaction [hex]"}},
	{headers: map[string]string{"x-error": "unexpected token '[name]' in JSON at position [n]"}},
	{headers: map[string]string{"x-error": "POST [url] failed with 502 after [duration]"}},
	{headers: map[string]string{"x-error": "POST [url] failed: certificate has expired on [time]"}},
	{
		headers: map[string]string{
			"x-error": `answered 402: {"error": {"code": "card_declined", "charge": "ch_[n]", "message": "[name]"}}`,
		},
	},
	{
		headers: map[string]string{
			"x-error": `answered 402: {"error": {"code": "expired_card", "charge": "ch_[n]", "message": "[name]"}}`,
		},
	},
	{headers: map[string]string{"x-error": "TypeError: Cannot read properties of undefined (reading 'items')"}},
	{headers: map[string]string{"x-error": "TypeError: Cannot read properties of undefined (reading 'total')"}},
	{headers: map[string]string{"x-error-type": "KeyError", "x-error-message": "'user_id'"}},
	{headers: map[string]string{"x-error-type": "KeyError", "x-error-message": "'order_id'"}},
	{headers: map[string]string{"x-error-type": "ValueError", "x-error-message": "order [n] is negative"}},
	{headers: map[string]string{"x-error-type": "StockError", "x-error-message": "order [n] is negative"}},
	{headers: map[string]string{"x-error": "template /srv/mail/[uuid]/[n].html is missing"}},
	{headers: map[string]string{"x-error": "blob [base64] of object com.acme.Blob@[hex8] is damaged"}},
	{headers: map[string]string{"x-error": "event [ulid] came before event [ulid]"}},
	{headers: map[string]string{"x-error": "body of [n] bytes is above the limit of [n] KiB"}},
	{
		headers: map[string]string{
			"x-exception-message": "boom [n]", "x-original-routingKey": "k",
			"x-exception-stacktrace": "a.B: boom [n]\n\tat com.acme.Stock.take(Stock.java:[n])\n\tat java.base/java.lang.Thread.run(Thread.java:[n])\n\tat com.acme.Place.on(Place.java:[n])",
		},
	},
	{
		headers: map[string]string{
			"x-exception-message": "boom [n]", "x-original-routingKey": "k",
			"x-exception-stacktrace": "a.B: boom [n]\n\tat com.acme.Stock.give(Stock.java:[n])\n\tat com.acme.Place$$SpringCGLIB$$[n].on(<generated>)",
		},
	},
	{
		headers: map[string]string{
			"NServiceBus.FailedQ": "sms", "NServiceBus.ExceptionInfo.ExceptionType": "System.X",
			"NServiceBus.ExceptionInfo.Message":    "boom [n]",
			"NServiceBus.ExceptionInfo.StackTrace": "System.X: boom [n]\n   at Acme.Stock.<Take>d__5.MoveNext() in /src/[hex8]/Stock.cs:line [n]",
		},
	},
	{
		headers: map[string]string{
			"NServiceBus.FailedQ": "sms", "NServiceBus.ExceptionInfo.ExceptionType": "System.Y",
			"NServiceBus.ExceptionInfo.Message":    "boom [n]",
			"NServiceBus.ExceptionInfo.StackTrace": "System.Y: boom [n]\n   at Acme.Stock.<Take>d__5.MoveNext() in /src/[hex8]/Stock.cs:line [n]",
		},
	},
	{
		headers: map[string]string{
			"reason_poisoned": "rpc error: code = Unavailable desc = [duration]", "topic_poisoned": "sms",
		},
	},
	{
		headers: map[string]string{
			"reason_poisoned": "rpc error: code = Internal desc = [duration]", "topic_poisoned": "sms",
		},
	},
	{body: `{"id":[n],"total":"[n]"}`},
	{body: `{"id":[n],"name":"[name]"}`},
	{body: "\x0a\x03abc\x10\x05\x1a\x02\xff\xfe"},
	{headers: map[string]string{"lang": "py", "task": "shop.place"}, body: `{"n":[n]}`},
}

// fillPlaceholders replaces each bracketed placeholder with a random value.
func fillPlaceholders(text string, r *rand.Rand) string {
	for {
		before, rest, ok := strings.Cut(text, "[")
		kind, after, closed := strings.Cut(rest, "]")
		if !ok || !closed {
			return text
		}
		n, raw := r.Uint64(), make([]byte, 33)
		for i := range raw {
			raw[i] = byte(r.Uint32())
		}
		var value string
		switch kind {
		case "n":
			value = fmt.Sprint(n >> (r.Uint32() % 60))
		case "uuid":
			value = fmt.Sprintf(
				"%08x-%04x-7%03x-9%03x-%012x", uint32(n), uint16(n>>32), n>>48&0xfff, n>>20&0xfff, r.Uint64()>>16,
			)
		case "hex":
			value = fmt.Sprintf("%032x", r.Uint64())
		case "hex8":
			value = fmt.Sprintf("%08x", uint32(n))
		case "email":
			value = fmt.Sprintf("%s.%d@%s.example.com", hosts[n%5], n%1000, hosts[n/7%5])
		case "name":
			value = names[n%7]
		case "ip":
			value = fmt.Sprintf("%d.%d.%d.%d:%d", n%256, n>>8%256, n>>16%256, n>>24%256, n>>32%65536)
		case "time":
			value = time.Unix(int64(n%4e9), int64(n%1e9)).UTC().Format([]string{
				time.RFC3339Nano, "2006-01-02 15:04:05,000", time.RFC1123,
			}[n%3])
		case "duration":
			value = time.Duration(n % 1e13).String()
		case "url":
			value = fmt.Sprintf("https://%s.example/v%d/%s?q=%x", hosts[n%5], n%3, hosts[n/7%5], n)
		case "ulid":
			const letters = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
			value = "01"
			for range 24 {
				value += string(letters[r.IntN(32)])
			}
		case "base64":
			value = base64.StdEncoding.EncodeToString(raw)
		}
		text = before + value + after
	}
}

var (
	names = []string{"anna", "Bert", "zoë k", "o-n", "smith_17", "x", "a b c"}
	hosts = []string{"shop", "mail-2", "api.eu", "x", "db7"}
)

// TestLettersOfFortyCausesAreFortyGroups checks that 5,000 letters with 40 causes form exactly 40
// groups, and that no group mixes causes. The letters contain ids and numbers. The result must be
// the same if dlo is stopped halfway, and after all letters are grouped again.
func TestLettersOfFortyCausesAreFortyGroups(t *testing.T) {
	t.Parallel()
	const letters, inWindow = 5000, 250
	ctx := context.Background()
	path := storetest.File(t)
	o := options()
	o.Mask = nil
	o.Rules = rules.NewBook(&rules.Set{
		Default: rules.Rule{Name: rules.DefaultName, Retry: &rules.Retry{}, Severity: deadletter.SeverityDigest},
	})
	r := rand.New(rand.NewPCG(1, 2))
	cause := map[deadletter.ID]int{}
	open := func() *store.Store {
		t.Helper()
		s, err := store.Open(ctx, path, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if left, err := s.Regroup(ctx, classify.GroupVersion, ""); left || err != nil {
			t.Fatal(left, err)
		}
		return s
	}
	s := open()
	for n := 0; n < letters; {
		w := deadletter.Window{
			Session: 1, Number: int64(n/inWindow + 1), Broker: "main", VHost: "/", Inbox: "dlo.letters",
			Uncertain: deadletter.UncertainKeep, Horizon: time.Minute, HorizonRows: 1000,
		}
		var of []int
		for range inWindow {
			of = append(of, n%len(causes))
			c := causes[n%len(causes)]
			p := deadletter.Properties{
				MessageID: fmt.Sprint(n),
				Headers: table{
					"x-death": []any{
						table{
							"queue":        "sms",
							"reason":       "rejected",
							"exchange":     "shop",
							"routing-keys": []any{"order.placed"},
							"time":         now,
						},
					},
				},
			}
			if strings.HasPrefix(c.body, "{") {
				p.ContentType = "application/json"
			}
			for name, text := range c.headers {
				p.Headers[name] = fillPlaceholders(text, r)
			}
			a := deadletter.Arrival{
				Exchange: "dlo.dlx", RoutingKey: "k", Tag: uint64(len(of)), Properties: p,
				Body: []byte(fillPlaceholders(c.body, r)),
			}
			print, err := a.Print()
			if err != nil {
				t.Fatal(err)
			}
			a.Fingerprint = print
			w.Arrivals = append(w.Arrivals, a)
			n++
		}
		receipt, err := s.Receive(ctx, w)
		if err == nil {
			err = s.SettleWindow(ctx, receipt.Window)
		}
		if err != nil || len(receipt.New) != len(of) {
			t.Fatal(err, receipt)
		}
		for i, id := range receipt.New {
			cause[id] = of[i]
		}
		c := classify.New(s, o)
		if n == letters/2 { // this is in the middle of a batch
			if _, err := c.Step(ctx); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = open()
			c = classify.New(s, o)
		}
		for more := 1; more > 0; {
			if more, err = c.Step(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	defer func() { s.Close() }()
	check := func() map[int]deadletter.GroupID {
		t.Helper()
		groups, _, err := s.Groups(ctx, query.Query{}, deadletter.GroupPage{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		of, is := map[int]deadletter.GroupID{}, map[deadletter.GroupID]int{}
		for id, n := range cause {
			l, err := s.Letter(ctx, id)
			if err != nil {
				t.Fatal(err)
			}
			if g, ok := of[n]; ok && g != l.Group {
				t.Fatalf("cause %d is in two groups: %q", n, l.Error)
			}
			if c, ok := is[l.Group]; ok && c != n {
				t.Fatalf("causes %d and %d are in one group: %q", c, n, l.Error)
			}
			of[n], is[l.Group] = l.Group, n
		}
		if len(groups) != len(causes) || len(is) != len(causes) {
			t.Errorf("%d groups, of letters %d", len(groups), len(is))
		}
		for _, g := range groups {
			if g.Count != letters/len(causes) {
				t.Errorf("%s has %d letters", g.Title, g.Count)
			}
		}
		return of
	}
	before := check()
	if err := s.Reread(ctx, deadletter.Reread{Why: "once more"}); err != nil {
		t.Fatal(err)
	}
	reader := classify.NewReader(s, classify.New(s, o), func() {})
	for more := true; more; {
		var err error
		if more, err = reader.Step(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for n, g := range check() {
		if before[n] != g {
			t.Errorf("cause %d went from %s to %s", n, before[n], g)
		}
	}
}
