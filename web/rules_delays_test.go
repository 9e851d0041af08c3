package web

import (
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
)

func TestDelaysInALine(t *testing.T) {
	t.Parallel()
	set := &rules.Set{
		Default: rules.Rule{
			Name: rules.DefaultName, Severity: deadletter.SeverityDigest,
			Retry: &rules.Retry{Delays: []time.Duration{10 * time.Second}},
		},
	}
	seconds := func(n int) (list []time.Duration) {
		for i := range n {
			list = append(list, time.Duration(i+1)*time.Second)
		}
		return list
	}
	for _, c := range []struct {
		rule         *rules.Rule
		reason, want string
	}{
		{
			&rules.Rule{
				Retry:    &rules.Retry{Delays: []time.Duration{5 * time.Second, 30 * time.Second, 5 * time.Minute}},
				Severity: deadletter.SeverityPage,
			},
			"expired", "5 s, 30 s, 5 min, then dead: page",
		},
		{
			&rules.Rule{Retry: &rules.Retry{Attempts: 2, First: time.Minute, Factor: 10, Jitter: 0.1}}, "",
			"54 s to 1 min 6 s, 9 min to 11 min, then dead: digest",
		},
		{
			&rules.Rule{Retry: &rules.Retry{Delays: seconds(7)}}, "",
			"1 s, 2 s, 3 s, 4 s, 5 s, 6 s, 7 s, then dead: digest",
		},
		{
			&rules.Rule{Retry: &rules.Retry{Delays: seconds(1008)}}, "",
			"1 s, 2 s, 3 s, 4 s, 5 s, 6 s, 1,002 more, then dead: digest",
		},
		{&rules.Rule{Retry: &rules.Retry{}}, "rejected", "no retry, dead: digest"},
		{&rules.Rule{}, "rejected", "10 s, then dead: digest"},
		{&rules.Rule{}, "expired", "no retry, dead: digest"},
		{&set.Default, "rejected", "10 s, then dead: digest"},
		{&set.Default, "maxlen", "no retry, dead: digest"},
		{&rules.Rule{Discard: true}, "", "discarded at once"},
	} {
		if got := delaysOf(set, c.rule, c.reason); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
