package config_test

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/identity"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/internal/topology"
)

func noEnv(string) string { return "" }

func env(values map[string]string) func(string) string {
	return func(name string) string { return values[name] }
}

// load reads a text as a configuration file.
func load(t testing.TB, text string) (config.Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dlo.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return config.Load(path, noEnv)
}

// patterns is an option of cmp.Diff. With it, two regular expressions are equal if their texts are
// equal.
var patterns = cmp.Comparer(func(a, b *regexp.Regexp) bool { return a.String() == b.String() })

// origin contains options for comparing two configurations. With them, the comparison ignores the
// fields that say from where and when settings were read.
var origin = cmp.Options{
	cmpopts.IgnoreFields(rules.Set{}, "File", "Loaded"), cmpopts.IgnoreFields(config.Broker{}, "Setting"),
}

func TestTheExampleHasEveryDefault(t *testing.T) {
	t.Parallel()
	got, err := config.Load("../../docs/examples/dlo.yaml", noEnv)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(config.Defaults(), got, patterns, origin); diff != "" {
		t.Errorf("(-Defaults +example):\n%s", diff)
	}
	for _, text := range []string{"", "\n", "# nothing\n", "---\n", "null\n"} {
		if got, err := load(t, text); err != nil || !cmp.Equal(config.Defaults(), got, patterns, origin) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if got, err := config.Load("", noEnv); err != nil || !cmp.Equal(config.Defaults(), got, patterns, origin) {
		t.Errorf("without a file: %v", err)
	}
}

// TestTheExampleNamesEveryKey checks that the example file contains every key that the program
// knows, at least in a comment.
func TestTheExampleNamesEveryKey(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/examples/dlo.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, section := range []string{
		"", "brokers: [{%s}]", "disk: {%s}", "ingest: {%s}", "requeue: {%s}", "requeue: {nack: {%s}}", "default: {%s}",
		"requeue: {breaker: {%s}}", "default: {retry: {%s}}", "default: {dead: {%s}}", "rules: [{name: a, %s}]",
		"rules: [{name: a, match: {%s}}]", "rules: [{name: a, retry: {delays: [], %s}}]",
		"rules: [{name: a, dead: {%s}}]", "schemas: {%s}", "schemas: {bindings: [{%s}]}", "masking: [{%s}]",
		"links: [{%s}]",
	} {
		unknown := "no_such_key: 1"
		if section != "" {
			unknown = fmt.Sprintf(section, unknown)
		}
		_, err := load(t, unknown)
		if err == nil {
			t.Fatalf("%s is no mistake", unknown)
		}
		_, keys, ok := strings.Cut(err.Error(), "the keys are ")
		if !ok {
			t.Fatalf("%s: %v", unknown, err)
		}
		keys, _, _ = strings.Cut(keys, "\n")
		for _, key := range strings.Split(keys, ", ") {
			if !regexp.MustCompile(`\b` + key + `\b`).Match(text) {
				t.Errorf("%s of %q does not stand in the example", key, section)
			}
		}
	}
}

func TestEverySetting(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	secret := filepath.Join(dir, "password")
	if err := os.WriteFile(secret, []byte("p/w#d?\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := load(t, `
listen: "[::1]:9000"
public_url: https://dlo.example.com/tools/dlo
hosts: [dlo.example.com]
store: /var/lib/dlo/dlo.db
disk: {stop_below: 1GiB, stop_below_percent: 10, reserve: 0}
brokers:
  - name: west
    amqp: {host: rabbit, tls: true, vhost: a/b, user: dlo, password_file: `+secret+`}
    management: {url: "https://rabbit:15671/", user: dlo, password_file: `+secret+`}
    exchange: ""
    inboxes: [a, b]
    origins: {b: orders}
    requeue_to: [sms, "email-*"]
    intents: {"metrics.*": never, audit: all}
    idle_after: 1h
    observe: [sms, "team.*"]
    rates: {sms: 10, "email-*": 0.5}
    accept_limited: [b]
    annotations: reports
  - {name: east, url: amqp://guest:guest@rabbit/, observe: true}
ingest: {letters: 64, bytes: 4096, linger: 250ms, uncertain: merge, horizon: 1h, horizon_rows: 7}
requeue:
  in_flight: 1
  rate: 0.5
  watch: 30d
  in_doubt: hold
  confirm_timeout: 10s
  max_body: 64KiB
  nack: {first: 1s, max: 1s, notice_after: 1, notice_age: 2d}
  breaker: {came_back: 0, of: 1, window: 1s, probe: 1, give_up: 2d}
default: {retry: {delays: [], jitter: 1, waiter: store}, dead: {severity: page, notify: []}, in_doubt: hold, watch: 1h, rate: 0, mirror_x_death: true}
schemas: {directory: /schemas, reflection: ["orders:50051", "[::1]:50051"], bindings: [{queue: "email-*", type: acme.Email}, {queue: q, key: k, type: acme.T}]}
masking: [{header: Authorization}, {pattern: "[0-9]{16}"}, {type: "acme.*", field: customer.email}, {type: acme.Card}, {field: "[acme.remark].7"}, {json: card.number}]
search: {text: false, fields: [customer.tier]}
quiet_hours: {from: "20:15", to: "06:00", zone: Europe/Berlin, days: [Sat, sun]}
digest: {at: "07:00", days: [], zone: Asia/Tokyo, notify: []}
problems: {notify: []}
tls: {cert_file: /c, key_file: /k}
ops_listen: ":9"
ops_open: true
read_only: true
requests: 5
base_path: /tools/dlo
audit: {file: /a}
auth: {tokens: true, users: true, session: {idle: 1h, longest: 2h}, proxy: {from: [unix, 10.1.2.3/8, "::1", "::ffff:192.0.2.1"], user: remote-user, email: X-Mail, groups: X-Groups, secret_file: `+secret+`}}
grants: [{role: operator, to: [everyone, "user:a:b", "group:x y", "token:ci"], reveal: true, purge: true, without_step_up: true}, {role: reader, to: [everyone]}]
retention: {settled: 1d, discarded: 0, dead: 90d}
`)
	if err != nil {
		t.Fatal(err)
	}
	want := config.Config{
		Listen:    "[::1]:9000",
		PublicURL: "https://dlo.example.com/tools/dlo",
		Hosts:     []string{"dlo.example.com"},
		TLS:       config.TLS{Cert: "/c", Key: "/k"},
		OpsListen: ":9",
		OpsOpen:   true,
		Requests:  5,
		BasePath:  "/tools/dlo",
		ReadOnly:  true,
		AuditFile: "/a",
		Auth: config.Auth{
			Tokens:         true,
			Users:          true,
			SessionIdle:    time.Hour,
			SessionLongest: 2 * time.Hour,
			Proxy: identity.Proxy{
				Unix: true,
				From: []netip.Prefix{
					netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128"),
					netip.MustParsePrefix("192.0.2.1/32"),
				},
				User: "Remote-User", Email: "X-Mail", Groups: "X-Groups", Secret: "p/w#d?",
			},
		},
		Grants: []identity.Grant{
			{
				To:            []string{"everyone", "user:a:b", "group:x y", "token:ci"},
				WithoutStepUp: true,
				Grant:         deadletter.Grant{Role: deadletter.RoleOperator, Reveal: true, Purge: true},
			},
			{To: []string{"everyone"}, Grant: deadletter.Grant{Role: deadletter.RoleReader}},
		},
		Store: "/var/lib/dlo/dlo.db",
		Disk:  config.Disk{StopBelow: 1 << 30, StopBelowPercent: 10},
		Brokers: []config.Broker{{
			Name:         "west",
			URL:          "amqps://dlo:p%2Fw%23d%3F@rabbit:5671/a%2Fb",
			PasswordFile: secret,
			Management:   "https://dlo:p%2Fw%23d%3F@rabbit:15671",
			APIPassword:  secret,
			Inboxes:      []string{"a", "b"},
			RequeueTo:    []string{"sms", "email-*"},
			IdleAfter:    time.Hour,
			Observe:      []string{"sms", "team.*"},
			Intents: []topology.IntentOf{
				{Glob: "metrics.*", Intent: topology.IntentNever},
				{Glob: "audit", Intent: topology.IntentAll},
			},
			Rates:         []rules.Rate{{Queue: "sms", PerSecond: 10}, {Queue: "email-*", PerSecond: 0.5}},
			AcceptLimited: []string{"b"},
			Origins:       map[string]string{"b": "orders"},
			Annotations:   "reports",
		}, {
			Name:        "east",
			URL:         "amqp://guest:guest@rabbit/",
			Exchange:    "dlo.dlx",
			Inboxes:     []string{"dlo.letters"},
			RequeueTo:   []string{"*"},
			Observe:     []string{"*"},
			IdleAfter:   15 * time.Minute,
			Annotations: "dlo.annotations",
		}},
		Ingest: config.Ingest{
			Letters: 64, Bytes: 4096, Linger: 250 * time.Millisecond, Uncertain: deadletter.UncertainMerge,
			Horizon: time.Hour, HorizonRows: 7,
		},
		Requeue: config.Requeue{
			InFlight:       1,
			Rate:           0.5,
			Watch:          30 * 24 * time.Hour,
			InDoubt:        "hold",
			ConfirmTimeout: 10 * time.Second,
			MaxBody:        64 << 10,
			Nack: config.Nack{
				First: time.Second, Max: time.Second, NoticeAfter: 1, NoticeAge: 48 * time.Hour,
			},
			Breaker: config.Breaker{Of: 1, Window: time.Second, Probe: 1, GiveUp: 48 * time.Hour},
		},
		Schemas: config.Schemas{
			Directory:  "/schemas",
			Reflection: []string{"orders:50051", "[::1]:50051"},
			Bindings: []config.Binding{
				{Queue: "email-*", Key: "*", Type: "acme.Email"},
				{Queue: "q", Key: "k", Type: "acme.T"},
			},
		},
		Masking: config.Masking{
			Headers:  []string{"authorization"},
			Patterns: []*regexp.Regexp{regexp.MustCompile("[0-9]{16}")},
			JSON:     []deadletter.FieldPath{{"card", "number"}},
			Fields: []deadletter.MaskedField{
				{Type: "acme.*", Path: deadletter.FieldPath{"customer", "email"}},
				{Type: "acme.Card"},
				{Path: deadletter.FieldPath{"[acme.remark]", "7"}},
			},
		},
		Search: config.Search{Fields: []string{"customer.tier"}},
		Quiet: config.QuietHours{
			From: 20*60 + 15,
			To:   6 * 60,
			Zone: "Europe/Berlin",
			Days: []time.Weekday{time.Saturday, time.Sunday},
		},
		Digest:    config.Digest{At: 7 * 60, Zone: "Asia/Tokyo"},
		Retention: config.Retention{Settled: 24 * time.Hour, Dead: 90 * 24 * time.Hour},
	}
	want.Rules.Default = rules.Rule{
		Name: rules.DefaultName, Severity: deadletter.SeverityPage,
		Retry: &rules.Retry{Jitter: 1, Waiter: rules.WaiterStore}, InDoubt: "hold", Watch: time.Hour,
		Rate: new(float64), MirrorXDeath: true,
	}
	if diff := cmp.Diff(
		want, got, patterns, origin, cmpopts.EquateEmpty(),
		cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
	); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// place is the position of a mistake, and a part of its text.
type place struct {
	line, column int
	text         string
}

// mistakes compares the mistakes in an error with the expected ones.
func mistakes(t *testing.T, err error, want []place) {
	t.Helper()
	var bad *config.Error
	if !errors.As(err, &bad) {
		t.Fatalf("%v is no *Error", err)
	}
	lines := strings.Split(bad.Error(), "\n")
	for i := range max(len(want), len(bad.Mistakes)) {
		switch {
		case i >= len(bad.Mistakes):
			t.Errorf("missing: %+v", want[i])
		case i >= len(want):
			t.Errorf("not expected: %+v", bad.Mistakes[i])
		case bad.Mistakes[i].Line != want[i].line || bad.Mistakes[i].Column != want[i].column ||
			!strings.Contains(bad.Mistakes[i].Text, want[i].text):
			t.Errorf("got %+v, want %+v", bad.Mistakes[i], want[i])
		case want[i].line > 0 && !strings.HasPrefix(
			lines[i], fmt.Sprintf("%s:%d:%d: ", bad.Path, want[i].line, want[i].column),
		):
			t.Errorf("%q does not begin with its place", lines[i])
		}
	}
}

func TestEveryMistakeIsNamedAtOnce(t *testing.T) {
	t.Parallel()
	_, err := load(t, `listen: {a: b}
public_url: ftp://x
lisen: 127.0.0.1:1
store: postgres://x
store: twice
disk: {stop_below: 5 apples, stop_below_percent: 101}
brokers:
  - name: main
    amqp: {host: h, port: 70000}
    url: amqp://guest:guest@h/
    inboxes: []
    requeue_to: declared
    accept_limited: [other]
  - {name: main, amqp: {host: i}}
ingest:
  letters: 0
  uncertain: maybe
  linger: soon
requeue:
  lease: 10s # has no effect, and is no mistake
  nack: {first: 10m, max: 5m}
default: {retry: {delays: 10s}, dead: {severity: loud}}
masking: [{pattern: "("}, {pattern: "x*"}]
`)
	mistakes(t, err, []place{
		{1, 9, "a text is wanted here"},
		{2, 13, "a URL such as http://127.0.0.1:8672"},
		{3, 1, `there is no key "lisen"; the keys are audit,`},
		{4, 8, "not in this version: only a path"},
		{5, 1, "store is listed twice"},
		{6, 20, `"5 apples" is not a size`},
		{6, 50, `from 0 to 100, not "101"`},
		{8, 5, "broker main has no inbox"},
		{9, 11, "either url or amqp, not both"},
		{9, 27, "from 1 to 65535"},
		{12, 17, "declared: not in this version"},
		{13, 21, `accept_limited names "other", which is not an inbox of broker main`},
		{14, 12, "another broker is named main already"},
		{16, 12, `from 1 to 2000, not "0"`},
		{17, 14, `"maybe" is not one of hold, keep, merge`},
		{18, 11, `"soon" is not a duration`},
		{21, 9, "first 10m0s is above its max 5m0s"},
		{22, 27, "give a list"},
		{22, 50, `"loud" is not one of page, notify, digest`},
		{23, 21, "pattern: error parsing regexp"},
		{23, 37, "it would mask everything"},
	})
}

func TestKeysOfLaterVersionsSaySo(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"auth: {oidc: {}}", "search: {substring: true}",
		"default: {discard: true}",
		"default: {dead: {group: x}}",
	} {
		_, err := load(t, text)
		var bad *config.Error
		if !errors.As(err, &bad) {
			t.Errorf("%s is taken", text)
			continue
		}
		for _, m := range bad.Mistakes {
			if !strings.HasSuffix(m.Text, ": not in this version") || m.Line != 1 || m.Column == 0 {
				t.Errorf("%s: %+v", text, m)
			}
		}
	}
}

func TestMistakesOfAllKinds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		want       []place
	}{
		{"no YAML", "a: [", []place{{1, 1, ""}}},
		{"a tab", "disk:\n\tx: 1", []place{{2, 1, "found character that cannot start any token"}}},
		{"a list", "- a", []place{{1, 1, "the file: give keys with values"}}},
		{"a text", "hello", []place{{1, 1, "the file: give keys with values"}}},
		{"a second document", "hosts: []\n---\nhosts: [a]\n", []place{{3, 1, "one document"}}},
		{"a section that is a text", "disk: full", []place{{1, 7, "disk: give keys with values"}}},
		{"an empty value", "listen:", []place{{1, 8, "a text is wanted here"}}},
		{
			"an unknown colour",
			"brokers: [{label: production, colour: crimson}]",
			[]place{{1, 39, `"crimson" is not one of red, amber, green, teal, blue, grey`}},
		},
		{
			"a colour of nothing",
			"brokers: [{name: west, colour: red}]",
			[]place{{1, 32, "colour applies to the label, and broker west has no label"}},
		},
		{
			"a label that fills the page",
			"brokers: [{label: " + strings.Repeat("é", 31) + "}]",
			[]place{{1, 19, "has at most 30 characters"}},
		},
		{
			"a label that turns the line round",
			"brokers: [{label: \"a\\u202eb\"}]",
			[]place{{1, 19, "visible characters only"}},
		},
		{"the queue of trials as an inbox", "brokers: [{inboxes: [dlo.try]}]", []place{{1, 22, "reserved for trials"}}},
		{
			"the queue of trials as that of reports",
			"brokers: [{annotations: dlo.try}]",
			[]place{{1, 25, "reserved for trials"}},
		},
		{
			"an empty list of brokers",
			"brokers: []",
			[]place{{1, 10, "brokers is empty; leave it out for the defaults"}},
		},
		{"not a number", "requeue: {rate: NaN}", []place{{1, 17, "a number from 0 to 1e+06"}}},
		{"infinite", "requeue: {rate: .inf}", []place{{1, 17, "a number from 0 to 1e+06"}}},
		{"a negative size", "ingest: {bytes: -1}", []place{{1, 17, "is not a size"}}},
		{"a size of nothing", "ingest: {bytes: 0}", []place{{1, 17, "a size of at least 1"}}},
		{"a size beyond all disks", "requeue: {max_body: 9999999999GiB}", []place{{1, 21, "is not a size"}}},
		{"a negative duration", "requeue: {watch: -5m}", []place{{1, 18, "a duration from 1s to"}}},
		{"a duration without a unit", "requeue: {watch: 600}", []place{{1, 18, `"600" is not a duration`}}},
		{"a delay of two years", "default: {retry: {delays: [730d]}}", []place{{1, 28, "a duration from 0s to"}}},
		{
			"a breaker that is off",
			"requeue: {breaker: off}",
			[]place{{1, 20, "requeue.breaker: give keys with values"}},
		},
		{
			"a share below 1 %",
			"requeue: {breaker: {came_back: 0.9}}",
			[]place{{1, 32, "per cent, from 1 to 100, or 0 for no breaker"}},
		},
		{
			"a breaker of nothing",
			"requeue: {breaker: {of: 0, probe: 0, window: 0s}}",
			[]place{{1, 25, "from 1 to"}, {1, 35, "from 1 to"}, {1, 46, "from 1s to"}},
		},
		{"rates that are a list", "brokers: [{rates: [a]}]", []place{{1, 19, `for example {"email-*": 10}`}}},
		{
			"a rate below 0",
			"brokers: [{rates: {a: 1, b: -1, a: 2}}]",
			[]place{{1, 29, "a number from 0"}, {1, 33, "a is listed twice"}},
		},
		{
			"TLS in part",
			"brokers: [{amqp: {ca_file: /c, cert_file: /c, external: true}}]",
			[]place{{1, 18, "needs cert_file and key_file"}, {1, 18, "need tls: true"}},
		},
		{
			"a user without a certificate",
			"brokers: [{amqp: {external: true, tls: true}}]",
			[]place{{1, 18, "external: true needs a client certificate"}},
		},
		{
			"TLS of an API in the clear",
			"brokers: [{management: {url: 'http://a', ca_file: /c}}]",
			[]place{{1, 24, "need a url that begins with https"}},
		},
		{
			"a grant without auth",
			"grants: [{role: reader, to: [everyone]}]",
			[]place{{1, 9, "grants need auth.proxy, auth.users or auth.tokens"}},
		},
		{"a proxy without grants", "auth: {proxy: {from: [10.0.0.1]}}", []place{{1, 7, "auth.proxy needs grants"}}},
		{
			"a proxy that names nobody",
			"auth: {proxy: {from: [10.0.0.1], user: ''}}",
			[]place{{1, 7, "then auth needs users: true or tokens: true"}},
		},
		{
			"groups of nobody",
			"auth: {users: true, proxy: {from: [10.0.0.1], user: '', groups: X-Groups}}",
			[]place{{1, 7, "need user"}},
		},
		{
			"a cookie in the clear",
			"auth: {users: true, proxy: {from: [10.0.0.1], user: ''}}",
			[]place{{1, 7, "needs public_url with https"}},
		},
		{
			"a proxy from nowhere",
			"{auth: {proxy: {}}, grants: [{role: reader, to: [everyone]}]}",
			[]place{{1, 16, "needs from"}},
		},
		{
			"a network that is none",
			"{auth: {proxy: {from: [10.0.0.0/99, rabbit]}, tokens: true}, grants: [{role: reader, to: [everyone]}]}",
			[]place{{1, 16, "needs from"}, {1, 24, "is not an address"}, {1, 37, "is not an address"}},
		},
		{
			"a header that cannot be",
			"{auth: {proxy: {from: [10.0.0.1], user: cookie, groups: 'a b'}}, grants: [{role: reader, to: [everyone]}]}",
			[]place{{1, 41, "cannot be a header"}, {1, 57, "cannot be a header"}},
		},
		{
			"grants",
			"{auth: {tokens: true}, grants: [{role: root, to: [ana, 'user:']}, {to: [everyone]}, {role: reader, to: [everyone], purge: true}, {role: viewer, to: [everyone], reveal: true}, {role: reader, to: [everyone], queues: []}, {role: operator, to: ['token:ci'], from_rabbitmq: true}]}",
			[]place{
				{1, 40, "there is no role \"root\"; the roles are viewer, reader, operator, editor, admin"},
				{1, 51, "is not user:NAME"},
				{1, 56, "is not user:NAME"},
				{1, 67, "needs role and to"},
				{1, 85, "purge needs the role operator"},
				{1, 130, "reveal needs the role reader"},
				{1, 215, "an empty list holds nowhere"},
				{1, 220, "from_rabbitmq is for people"},
			},
		},
		{"half a certificate", "tls: {cert_file: a}", []place{{1, 6, "needs cert_file and key_file"}}},
		{"a boolean in words", "brokers: [{amqp: {tls: maybe}}]", []place{{1, 24, "give true or false"}}},
		{
			"servers that are none",
			"schemas: {reflection: [orders, 'https://orders:443', ':1', 'a:b', 'a:1', 'a:1']}",
			[]place{
				{1, 24, "is not a server such as"},
				{1, 32, "is not a server"},
				{1, 54, "is not a server"},
				{1, 60, "is not a server"},
				{1, 74, "a:1 is listed twice"},
			},
		},
		{
			"a binding without a type",
			"schemas: {bindings: [{queue: q}]}",
			[]place{{1, 22, "a binding needs a queue and a type"}},
		},
		{
			"a broker URL of HTTP",
			"brokers: [{url: http://h/}]",
			[]place{{1, 17, "a URL with the scheme amqp or amqps"}},
		},
		{
			"a management URL of AMQP",
			"brokers: [{management: amqp://h/}]",
			[]place{{1, 24, "a URL with the scheme http or https"}},
		},
		{
			"a management section without a URL",
			"brokers: [{management: {user: dlo}}]",
			[]place{{1, 24, "management needs a url"}},
		},
		{"a public URL with a user", "public_url: http://me@host/", []place{{1, 13, "without user and password"}}},
		{
			"an alias is read where it stands",
			"hosts: &h [a]\nmasking: *h",
			[]place{{1, 12, "masking: give keys with values"}},
		},
		{"a merge key", "disk: {<<: {reserve: 0}}", []place{{1, 8, `there is no key "<<"`}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := load(t, c.text)
			mistakes(t, err, c.want)
		})
	}
	if _, err := config.Load(
		filepath.Join(t.TempDir(), "none.yaml"), noEnv,
	); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a file that does not exist: %v", err)
	}
}

// FuzzLoad checks that every file results either in a configuration or in mistakes. Each mistake
// must have a position in the file.
func FuzzLoad(f *testing.F) {
	example, err := os.ReadFile("../../docs/examples/dlo.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example)
	for _, text := range []string{
		"", "a: [", "brokers: [{amqp: {password_file: x}}]", "hosts: &a [*a]", "disk: &d {<<: *d}", "? [a]\n: b",
		"---\n---\n", "!!binary x: y", "requeue: {nack: {first: 1ns}}", "\xff\xfe", "%YAML 9.9\n---\n",
		"rules:\n- name: a\n  retry: {delays: [1s]}\n- {name: b}\r\n",
		"rules:\n- # x\n  name: a\n  match: {queue: a}\n# y\n-\n  name: b # z\n# z\n...\n",
		"{rules: [{name: a, match: {queue: \"b#\", error: c'd}}, {\"name\":'b'}], default: {}}",
		"rules: [{name: 'a', match: {queue: [b, \"c\"]}} , &x {name: b}, *x]",
	} {
		f.Add([]byte(text))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(dir, fmt.Sprintf("%d.yaml", os.Getpid()))
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := config.Load(path, noEnv)
		var bad *config.Error
		switch {
		case err == nil && slices.ContainsFunc(
			c.Rules.Rules, func(r rules.Rule) bool { return r.Name == "" || r.YAML == "" },
		):
			t.Fatalf("taken: %+v", c.Rules)
		case err == nil && (len(c.Brokers) == 0 || c.Ingest.Letters < 1):
			t.Fatalf("taken: %+v", c)
		case err != nil && (!errors.As(err, &bad) || len(bad.Mistakes) == 0 || bad.Error() == ""):
			t.Fatalf("%v", err)
		}
		if err == nil {
			for _, r := range c.Rules.Rules {
				again := "rules:\n  - " + strings.ReplaceAll(r.YAML, "\n", "\n    ") + "\n"
				if err := os.WriteFile(path, []byte(again), 0o600); err != nil {
					t.Fatal(err)
				}
				got, err := config.Load(path, noEnv)
				var bad *config.Error
				if errors.As(err, &bad) && strings.Contains(err.Error(), "there is no channel") {
					continue // it is defined in the rest of the file
				}
				if err != nil || len(got.Rules.Rules) != 1 || !cmp.Equal(
					got.Rules.Rules[0], r, cmpopts.IgnoreFields(rules.Rule{}, "YAML"), cmpopts.EquateEmpty(),
				) {
					t.Fatalf("%q is not the text of %+v: %v", r.YAML, r, err)
				}
			}
		}
		if bad != nil {
			lines := strings.Count(string(text), "\n") + strings.Count(string(text), "\r") + strings.Count(
				string(text), "\u0085",
			) + strings.Count(string(text), "\u2028") + strings.Count(string(text), "\u2029") + 2
			for _, m := range bad.Mistakes {
				if m.Line < 0 || m.Line > lines || m.Text == "" {
					t.Fatalf("%+v of %d lines", m, lines)
				}
			}
		}
	})
}
