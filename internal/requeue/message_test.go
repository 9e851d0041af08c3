package requeue_test

import (
	"testing"
	"testing/synctest"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/google/go-cmp/cmp"
)

// TestWhatIsSent checks the message that is sent. It must identify its letter and attempt. Harmful
// properties must be left out, and the history must list them. If a person edited the properties,
// the expiration must stay.
func TestWhatIsSent(t *testing.T) {
	t.Parallel()
	deaths := []any{
		deadletter.Table{
			"queue":        "sms",
			"reason":       "rejected",
			"count":        int64(2),
			"exchange":     "events",
			"routing-keys": []any{"k"},
		},
	}
	for _, c := range []struct {
		name       string
		attempts   int // number of earlier attempts
		revision   int
		mirror     bool // true if the rule sets mirror_x_death
		expiration string
		deaths     []any
		detail     string
	}{
		{"as received", 0, 0, false, "", nil, "left out: expiration, header CC"},
		{"the third time", 2, 0, false, "", nil, "left out: expiration, header CC"},
		{"with the deaths that a worker reads", 1, 0, true, "", deaths, "left out: expiration, header CC"},
		{"as edited", 0, 1, false, "5000", nil, "left out: header CC"},
	} {
		synctest.Test(t, func(t *testing.T) {
			received := deadletter.Properties{
				Expiration: "5000",
				Headers:    deadletter.Table{"x-death": []any{}, "CC": []any{"elsewhere"}, "tenant": "acme"},
			}
			d := newDesk(t, &item{attempts: c.attempts, revision: c.revision, properties: received, rule: "rule"})
			d.rules.Rules = []rules.Rule{{Name: "rule", MirrorXDeath: c.mirror}}
			var got deadletter.Publishing
			d.wire.answer = func(p *deadletter.Publishing) answer {
				got = *p
				return answer{kind: deadletter.OutcomeConfirmed}
			}
			if _, err := d.open().dispatcher.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
			i := d.letters[0]
			token := i.tries[0].Token
			want := deadletter.Publishing{
				Token: token,
				Queue: "sms",
				Body:  []byte("letter 1"),
				Properties: deadletter.Properties{
					DeliveryMode: 2, Expiration: c.expiration,
					Headers: deadletter.Table{
						"tenant": "acme", "dlo-id": string(i.id()), "dlo-token": string(token),
						"dlo-attempt": int64(c.attempts + 1),
					},
				},
			}
			if c.deaths != nil {
				want.Properties.Headers["x-death"] = c.deaths
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.name, diff)
			}
			if detail := i.tries[0].Detail; detail != c.detail {
				t.Errorf("%s: the history says %q, want %q", c.name, detail, c.detail)
			}
		})
	}
}
