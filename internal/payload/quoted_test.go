package payload

import "testing"

// TestSummariesBeginWithWhatTheErrorQuotes checks the order of values in a summary. Values that the
// error quotes must come first. Ids, which say the least, must come last.
func TestSummariesBeginWithWhatTheErrorQuotes(t *testing.T) {
	t.Parallel()
	body := []byte(
		`{"event_id":"evt-000108","eventId":7,"paid":12,"tenant":"acme","order":{"template":"welcome_v3","number":4821}}`,
	)
	for errorText, want := range map[string]string{
		"":                                `paid: 12, tenant: "acme", order.template: "welcome_v3", order.number: 4821, event_id: "evt-000108", eventId: 7`,
		"there is no template welcome_v3": `order.template: "welcome_v3", paid: 12, tenant: "acme", order.number: 4821, event_id: "evt-000108", eventId: 7`,
		"order 4821 of evt-000108":        `event_id: "evt-000108", order.number: 4821, paid: 12, tenant: "acme", order.template: "welcome_v3", eventId: 7`,
	} {
		if got := Summary(decode(body, Hints{}), errorText); got != want {
			t.Errorf("%q: %s\nwant %s", errorText, got, want)
		}
	}
	if got := Summary(decode([]byte(`{"id":"a1"}`), Hints{}), ""); got != `id: "a1"` {
		t.Errorf("ids alone: %s", got)
	}
}

func TestQuotedWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text, word string
		want       bool
	}{
		{"order 4821 failed", "4821", true},
		{"order 48213", "4821", false},
		{"14821", "4821", false},
		{"48213 and 4821", "4821", true},
		{"", "4821", false},
	} {
		if got := containsWord(c.text, c.word); got != c.want {
			t.Errorf("containsWord(%q, %q) = %v", c.text, c.word, got)
		}
	}
}
