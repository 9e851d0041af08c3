package failure_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/deadletteroffice/dlo/internal/failure"
	"pgregory.net/rapid"
)

func TestFold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", ""},
		{"words stay, in their case", "Connection refused by PSP", "Connection refused by PSP"},
		{"white space is one space", "  a\t b\r\n\u00a0c ", "a b c"},
		{"numbers", "order 17 of 4,711.50 EUR is -3 short", "order # of # EUR is # short"},
		{"numbers in words", "order17, utf8, int64 in v1.2.3", "order#, utf#, int# in v#"},
		{"a list of numbers is one", "ids 1, 2, 3 and (4,5)", "ids # and (#)"},
		{
			"ids", "user 0197a3c2-5b1e-7ac0-9d3f-44e2a6b18c20 of order-0197a3c2-5b1e-7ac0-9d3f-44e2a6b18c20.json",
			"user # of order-#.json",
		},
		{"GUIDs in braces", "class {0197A3C2-5B1E-7AC0-9D3F-44E2A6B18C20} not registered", "class {#} not registered"},
		{
			"hashes", "commit 3f2a1bc, trace 4bf92f3577b34da6a3ce929d0e0e4736, object 507f1f77bcf86cd799439011",
			"commit #, trace #, object #",
		},
		{"ULID, KSUID, nanoid", "01ARZ3NDEKTSV4RRFFQ69G5FAV 0ujtsYcgvSTl8PAuAdqWYSMnLOv V1StGXR8Z5jdHi6B", "#"},
		{"ids with a prefix", "charge ch_3PqLrT2eZvKYlo2C of cus_NffrFeUfNV2Hib", "charge ch_# of cus_#"},
		{"pods", "pod api-7d9f8b6c5-x2x4z is gone", "pod api-# is gone"},
		{"base64", "token dGhpcyBpcyBhIHRlc3Qgb2YgYmFzZTY0+/8x== is bad", "token #== is bad"},
		{
			"JWT",
			"token eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c expired",
			"token # expired",
		},
		{"memory", "pointer 0x7ffe at 0xdeadbeef", "pointer # at #"},
		{
			"objects", "com.acme.Order@1b2c3d, <Order object at 0x7f3a2b>, #<Order:0x000055d>",
			"com.acme.Order@#, <Order object at #>, #<Order:#>",
		},
		{
			"addresses", "dial tcp 10.0.0.1:5432, [2001:db8::ff00:42:8329]:5672, db.internal:5432",
			"dial tcp #, [#]:#, db.internal:#",
		},
		{
			"URLs", "POST https://api.acme.com:8443/v1/charges/ch_1?x=1&y=(2) failed: (see http://e.com/a)",
			"POST #(#) failed: (see #)",
		},
		{"a URL of a database", "jdbc:postgresql://db:5432/shop is down", "jdbc: # is down"},
		{"e-mail", "mail to anna.b+c@example.co.uk bounced", "mail to # bounced"},
		{"RFC 3339", "at 2026-11-20T10:11:12.123Z and 2026-11-20T10:11:12+01:00", "at # and #"},
		{"a time with a comma", "2026-11-20 10:11:12,123 ERROR late", "# ERROR late"},
		{"the time of a log", "[2026-11-20 10:11:12] late", "[#] late"},
		{"the time of HTTP", "until Fri, 20 Nov 2026 10:11:12 GMT it waits", "until # it waits"},
		{"the time of a web server", "20/Nov/2026:10:11:12 +0000 late", "# late"},
		{"the time of America", "on Nov 20, 2026 10:11:12 PM", "on #"},
		{"Unix time", "since 1763625600.123", "since #"},
		{"durations", "after 3 s, 30s, 1m30s, 250ms, 1.5h, PT1M30S, 10 seconds and 00:00:30", "after # and #"},
		{"sizes", "body of 16MiB is above 512 bytes", "body of # is above #"},
		{"paths", "/var/spool/upload-12345/2026/11/20/x9.csv is missing", "/var/spool/upload-#/x#.csv is missing"},
		{
			"quoted values", "order \"17\" of 'anna' and `bert` and “Zoë K.” is unknown",
			"order # of # and # and # is unknown",
		},
		{"a long quoted value", `comment "please, deliver 'it' after lunch" is refused`, "comment # is refused"},
		{
			"apostrophes are letters", "can't open the user's file, it isn't there",
			"can't open the user's file, it isn't there",
		},
		{"a quote that nothing closes", `5" pipe is short`, "# pipe is short"},
		{"escaped quotes", `{"a":"b\"c"} and \"x\" fail`, `{} and \ # fail`},
		{
			"a column", `column "emial" of relation "users" does not exist`,
			"column emial of relation users does not exist",
		},
		{
			"a constraint and its value",
			`duplicate key value violates unique constraint "users_email_key": Key (email)=(anna@example.com)`,
			"duplicate key value violates unique constraint users_email_key: Key (email)=(#)",
		},
		{"MySQL", "Duplicate entry '4711-x' for key 'users.email'", "Duplicate entry # for key #"},
		{"MySQL's column", "Unknown column 'o.emial' in 'field list'", "Unknown column o.emial in #"},
		{
			"JavaScript", "Cannot read properties of undefined (reading 'items')",
			"Cannot read properties of undefined (reading items)",
		},
		{"Python's attribute", "'NoneType' object has no attribute 'items'", "NoneType object has no attribute items"},
		{"Python's name", "name 'total' is not defined", "name total is not defined"},
		{"Python's key, all there is", "'user_id'", "user_id"},
		{"a message in quotes", `"timeout after 3 s"`, "timeout after #"},
		{"Ruby's method", "undefined method `total' for nil", "undefined method total for nil"},
		{
			"Java's null", `Cannot invoke "com.acme.Order.getId()" because "order" is null`,
			"Cannot invoke com.acme.Order.getId because order is null",
		},
		{
			"a class", `No handler for "App\Message\OrderPlaced", type 'Acme.IMailer', OrderPlaced`,
			`No handler for App\Message\OrderPlaced, type Acme.IMailer, OrderPlaced`,
		},
		{"joi", `"customer.email" is required`, "customer.email is required"},
		{"a name that a value hides in", `column "x1a2b3c4d" is odd`, "column # is odd"},
		{"JSON", `refused: {"user": {"id": 17}, "list": [1, 2]} as told`, "refused: {} as told"},
		{
			"JSON that says why", `402 {"error": {"code": "card_declined", "message": "no", "charge": "ch_17"}}`,
			"# {card_declined}",
		},
		{"JSON that is cut off", `refused: {"user": {"id": 17, "na`, "refused: {}"},
		{"Python's dictionary", `refused: {'id': 17, 'a': ['x']} as told`, "refused: {} as told"},
		{"a list", `refused: ["a", "b"] [] [x]`, "refused: [] [] [x]"},
		{"a word of hexadecimal letters", "deadbeef, facade, dead12, cafe", "#, facade, dead#, cafe"},
		{
			"long names", "OrderPlacedEventHandlerFactoryBean.getURLForHTTP2Server",
			"OrderPlacedEventHandlerFactoryBean.getURLForHTTP#Server",
		},
		{"masked", "card •••• refused", "card •••• refused"},
		{"what is no UTF-8", "a\xff\xfeb", "a?b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := failure.Fold(c.text)
			if got != c.want {
				t.Errorf("%q\n got %q\nwant %q", c.text, got, c.want)
			}
			if again := failure.Fold(got); again != got {
				t.Errorf("again %q", again)
			}
		})
	}
}

func TestTextsOfOneCause(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]string{
		{
			"order 17 of user 0197a3c2-5b1e-7ac0-9d3f-44e2a6b18c20 not found",
			"order 4242424242 of user 11111111-2222-7333-8444-555555555555 not found",
		},
		{"lock wait timeout after 50 s", "lock wait timeout after 1200 ms"},
		{"took 1 second", "took 12 seconds"},
		{`unexpected "x" in 'y'`, `unexpected "zz top" in 'w w'`},
		{"values (1, 2, 3) overlap", "values (1, 2, 3, 4, 5) overlap"},
		{`bad answer: {"a": 1}`, `bad answer: {"b": [1, {"c": "it's"}]}`},
		{"GET http://a.example/x failed", "GET https://b.example:8443/y/z?q=1 failed"},
		{"trace 4bf92f35 lost", "trace bc123456 lost"},
	} {
		if a, b := failure.Fold(pair[0]), failure.Fold(pair[1]); a != b {
			t.Errorf("two causes:\n%q\n%q", a, b)
		}
	}
}

// TestTextsOfTwoCauses checks that the two texts of each pair stay different. They differ only a
// little, but have different causes.
func TestTextsOfTwoCauses(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]string{
		{"connection refused", "connection reset"},
		{`column "a" does not exist`, `column "b" does not exist`},
		{`relation "orders" does not exist`, `relation "order_items" does not exist`},
		{"field `email` is missing", "field `phone` is missing"},
		{`violates unique constraint "users_email_key"`, `violates unique constraint "users_pkey"`},
		{"'NoneType' object has no attribute 'id'", "'NoneType' object has no attribute 'name'"},
		{"Cannot read properties of undefined (reading 'id')", "Cannot read properties of null (reading 'id')"},
		{"Cannot read properties of undefined (reading 'id')", "Cannot read properties of undefined (reading 'name')"},
		{"undefined method `id' for nil", "undefined method `name' for nil"},
		{`No handler for "App\Message\Placed"`, `No handler for "App\Message\Paid"`},
		{`"email" is required`, `"phone" is required`},
		{"'user_id'", "'order_id'"},
		{`402 {"code": "card_declined"}`, `402 {"code": "expired_card"}`},
		{"dial tcp: lookup db.internal: no such host", "dial tcp: lookup cache.internal: no such host"},
		{"timed out after 3 s", "timed out after 3 tries"},
		{"Order not found", "order not found"},
		{"deadbeef", "cafe"},
		{"queue orders.eu is full", "queue orders.us is full"},
		{"a", ""},
	} {
		if a, b := failure.Fold(pair[0]), failure.Fold(pair[1]); a == b {
			t.Errorf("one cause: %q of\n%q\n%q", a, pair[0], pair[1])
		}
	}
}

// pieces contains parts of error texts, and characters that often break parsers.
var pieces = []string{
	"order", "Order", "can't", "'", `"`, "`", "“", "”", "‘", "’", "«", "{", "}", "[", "]", "(", ")", "<", ">", ":", ".",
	",", ";", "=", "/", `\`, "@", "#", "-", "_", "+", "|", "&", "%", " ", " ", " ", "\n", "\x00", "\u00a0", "é", "\xff",
	"17", "0", "3f2a1bc", "dead", "0x1f", "Nov", "Fri", "May", "s", "ms", "PM", "is required", "column", "{\"a\":1}",
	"{'a':", "://", "http://x.y/z", "a@b.co", "::1", "T", "Z", "P", "PT", "NffrFeUfNV2Hib", "OrderPlaced", "A.B",
	"card_declined", "\"code\":",
	"0197a3c2-5b1e-7ac0-9d3f-44e2a6b18c20", strings.Repeat("x", 70), strings.Repeat("ab ", 200),
}

func TestFoldOfWhateverIsGiven(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 40).Draw(t, "text"), "")
		got := failure.Fold(text)
		if len(got) > 1000 || !utf8.ValidString(got) {
			t.Fatalf("%d bytes: %q", len(got), got)
		}
		if again := failure.Fold(got); again != got {
			t.Fatalf("%q\n folds to %q\n which folds to %q", text, got, again)
		}
	})
}

// TestFoldTakesOutNumbersAndIDs checks texts that differ only in numbers, ids and times. All of
// these texts must become the same text when they are folded.
func TestFoldTakesOutNumbersAndIDs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringMatching(`[g-z]{2,8}`), 1, 6).Draw(t, "words")
		kinds := rapid.SliceOfN(rapid.IntRange(0, 7), len(words), len(words)).Draw(t, "kinds")
		text := func(label string) string {
			var b strings.Builder
			for i, w := range words {
				n := rapid.Uint64().Draw(t, label)
				value := [...]string{
					fmt.Sprint(n),
					fmt.Sprintf("%08x-%04x-7%03x-8%03x-%012x", uint32(n), uint16(n>>32), n%4096, n>>20%4096, n%(1<<48)),
					fmt.Sprintf("%016x", n), fmt.Sprintf("0x%x", n), fmt.Sprintf("%q", fmt.Sprint("v", n)),
					fmt.Sprintf("%d.%d.%d.%d:%d", n%256, n>>8%256, n>>16%256, n>>24%256, n>>32%65536),
					time.Unix(int64(n%(1<<32)), 0).UTC().Format(time.RFC3339), time.Duration(n % (1 << 50)).String(),
				}[kinds[i]]
				fmt.Fprintf(&b, "%s %s is %s; ", w, value, w)
			}
			return b.String()
		}
		a, b := text("a"), text("b")
		if failure.Fold(a) != failure.Fold(b) {
			t.Fatalf("two causes\n%s\n%s\n%s\n%s", a, b, failure.Fold(a), failure.Fold(b))
		}
	})
}

func FuzzFold(f *testing.F) {
	for _, s := range []string{
		"", `{"a":["b`, "'it's' \"x", "order 17 “of”", "a@b.c http://x ::1", strings.Repeat(`"`, 100),
		strings.Repeat("{", 100), strings.Repeat("1 ", 100),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := failure.Fold(text)
		if len(got) > 1000 || !utf8.ValidString(got) || failure.Fold(got) != got {
			t.Fatalf("%q, then %q", got, failure.Fold(got))
		}
	})
}

// BenchmarkFold shows that the work grows linearly with the length of a text, whatever the text is.
func BenchmarkFold(b *testing.B) {
	for name, text := range map[string]string{
		"usual":  "order 17 of \"anna\" not found: 0197a3c2-5b1e-7ac0-9d3f-44e2a6b18c20 at 10.0.0.1:5432",
		"quotes": strings.Repeat(`"`, 64<<10), "open": strings.Repeat("'a ", 20<<10),
		"braces": strings.Repeat("{\"", 32<<10), "numbers": strings.Repeat("1 ", 32<<10),
		"joints": strings.Repeat("a-", 32<<10), "turns": strings.Repeat("x1y2-", 13<<10),
		"names": strings.Repeat("aB3-", 16<<10),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				failure.Fold(text)
			}
		})
	}
}
