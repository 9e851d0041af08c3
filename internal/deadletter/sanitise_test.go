package deadletter_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// withHeaders adds the headers of an attempt, as the dispatcher does.
func withHeaders(p *deadletter.Properties) {
	p.Headers[deadletter.HeaderID] = string(deadletter.NewID(1<<50, 1))
	p.Headers[deadletter.HeaderToken] = string(deadletter.NewToken())
	p.Headers[deadletter.HeaderAttempt] = int64(1)
}

func TestSanitise(t *testing.T) {
	t.Parallel()
	type p = deadletter.Properties
	h := func(key string, value any) p { return p{DeliveryMode: 2, Headers: deadletter.Table{key: value}} }
	for _, c := range []struct {
		name     string
		in, want p // want also has DeliveryMode 2 and empty headers
		changed  []string
	}{
		{"user_id is dropped", p{DeliveryMode: 2, UserID: "other"}, p{}, []string{"user_id"}},
		{"expiration is not restored", p{DeliveryMode: 2, Expiration: "60000"}, p{}, []string{"expiration"}},
		{"a bad expiration is not restored", p{DeliveryMode: 2, Expiration: "abc"}, p{}, []string{"expiration"}},
		{"direct reply-to is dropped", p{DeliveryMode: 2, ReplyTo: "amq.rabbitmq.reply-to"}, p{}, []string{"reply_to"}},
		{
			"a used direct reply-to is dropped",
			p{DeliveryMode: 2, ReplyTo: "amq.rabbitmq.reply-to.g1h2AA=="},
			p{},
			[]string{"reply_to"},
		},
		{"another reply_to is kept", p{DeliveryMode: 2, ReplyTo: "replies"}, p{ReplyTo: "replies"}, nil},
		{"a transient letter becomes persistent", p{DeliveryMode: 1}, p{}, []string{"delivery_mode"}},
		{"no delivery mode becomes persistent", p{}, p{}, []string{"delivery_mode"}},
		{"CC", h("CC", []any{"other"}), p{}, []string{"header CC"}},
		{"CC of a wrong type", h("CC", int64(1)), p{}, []string{"header CC"}},
		{"BCC", h("BCC", []any{"other"}), p{}, []string{"header BCC"}},
		{"cc in lower case is no routing header", h("cc", "x"), h("cc", "x"), nil},
		{"x-death", h("x-death", []any{death("q")}), p{}, []string{"header x-death"}},
		{"a malformed x-death", h("x-death", []any{"q"}), p{}, []string{"header x-death"}},
		{"x-first-death-*", h("x-first-death-queue", "q"), p{}, []string{"header x-first-death-queue"}},
		{"x-last-death-*", h("x-last-death-reason", "rejected"), p{}, []string{"header x-last-death-reason"}},
		{"x-delivery-count", h("x-delivery-count", int64(3)), p{}, []string{"header x-delivery-count"}},
		{"x-acquired-count", h("x-acquired-count", int64(3)), p{}, []string{"header x-acquired-count"}},
		{"dlo-id of before", h("dlo-id", "x"), p{}, []string{"header dlo-id"}},
		{"dlo-token of before", h("dlo-token", "x"), p{}, []string{"header dlo-token"}},
		{"dlo-attempt of before", h("dlo-attempt", int64(2)), p{}, []string{"header dlo-attempt"}},
		{
			"the rest stays, with its types", p{
				ContentType:     "application/json",
				ContentEncoding: "gzip",
				CorrelationID:   "c",
				MessageID:       "m",
				Timestamp:       time.Unix(1, 0),
				Type:            "t",
				AppID:           "a",
				Priority:        3,
				DeliveryMode:    2,
				Headers: deadletter.Table{
					"n":         int32(1),
					"x-own":     "kept",
					"dlo-other": "kept",
					"t":         deadletter.Table{"CC": "inside"},
				},
			}, p{
				ContentType:     "application/json",
				ContentEncoding: "gzip",
				CorrelationID:   "c",
				MessageID:       "m",
				Timestamp:       time.Unix(1, 0),
				Type:            "t",
				AppID:           "a",
				Priority:        3,
				Headers: deadletter.Table{
					"n":         int32(1),
					"x-own":     "kept",
					"dlo-other": "kept",
					"t":         deadletter.Table{"CC": "inside"},
				},
			}, nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.want.DeliveryMode = 2
			if c.want.Headers == nil {
				c.want.Headers = deadletter.Table{}
			}
			before := len(c.in.Headers)
			got, changes := deadletter.Sanitise(c.in)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			var fields []string
			for _, change := range changes {
				fields = append(fields, change.Field)
				if change.Why == "" {
					t.Errorf("%s is gone and nothing says why", change.Field)
				}
			}
			if diff := cmp.Diff(c.changed, fields); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			if len(c.in.Headers) != before {
				t.Error("the stored headers were changed")
			}
		})
	}
}

func TestChangesAreSortedShortAndHarmless(t *testing.T) {
	t.Parallel()
	_, changes := deadletter.Sanitise(deadletter.Properties{
		UserID: "\x1b[2J" + strings.Repeat("u", 1000), Expiration: "1", ReplyTo: "amq.rabbitmq.reply-to",
		Headers: deadletter.Table{"CC": strings.Repeat("c", 100_000), "x-first-death-\u202e": "x"},
	})
	var fields []string
	for _, c := range changes {
		fields = append(fields, c.Field)
		if len(c.Was) > 300 || strings.ContainsAny(c.Was+c.Field, "\x1b\u202e") {
			t.Errorf("%q was %q", c.Field, c.Was)
		}
	}
	want := []string{"delivery_mode", "expiration", "header CC", `header x-first-death-\u202e`, "reply_to", "user_id"}
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Error(diff)
	}
}

func TestNotable(t *testing.T) {
	t.Parallel()
	for field, want := range map[string]bool{
		"header x-death": false, "header x-first-death-queue": false, "header x-last-death-reason": false,
		"header x-delivery-count": false, "header x-acquired-count": false,
		"header dlo-id": false, "header dlo-token": false, "header dlo-attempt": false, "delivery_mode": false,
		"header CC": true, "header BCC": true, "user_id": true, "expiration": true, "reply_to": true,
	} {
		if got := (deadletter.Change{Field: field}).Notable(); got != want {
			t.Errorf("%s: %v", field, got)
		}
	}
}

func TestPublishable(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 256)
	// the encoding has 2 bytes of flags, 4 bytes of length, and then the key, type and length of
	// one string
	sized := func(n int) deadletter.Properties {
		return deadletter.Properties{Headers: deadletter.Table{"k": strings.Repeat("x", n-2-4-2-5)}}
	}
	for _, c := range []struct {
		name string
		p    deadletter.Properties
		want string // expected error; "" = the properties can be published
	}{
		{"nothing", deadletter.Properties{}, ""},
		{"a short string of 256 bytes", deadletter.Properties{MessageID: long}, "message_id is longer than 255 bytes"},
		{
			"a header key of 256 bytes",
			deadletter.Properties{Headers: deadletter.Table{long: "v"}},
			"is longer than 255 bytes",
		},
		{"uint64", deadletter.Properties{Headers: deadletter.Table{"n": uint64(1)}}, "uint64"},
		{
			"NaN",
			deadletter.Properties{Headers: deadletter.Table{"n": math.NaN()}},
			`header "n": a double that is not a number`,
		},
		{
			"NaN of 32 bits",
			deadletter.Properties{Headers: deadletter.Table{"n": float32(math.NaN())}},
			"a float that is not a number",
		},
		{
			"infinity in a list in a table",
			deadletter.Properties{Headers: deadletter.Table{"a": deadletter.Table{"b": []any{"x", math.Inf(-1)}}}},
			`header "a": header "b": a double`,
		},
		{"120,000 bytes", sized(120_000), ""},
		{
			"120,001 bytes", sized(120_001),
			`the properties take 120001 bytes, more than the 120000 that fit into a frame; header "k" takes 119995 of them`,
		},
		{
			"the largest of three",
			deadletter.Properties{
				Headers: deadletter.Table{
					"a": strings.Repeat("x", 50_000), "trace\n": strings.Repeat("x", 60_000),
					"z": strings.Repeat("x", 59_999),
				},
			},
			`header "trace\\n" takes 60012 of them: shorten or remove it`,
		},
		{
			"one that could not be read",
			deadletter.Properties{
				Headers: deadletter.Table{"a": deadletter.Unread{Field: []byte("A"), Why: "nested deeper than 64"}},
			},
			`header "a": it could not be read (nested deeper than 64), so it cannot be sent as it was: remove it`,
		},
		{
			"one within another that could not be read",
			deadletter.Properties{Headers: deadletter.Table{"a": []any{deadletter.Unread{}}}},
			`header "a": it could not be read`,
		},
		{"32 tables in one another", deadletter.Properties{Headers: nestedTables(32)}, ""},
		{"33 tables in one another", deadletter.Properties{Headers: nestedTables(33)}, "nested deeper than 32"},
		{"every other type", deadletter.Properties{Headers: withoutKey(everyType(), "nan")}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := deadletter.Publishable(c.p)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func withoutKey(t deadletter.Table, key string) deadletter.Table {
	delete(t, key)
	return t
}

// TestWhatSanitiseLeavesIsPublishable checks the properties that Sanitise returns, together with
// dlo's headers. They must contain nothing that the broker rejects, and nothing that makes the
// broker send a copy, such as the header CC. It must be possible to publish them, or the error must
// say why not.
func TestWhatSanitiseLeavesIsPublishable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := properties().Draw(t, "properties")
		for _, k := range []string{
			"CC", "BCC", "x-death", "x-first-death-queue", "x-last-death-queue", "x-delivery-count", "x-acquired-count",
			"dlo-id", "dlo-token", "dlo-attempt",
		} {
			if rapid.Bool().Draw(t, k) {
				if in.Headers == nil {
					in.Headers = deadletter.Table{}
				}
				in.Headers[k] = fields(1).Draw(t, "value")
			}
		}
		out, changes := deadletter.Sanitise(in)
		for k := range out.Headers {
			if k == "CC" || k == "BCC" || deadletter.BrokerOwned(k) || strings.HasPrefix(k, "dlo-") {
				t.Fatalf("header %s stays", k)
			}
		}
		if out.UserID != "" || out.Expiration != "" || out.DeliveryMode != 2 || strings.HasPrefix(out.ReplyTo, "amq.") {
			t.Fatalf("%+v", out)
		}
		gone := 0
		for _, c := range changes {
			if strings.HasPrefix(c.Field, "header ") {
				gone++
			}
		}
		if gone != len(in.Headers)-len(out.Headers) {
			t.Fatalf("%d headers are gone and %d changes say so", len(in.Headers)-len(out.Headers), gone)
		}
		if again, more := deadletter.Sanitise(out); len(more) > 0 || differing(out, again) != "" {
			t.Fatalf("sanitised again: %v", more)
		}
		withHeaders(&out)
		encoded, err := out.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if err := deadletter.Publishable(out); (err != nil) != (len(encoded) > deadletter.MaxProperties ||
			notFinite(out.Headers)) {
			t.Fatalf("%v", err)
		}
	})
}

func notFinite(v any) bool {
	switch v := v.(type) {
	case deadletter.Unread:
		return true
	case float64:
		return math.IsNaN(v) || math.IsInf(v, 0)
	case float32:
		return notFinite(float64(v))
	case []any:
		for _, e := range v {
			if notFinite(e) {
				return true
			}
		}
	case deadletter.Table:
		for _, e := range v {
			if notFinite(e) {
				return true
			}
		}
	}
	return false
}
