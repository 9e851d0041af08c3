package classify_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deadletteroffice/dlo/internal/classify"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/internal/testenv"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

var now = time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)

// fake is a store of received letters. A test decides which of its methods fail.
type fake struct {
	mu       sync.Mutex // held by the methods that take letters
	letters  []deadletter.Letter
	except   [][]deadletter.ID // the argument of each call of NextReceived
	slow     time.Duration     // how long Classify takes
	verdicts []deadletter.Classified
	fail     error
	noted    []deadletter.ID
	priors   map[string]float64
	only     string

	annotations map[deadletter.ID][]deadletter.Annotation
}

func (f *fake) Annotations(context.Context, []deadletter.Letter) (map[deadletter.ID][]deadletter.Annotation, error) {
	return f.annotations, nil
}

func (f *fake) Priors(context.Context, deadletter.Origin) (map[string]float64, error) {
	return f.priors, nil
}

func (f *fake) OnlyType(context.Context, deadletter.Origin) (string, error) { return f.only, nil }

func (f *fake) NextReceived(_ context.Context, n int, except ...deadletter.ID) ([]deadletter.Letter, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.except = append(f.except, except)
	letters := f.letters[:min(n, len(f.letters))]
	f.letters = f.letters[len(letters):]
	return letters, nil
}

func (f *fake) NewestReceived(_ context.Context, n int, _ ...deadletter.ID) ([]deadletter.Letter, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := max(0, len(f.letters)-n)
	letters := f.letters[at:]
	f.letters = f.letters[:at]
	return letters, nil
}

func (f *fake) Classify(_ context.Context, verdicts []deadletter.Classified) error {
	time.Sleep(f.slow)
	if f.fail != nil {
		return f.fail
	}
	f.verdicts = append(f.verdicts, verdicts...)
	return nil
}

func (f *fake) Reading(id deadletter.ID) error {
	f.noted = append(f.noted, id)
	return f.fail
}

// options returns the options of a classifier that retries twice and allows the queues sms and
// email-*. It masks the header x-error-class and numbers of 16 digits. Its broker reports that
// every queue has a consumer.
func options() classify.Options {
	masks := payload.Masks{
		Headers:  []string{"x-error-class"},
		Patterns: []*regexp.Regexp{regexp.MustCompile(`[0-9]{16}`)},
	}
	targets := &rules.Targets{}
	targets.Add("main", "/", []string{"sms", "email-*"}, []string{"dlo.letters", "old-dlq"})
	return classify.Options{
		Onward: func(context.Context, deadletter.Origin, deadletter.Route) deadletter.Onward {
			return deadletter.Onward{Consumed: true}
		},
		Decoder: func() *payload.Decoder { return &payload.Decoder{Mask: masks.Body()} }, Mask: masks.Header,
		Targets: targets, Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler),
		Rules: rules.NewBook(&rules.Set{
			Default: rules.Rule{
				Name:     rules.DefaultName,
				Retry:    &rules.Retry{Delays: []time.Duration{10 * time.Second, 100 * time.Second}},
				Severity: deadletter.SeverityNotify,
			},
		}),
	}
}

// deadLetter returns a received letter that died in the given queue.
func deadLetter(queue, reason string, headers deadletter.Table) deadletter.Letter {
	table := deadletter.Table{}
	for k, v := range headers {
		table[k] = v
	}
	if queue != "" {
		table["x-death"] = []any{
			deadletter.Table{
				"queue":        queue,
				"exchange":     "events",
				"reason":       reason,
				"routing-keys": []any{"k"},
				"time":         now.Add(-time.Hour),
			},
		}
	}
	p := deadletter.Properties{Headers: table, ContentType: "application/json"}
	return deadletter.Letter{
		Row: deadletter.Row{
			ID:     deadletter.NewID(1, 1),
			State:  deadletter.StateReceived,
			Broker: "main",
			VHost:  "/",
		},
		Inbox:      "dlo.letters",
		Properties: p,
		Arrived:    p,
		Body:       []byte(`{"user":"x"}`),
	}
}

// verdicts classifies letters, and returns the verdicts that were recorded.
func verdicts(t testing.TB, o classify.Options, letters ...deadletter.Letter) []deadletter.Classified {
	t.Helper()
	f := &fake{letters: letters}
	if n, err := classify.New(f, o).Step(context.Background()); err != nil || n != len(letters) {
		t.Fatal(n, err)
	}
	return f.verdicts
}

// TestVerdicts compares the decision about each letter with testdata/verdicts.golden.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for _, c := range []struct {
		name   string
		letter deadletter.Letter
		change func(l *deadletter.Letter)
	}{
		{"the first death is retried", deadLetter("sms", "rejected", nil), nil},
		{
			"the second a little later",
			deadLetter("sms", "rejected", nil),
			func(l *deadletter.Letter) { l.Attempts = 1 },
		},
		{"an unknown reason is retried", deadLetter("sms", "eaten", nil), nil},
		{"retries used up", deadLetter("sms", "rejected", nil), func(l *deadletter.Letter) { l.Attempts = 2 }},
		{"expired", deadLetter("sms", "expired", nil), nil},
		{"maxlen", deadLetter("sms", "maxlen", nil), nil},
		{"no origin", deadLetter("", "", nil), nil},
		{"died in its own inbox only", deadLetter("dlo.letters", "expired", nil), nil},
		{"a queue outside of the allow list", deadLetter("payments", "rejected", nil), nil},
		{"a queue of the broker", deadLetter("amq.gen-x", "rejected", nil), nil},
		{"another inbox", deadLetter("old-dlq", "rejected", nil), nil},
		{
			"a suspect, before all else",
			deadLetter("payments", "rejected", nil),
			func(l *deadletter.Letter) { l.Doubt, l.Why = deadletter.DoubtRestart, "probably the same as its twin" },
		},
		{
			"it killed the process three times",
			deadLetter("sms", "rejected", nil),
			func(l *deadletter.Letter) { l.Crashes = deadletter.MaxCrashes },
		},
		{
			"a suspect that killed the process three times",
			deadLetter("sms", "rejected", nil),
			func(l *deadletter.Letter) {
				l.Crashes, l.Doubt, l.Why = deadletter.MaxCrashes, deadletter.DoubtRestart, "probably the same as its twin"
			},
		},
		{
			"released, and nothing says where it could go",
			deadLetter("", "", nil),
			func(l *deadletter.Letter) { l.Unguarded = true },
		},
		{
			"released, and no dispatcher sends to its broker",
			deadLetter("sms", "rejected", nil),
			func(l *deadletter.Letter) { l.Unguarded, l.Broker = true, "away" },
		},
		{
			"released suspects are retried",
			deadLetter("sms", "rejected", nil),
			func(l *deadletter.Letter) { l.Unguarded = true },
		},
		{
			"it killed the process twice: one more try",
			deadLetter("sms", "rejected", nil),
			func(l *deadletter.Letter) { l.Crashes = deadletter.MaxCrashes - 1 },
		},
	} {
		if c.change != nil {
			c.change(&c.letter)
		}
		got := verdicts(t, options(), c.letter)[0]
		fmt.Fprintf(&all, "%s: %s, %s", c.name, got.To, got.Why)
		if !got.DueAt.IsZero() {
			fmt.Fprintf(&all, "; due after %s", got.DueAt.Sub(now))
		}
		all.WriteByte('\n')
		if got.Letter != c.letter.ID || got.Rule != rules.DefaultName ||
			got.Severity != deadletter.SeverityNotify || got.GroupKey == [32]byte{} || got.GroupTitle == "" ||
			got.GroupVersion == 0 {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
	testenv.GoldenText(t, "verdicts.golden", all.String())
}

func TestAVerdictSaysWhereAndWhenItDied(t *testing.T) {
	t.Parallel()
	got := verdicts(t, options(), deadLetter("sms", "rejected", nil))[0]
	want := deadletter.Classified{
		Letter:       got.Letter,
		To:           deadletter.ClassifiedRetry,
		Origin:       deadletter.Origin{Broker: "main", VHost: "/", Queue: "sms", Exchange: "events", RoutingKey: "k"},
		Reason:       "rejected",
		DiedAt:       now.Add(-time.Hour),
		Rule:         "default",
		Reading:      deadletter.ReadAsJSON,
		Summary:      `user: "x"`,
		Why:          got.Why,
		GroupKey:     got.GroupKey,
		GroupTitle:   "letters rejected",
		GroupVersion: classify.GroupVersion,
		Unexplained:  got.Unexplained,
		Severity:     deadletter.SeverityNotify,
		DueAt:        got.DueAt,
		ToldBy:       now.Add(170 * time.Second), // the delays of the letter's retries, plus a minute
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestALetterThatCameBackIsReadAgain checks that the newest arrival determines where and why a
// letter died. The first arrival determines how the letter was published.
func TestALetterThatCameBackIsReadAgain(t *testing.T) {
	t.Parallel()
	l := deadLetter("sms", "rejected", nil)
	l.Attempts = 1
	l.SetOrigin(deadletter.Origin{
		Broker: "main", VHost: "/", Queue: "sms", Exchange: "events", RoutingKey: "order.created",
	})
	l.Arrived.Headers = deadletter.Table{
		"x-death": []any{
			deadletter.Table{"queue": "sms", "exchange": "", "reason": "delivery_limit", "routing-keys": []any{"sms"}},
		},
		"x-error": "second",
	}
	got := verdicts(t, options(), l)[0]
	if got.Reason != "delivery_limit" || got.Error != "second" || got.Origin != l.Origin() {
		t.Errorf("%q, %q, %+v", got.Reason, got.Error, got.Origin)
	}
	l.Arrived.Headers["x-death"].([]any)[0].(deadletter.Table)["queue"] = "email-queue"
	if got := verdicts(t, options(), l)[0]; got.Origin != (deadletter.Origin{
		Broker: "main", VHost: "/", Queue: "email-queue", RoutingKey: "sms",
	}) {
		t.Errorf("%+v", got.Origin)
	}
}

// TestALetterWhoseHeadersDoNotSayWhereItDied covers letters whose headers name no queue in which
// they died. The origin must be the queue that the configuration gives the inbox, or the queue to
// which dlo had sent the letter. Nothing else may be assumed about the death.
func TestALetterWhoseHeadersDoNotSayWhereItDied(t *testing.T) {
	t.Parallel()
	parked := deadLetter("", "", deadletter.Table{"x-error": "boom"})
	parked.Queue = "sms"
	parked.ArrivedBy = deadletter.Route{Exchange: "", RoutingKey: "sms_error"}
	// the headers describe only the letter's time in the inbox
	lying := deadLetter("dlo.letters", "expired", deadletter.Table{
		"x-last-death-queue": "dlo.letters", "x-last-death-reason": "expired",
	})
	lying.Queue = "sms"
	back := deadLetter("", "", nil)
	back.Attempts = 1
	back.SetOrigin(deadletter.Origin{
		Broker: "main", VHost: "/", Queue: "sms", Exchange: "events", RoutingKey: "order.created",
	})
	for _, c := range []struct {
		name   string
		letter deadletter.Letter
		why    string
	}{
		{"with the origin of its inbox", parked, "retry 1 of 2"},
		{"died in its inbox only", lying, "retry 1 of 2"},
		{"came back", back, "retry 2 of 2"},
	} {
		got := verdicts(t, options(), c.letter)[0]
		if got.To != deadletter.ClassifiedRetry || !strings.HasPrefix(got.Why, c.why) ||
			got.Origin != c.letter.Origin() || got.Reason != "" || !got.DiedAt.IsZero() {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
	parked.Queue = "payments"
	if got := verdicts(
		t, options(), parked,
	)[0]; got.To != deadletter.ClassifiedHold ||
		got.Why != "no target: queue payments is not in requeue_to of broker main" {
		t.Errorf("an origin outside of the allow list: %+v", got)
	}
}

func TestErrorsFromHeaders(t *testing.T) {
	t.Parallel()
	type h = deadletter.Table
	for _, c := range []struct {
		name    string
		headers h
		want    string
	}{
		{"none", h{"other": "x"}, ""},
		{"a message", h{"x-error": "timeout"}, "timeout"},
		{"the more telling message first", h{"error": "a", "x-error-message": "b"}, "b"},
		{"a type alone", h{"x-exception-type": "TimeoutError"}, "TimeoutError"},
		{
			"type and message",
			h{"x-exception-type": "TimeoutError", "x-exception-message": "after 3 s"},
			"TimeoutError: after 3 s",
		},
		{
			"empty and of another type: the next one",
			h{"x-error-message": "", "x-exception-message": int64(3), "x-error": "c"},
			"c",
		},
		{"what a pattern masks", h{"x-error": "card 4111111111111111 refused"}, "card •••• refused"},
		{"what a name masks", h{"x-error-class": "Secret", "x-error": "m"}, "••••: m"},
		{"one line, and nothing that acts on a terminal", h{"x-error": "a\nb\x1b[31m\u202e"}, `a\nb\x1b[31m\u202e`},
		{
			"a secret is masked before it is cut",
			h{"x-error": strings.Repeat("x", 490) + "4111111111111111"},
			strings.Repeat("x", 490) + "••…",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := verdicts(t, options(), deadLetter("sms", "rejected", c.headers))[0]
			if got.Error != c.want {
				t.Errorf("%q, want %q", got.Error, c.want)
			}
		})
	}
	o := options()
	o.Mask = nil
	if got := verdicts(
		t, o, deadLetter("sms", "rejected", h{"x-error": "4111111111111111"}),
	)[0]; got.Error != "4111111111111111" {
		t.Errorf("nothing is masked, and the error is %q", got.Error)
	}
	long := verdicts(t, options(), deadLetter("sms", "rejected", h{
		"x-error": strings.Repeat("é", 100_000), "x-error-type": strings.Repeat("\x00", 100_000),
	}))[0]
	if len(long.Error) > 500 {
		t.Errorf("%d bytes", len(long.Error))
	}
}

func TestGroups(t *testing.T) {
	t.Parallel()
	one := func(change func(l *deadletter.Letter)) deadletter.Classified {
		l := deadLetter("sms", "rejected", deadletter.Table{"x-error": `order 17 of "anna" not found: 0xdeadbeef`})
		if change != nil {
			change(&l)
		}
		return verdicts(t, options(), l)[0]
	}
	errorOf := func(text string) func(l *deadletter.Letter) {
		return func(l *deadletter.Letter) { l.Arrived.Headers["x-error"] = text }
	}
	base := one(nil)
	for _, c := range []struct {
		name   string
		change func(l *deadletter.Letter)
		same   bool
	}{
		{"the same", nil, true},
		{"other numbers, quotes and ids", errorOf(`order 4242 of 'bert' not found: 0xcafe`), true},
		{
			"another attempt, body and time",
			func(l *deadletter.Letter) { l.Attempts, l.Body, l.ID = 2, []byte("other"), deadletter.NewID(2, 2) }, true,
		},
		{"another error", errorOf(`order 17 of "anna" was refused`), false},
		{"no error", errorOf(""), false},
		{
			"another queue", func(l *deadletter.Letter) { *l = deadLetter("email-1", "rejected", l.Arrived.Headers) },
			false,
		},
		{"another reason", func(l *deadletter.Letter) { *l = deadLetter("sms", "expired", l.Arrived.Headers) }, false},
		{"another vhost", func(l *deadletter.Letter) { l.VHost = "other" }, false},
		{"another broker", func(l *deadletter.Letter) { l.Broker = "other" }, false},
	} {
		got := one(c.change)
		if (got.GroupKey == base.GroupKey) != c.same {
			t.Errorf("%s: one group: %v", c.name, !c.same)
		}
	}
}

func TestWhatVariesIsFolded(t *testing.T) {
	t.Parallel()
	key := func(text string) [32]byte {
		return verdicts(t, options(), deadLetter("sms", "rejected", deadletter.Table{"x-error": text}))[0].GroupKey
	}
	for _, pair := range [][2]string{
		{"user 0197a3c2-5b1e-7ac0-9d3f-44e2a6b18c20 is gone", "user 0197ffff-5b1e-7ac0-9d3f-44e2a6b18fff is gone"},
		{"trace 4bf92f3577b34da6a3ce929d0e0e4736", "trace 00f067aa0ba902b700f067aa0ba902b7"},
		{"after 3 s at 10.0.0.1:5432", "after 30 s at 10.20.30.40:5433"},
		{`unexpected "x" in 'y'`, `unexpected "z" in 'w'`},
		{"pointer 0x1 is nil", "pointer 0xffff is nil"},
		{"", ""},
	} {
		if key(pair[0]) != key(pair[1]) {
			t.Errorf("%q and %q are two groups", pair[0], pair[1])
		}
	}
	for _, pair := range [][2]string{
		{"connection refused", "connection reset"},
		{"deadbeef", "cafe"},
		{"a", ""},
		{"field `a` is missing", "field `b` is missing"},
	} {
		if key(pair[0]) == key(pair[1]) {
			t.Errorf("%q and %q are one group", pair[0], pair[1])
		}
	}
}

func TestTitles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		letter deadletter.Letter
		want   string
	}{
		{"the error", deadLetter("sms", "rejected", deadletter.Table{"x-error": "boom"}), "boom"},
		{"the reason", deadLetter("sms", "rejected", nil), "letters rejected"},
		{"nothing is known", deadLetter("", "", nil), "letters without a known death"},
	} {
		if got := verdicts(t, options(), c.letter)[0].GroupTitle; got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestAStepThatIsStoppedReadsNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	o := options()
	o.Crash = func(point string) {
		if point == "classify: begun" {
			cancel()
		}
	}
	f := &fake{letters: []deadletter.Letter{deadLetter("sms", "rejected", nil)}}
	if n, err := classify.New(f, o).Step(ctx); n != 0 || err != nil || len(f.noted) != 0 || len(f.verdicts) != 0 {
		t.Errorf("%d letters, %v, %d read, %d verdicts", n, err, len(f.noted), len(f.verdicts))
	}
}

func TestAStepCountsAndTells(t *testing.T) {
	t.Parallel()
	o := options()
	registry := prometheus.NewRegistry()
	o.Metrics = classify.NewMetrics(registry)
	told, at := 0, now
	o.Done = func() { told++ }
	o.Now = func() time.Time { at = at.Add(time.Millisecond); return at }
	again := deadLetter("sms", "expired", nil)
	again.Attempts = 1
	f := &fake{letters: []deadletter.Letter{deadLetter("sms", "rejected", nil), again}}
	c := classify.New(f, o)
	if n, err := c.Step(context.Background()); n != 2 || err != nil || told != 1 {
		t.Fatal(n, err, told)
	}
	if n, err := c.Step(context.Background()); n != 0 || err != nil || told != 1 {
		t.Fatal(n, err, told)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			got[family.GetName()] += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	if got["dlo_reading_seconds_total"] <= 0 {
		t.Error("reading took no time")
	}
	delete(got, "dlo_reading_seconds_total")
	want := map[string]float64{
		"dlo_readings_total": 2, "dlo_received_total": 2, "dlo_dead_total": 1, "dlo_came_back_total": 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	f.letters, f.fail = []deadletter.Letter{deadLetter("sms", "rejected", nil)}, errors.New("disk full")
	if n, err := c.Step(context.Background()); n != 0 || !errors.Is(err, f.fail) || told != 1 {
		t.Error(n, err, told)
	}
}

func TestRunWorksUntilItIsStopped(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	o := options()
	o.Done = cancel
	f := &fake{letters: []deadletter.Letter{deadLetter("sms", "rejected", nil)}}
	c := classify.New(f, o)
	c.Wake()
	c.Wake()
	if err := c.Run(ctx); err != nil || len(f.verdicts) != 1 {
		t.Error(err, f.verdicts)
	}
}

// TestVerdictsAreStoredWhileOthersAreMade checks that the classifier takes the next letters while
// the store records the last verdicts, and that it takes no letter twice. When it is stopped, the
// last verdicts must be stored.
func TestVerdictsAreStoredWhileOthersAreMade(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{slow: time.Minute}
		for n := range 450 {
			l := deadLetter("sms", "rejected", nil)
			l.ID = deadletter.NewID(int64(n+1), 1)
			f.letters = append(f.letters, l)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- classify.New(f, options()).Run(ctx) }()
		time.Sleep(time.Second)
		synctest.Wait()
		if len(f.except) != 2 || len(f.except[0]) != 0 || len(f.except[1]) != 200 || len(f.noted) != 800 {
			t.Errorf("%d letters are read while 200 are recorded, after calls without %v", len(f.noted)/2, f.except)
		}
		stop()
		if err := <-ended; err != nil || len(f.verdicts) != 400 {
			t.Errorf("%v, %d verdicts", err, len(f.verdicts))
		}
	})
}

// TestAFloodHidesNoNewCause checks the steps of a flood. They must be small. At least 1,000 letters
// a second must get verdicts, and a cause that is new must be seen within 5 s, although many
// letters of another cause came before it.
func TestAFloodHidesNoNewCause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{letters: slices.Repeat([]deadletter.Letter{deadLetter("sms", "rejected", nil)}, 20_000)}
		f.letters = append(f.letters, deadLetter("email-1", "rejected", nil))
		o := options()
		o.Busy = func() bool { return true }
		began, done, seen := time.Now(), 0, time.Hour
		o.Done = func() {
			step := f.verdicts[done:]
			if done = len(f.verdicts); len(step) > 100 {
				t.Errorf("a step of %d letters", len(step))
			}
			if slices.ContainsFunc(step, func(v deadletter.Classified) bool { return v.Origin.Queue == "email-1" }) {
				seen = time.Since(began)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := classify.New(f, o).Run(ctx); err != nil || done < 10_000 || seen > 5*time.Second {
			t.Errorf("%v, %d verdicts in 10 s, the new cause after %s", err, done, seen)
		}
	})
}

// FuzzVerdict checks that any headers and body lead to a verdict. The texts of the verdict must be
// bounded and on one line. The target of the verdict must be a queue that the options allow.
func FuzzVerdict(f *testing.F) {
	for _, l := range []deadletter.Letter{
		deadLetter("sms", "rejected", deadletter.Table{"x-error": "\x1b"}), deadLetter("", "", nil),
		deadLetter("amq.gen", "expired", nil),
	} {
		b, err := deadletter.Properties{Headers: l.Arrived.Headers}.Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, l.Body)
	}
	f.Fuzz(func(t *testing.T, properties, body []byte) {
		p, err := deadletter.DecodeProperties(properties)
		if err != nil {
			return
		}
		l := deadLetter("", "", p.Headers)
		l.Body = bytes.Clone(body)
		got := verdicts(t, options(), l)[0]
		if len(got.Error) > 500 || len(got.Summary) > 200 || got.GroupTitle == "" ||
			deadletter.Visible(got.Error) != got.Error || deadletter.Visible(got.Summary) != got.Summary {
			t.Fatalf("error %q, summary %q, title %q", got.Error, got.Summary, got.GroupTitle)
		}
		if got.To == deadletter.ClassifiedRetry && got.Origin.Queue != "sms" &&
			!strings.HasPrefix(got.Origin.Queue, "email-") {
			t.Fatalf("retried to %q", got.Origin.Queue)
		}
		if !slices.Contains([]deadletter.Trigger{
			deadletter.ClassifiedRetry, deadletter.ClassifiedDead, deadletter.ClassifiedHold,
		}, got.To) {
			t.Fatal(got.To)
		}
	})
}

// TestARenamedBrokerKeepsItsGroups checks that the keys of groups contain the first name of the
// broker, even if a rule names the group or the letter cannot be read.
func TestARenamedBrokerKeepsItsGroups(t *testing.T) {
	t.Parallel()
	crashed, plain := deadLetter("sms", "rejected", nil), deadLetter(
		"sms", "rejected", deadletter.Table{"x-error": "boom"},
	)
	crashed.Crashes = deadletter.MaxCrashes
	for name, l := range map[string]deadletter.Letter{"crashed": crashed, "plain": plain} {
		for _, group := range []string{"", "noise"} {
			o := options()
			set := *o.Rules.Set()
			set.Rules = []rules.Rule{{Name: "all", Group: group}}
			o.Rules.Replace(&set)
			was := verdicts(t, o, l)[0]
			renamed := l
			renamed.Broker = "prod"
			other := verdicts(t, o, renamed)[0]
			o.FirstName = func(broker string) string { return map[string]string{"prod": "main"}[broker] }
			is := verdicts(t, o, renamed)[0]
			if is.GroupKey != was.GroupKey || is.Origin.Broker != "prod" {
				t.Errorf("%s, group %q: another group, of %+v", name, group, is.Origin)
			}
			if other.GroupKey == was.GroupKey {
				t.Errorf("%s, group %q: two brokers have one group", name, group)
			}
		}
	}
}
