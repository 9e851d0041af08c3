package classify_test

import (
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/classify"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/google/go-cmp/cmp"
)

// optionsWith returns the options of a classifier whose only special rule has the name "it".
func optionsWith(rule rules.Rule) classify.Options {
	o := options()
	set := *o.Rules.Set()
	rule.Name = "it"
	set.Rules = []rules.Rule{rule}
	o.Rules = rules.NewBook(&set)
	return o
}

func TestWhatRulesSeeOfALetter(t *testing.T) {
	t.Parallel()
	headers := deadletter.Table{
		"x-tenant":      "48213",
		"x-empty":       "",
		"x-count":       int32(3),
		"x-ratio":       0.5,
		"x-new":         true,
		"x-at":          now,
		"x-bytes":       []byte("ab"),
		"x-list":        []any{"a"},
		"x-table":       deadletter.Table{"a": "b"},
		"x-nothing":     nil,
		"x-error-class": "Masked",
		"x-card":        "4111111111111111",
	}
	body := `{"customer": {"tier": "gold", "id": 7, "card": "4111111111111111", "vip": true, "note": null, "a.b": "dotted"}, "tags": ["new", "hot"], "items": [{"sku": "A-1"}, {"sku": "B-2", "parts": [["x"], ["y"]]}],
		"cards": ["4111111111111111", "none"], "customer.tier": "flat", "empty": ""}`
	header := func(name, glob string) rules.Match {
		return rules.Match{Header: []rules.Named{{Name: name, Want: rules.Patterns{glob}}}}
	}
	field := func(path, glob string) rules.Match {
		return rules.Match{Field: []rules.Named{{Name: path, Want: rules.Patterns{glob}}}}
	}
	for _, c := range []struct {
		name  string
		match rules.Match
		want  bool
	}{
		{"a text", header("x-tenant", "482*"), true},
		{"an empty text", header("x-empty", ""), true},
		{"a number", header("x-count", "3"), true},
		{"a fraction", header("x-ratio", "0.5"), true},
		{"a boolean", header("x-new", "true"), true},
		{"a time", header("x-at", "2026-11-20T08:00:00Z"), true},
		{"bytes", header("x-bytes", "ab"), true},
		{"a list", header("x-list", "*"), false},
		{"a table", header("x-table", "*"), false},
		{"nothing", header("x-nothing", "*"), false},
		{"no header", header("x-other", "*"), false},
		{"another case", header("X-Tenant", "*"), false},
		{"a header that its name masks", header("x-error-class", "*"), false},
		{"a header that a pattern masks", header("x-card", "*"), false},
		{"a field", field("customer.tier", "gold"), true},
		{"a name with a dot in it", field("customer.tier", "flat"), true},
		{"a dot further down", field("customer.a.b", "dotted"), true},
		{"a number in the body", field("customer.id", "7"), true},
		{"a boolean in the body", field("customer.vip", "true"), true},
		{"an empty text in the body", field("empty", ""), true},
		{"an element", field("items.[1].sku", "B-2"), true},
		{"another element", field("items.[0].sku", "B-2"), false},
		{"any element", field("items.sku", "B-2"), true},
		{"any element of a list of texts", field("tags", "hot"), true},
		{"lists of lists", field("items.parts", "y"), true},
		{"no such field", field("customer.name", "*"), false},
		{"a message is no value", field("customer", "*"), false},
		{"a masked field", field("customer.card", "*"), false},
		{"an element that is not masked", field("cards", "none"), true},
		{"an element that is", field("cards", "*•*"), false},
		{"the path ends early", field("customer.tier.x", "*"), false},
		{
			"where it died",
			rules.Match{
				Queue:    rules.Patterns{"sms"},
				Exchange: rules.Patterns{"events"},
				Key:      rules.Patterns{"k"},
				Reason:   rules.Patterns{"rejected"},
				Broker:   rules.Patterns{"main"},
				VHost:    rules.Patterns{"/"},
			},
			true,
		},
		{"its type", rules.Match{NoSchema: true}, true},
		{"the error is the masked one", rules.Match{Error: rules.Patterns{"*masked*"}}, false},
		{"its age", rules.Match{Age: rules.Comparisons{{Op: ">", Than: int64(time.Hour)}}}, true},
		{"its attempts", rules.Match{Attempts: rules.Comparisons{{Op: "=", Than: 1}}}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := deadLetter("sms", "rejected", headers)
			l.Body, l.ReceivedAt, l.Attempts, l.Reset = []byte(body), now.Add(-2*time.Hour), 3, 2
			got := verdicts(t, optionsWith(rules.Rule{Match: c.match}), l)[0]
			if (got.Rule == "it") != c.want {
				t.Errorf("decided by %s", got.Rule)
			}
		})
	}
	text := deadLetter("sms", "rejected", nil)
	text.Body, text.Properties.ContentType = []byte("just words"), "text/plain"
	if got := verdicts(t, optionsWith(rules.Rule{Match: field("", "*")}), text)[0]; got.Rule != rules.DefaultName {
		t.Errorf("a body without fields: %s", got.Rule)
	}
}

func TestWhatARuleDiscards(t *testing.T) {
	t.Parallel()
	o := optionsWith(rules.Rule{Discard: true})
	for _, c := range []struct {
		name   string
		letter deadletter.Letter
		change func(l *deadletter.Letter)
		want   deadletter.Trigger
		why    string
	}{
		{
			"at once", deadLetter("sms", "rejected", nil), nil, deadletter.ClassifiedDiscard,
			"rule it: discarded as known noise",
		},
		{
			"it came back", deadLetter("sms", "rejected", nil), func(l *deadletter.Letter) { l.Attempts = 9 },
			deadletter.ClassifiedDiscard, "rule it: discarded as known noise",
		},
		{
			"where nothing may be sent", deadLetter("payments", "rejected", nil), nil, deadletter.ClassifiedDiscard,
			"rule it: discarded as known noise",
		},
		{
			"without an origin", deadLetter("", "", nil), nil, deadletter.ClassifiedDiscard,
			"rule it: discarded as known noise",
		},
		{
			"released", deadLetter("payments", "rejected", nil), func(l *deadletter.Letter) { l.Unguarded = true },
			deadletter.ClassifiedDiscard, "rule it: discarded as known noise",
		},
		{
			"a suspect is held first", deadLetter("sms", "rejected", nil),
			func(l *deadletter.Letter) { l.Doubt, l.Why = deadletter.DoubtRestart, "a twin" },
			deadletter.ClassifiedHold, "a twin",
		},
		{
			"it killed the process three times", deadLetter("sms", "rejected", nil),
			func(l *deadletter.Letter) { l.Crashes = deadletter.MaxCrashes }, deadletter.ClassifiedDead,
			"undecodable (crash)",
		},
		{
			"imported", deadLetter("sms", "rejected", nil),
			func(l *deadletter.Letter) { l.Imported = deadletter.StateDead }, deadletter.ClassifiedDead, "imported",
		},
	} {
		if c.change != nil {
			c.change(&c.letter)
		}
		got := verdicts(t, o, c.letter)[0]
		if got.To != c.want || !strings.HasPrefix(got.Why, c.why) || !got.DueAt.IsZero() {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

func TestARuleDecidesInPlaceOfTheDefault(t *testing.T) {
	t.Parallel()
	o := optionsWith(rules.Rule{
		Match:    rules.Match{Reason: rules.Patterns{"expired"}},
		Retry:    &rules.Retry{Delays: []time.Duration{time.Hour}},
		Severity: deadletter.SeverityPage,
	})
	got := verdicts(t, o, deadLetter("sms", "expired", nil))[0]
	want := deadletter.Classified{
		To: deadletter.ClassifiedRetry, Rule: "it", Severity: deadletter.SeverityPage, DueAt: now.Add(time.Hour),
		Why: "rule it: retry 1 of 1 in 1h0m0s",
	}
	if diff := cmp.Diff(want, deadletter.Classified{
		To: got.To, Rule: got.Rule, Severity: got.Severity, DueAt: got.DueAt, Why: got.Why,
	}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
