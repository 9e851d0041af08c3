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
	cmpopts.IgnoreFields(rules.Set{}, "File", "Loaded", "Digest", "Fields"), cmpopts.IgnoreFields(config.Broker{}, "Setting"),
	cmpopts.IgnoreFields(config.Config{}, "Outline"),
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

// everySetting returns a file with nearly all keys. The parameter "secret" is the name of a file.
func everySetting(secret string) string {
	return `
listen: "[::1]:9000"
public_url: https://dlo.example.com/tools/dlo
hosts: [dlo.example.com]
store: /var/lib/dlo/dlo.db
disk: {stop_below: 1GiB, stop_below_percent: 10, reserve: 0}
brokers:
  - name: west
    amqp: {host: rabbit, tls: true, vhost: a/b, user: dlo, password_file: ` + secret + `}
    management: {url: "https://rabbit:15671/", user: dlo, password_file: ` + secret + `}
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
schemas: {directory: /schemas, reflection: ["orders:50051", "[::1]:50051"], bindings: [{queue: "email-*", type: acme.Email}, {queue: q, key: k, type: acme.T, path: row.payload}], type_headers: [x-kind, name]}
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
auth: {tokens: true, users: true, session: {idle: 1h, longest: 2h}, proxy: {from: [unix, 10.1.2.3/8, "::1", "::ffff:192.0.2.1"], user: remote-user, email: X-Mail, groups: X-Groups, secret_file: ` + secret + `}}
grants: [{role: operator, to: [everyone, "user:a:b", "group:x y", "token:ci"], reveal: true, purge: true, without_step_up: true}, {role: reader, to: [everyone]}]
retention: {quiet: 1d, discarded: 0, dead: 90d}
backup: {folder: /backups, every: 12h, keep: 3, rehearse: 2d}
`
}

func TestEverySetting(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	secret := filepath.Join(dir, "password")
	if err := os.WriteFile(secret, []byte("p/w#d?\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := load(t, everySetting(secret))
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
		Log:       config.Log{Format: "text", Level: "info"},
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
			Bindings: []deadletter.Binding{
				{Queue: "email-*", Key: "*", Type: "acme.Email"},
				{Queue: "q", Key: "k", Type: "acme.T", Path: "row.payload"},
			},
			TypeHeaders: []string{"x-kind", "name"},
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
		Retention: config.Retention{Quiet: 24 * time.Hour, Dead: 90 * 24 * time.Hour},
		Backup:    config.Backup{Folder: "/backups", Every: 12 * time.Hour, Keep: 3, Rehearse: 48 * time.Hour},
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
