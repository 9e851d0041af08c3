package requeue_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/requeue"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// end is the expected state of a letter after the test.
type end struct {
	State    deadletter.State
	In       time.Duration // time until the letter is due, is sent again, or is no longer watched
	Attempts int           // number of attempts that are used
	Nacks    int
}

// TestWhatAnAnswerDoes checks what the response of a broker does to a letter. The effect must be
// the one in the table in docs/reliability.md.
func TestWhatAnAnswerDoes(t *testing.T) {
	t.Parallel()
	const first, second, most = 10 * time.Second, 20 * time.Second, time.Minute // delays of the back-off
	for _, c := range []struct {
		name   string
		rule   rules.Rule
		hold   bool // true if letters in doubt are held
		nacks  int  // number of earlier rejections
		doubt  bool // true if an earlier copy is in doubt
		answer deadletter.OutcomeKind
		mark   deadletter.Mark
		end    end
	}{
		{
			name:   "confirmed",
			answer: deadletter.OutcomeConfirmed,
			mark:   deadletter.Mark{Outcome: deadletter.OutcomeConfirmed},
			end:    end{deadletter.StateRequeued, time.Hour, 1, 0},
		},
		{
			name:   "confirmed, and its rule watches longer",
			rule:   rules.Rule{Watch: 2 * time.Hour},
			answer: deadletter.OutcomeConfirmed,
			mark:   deadletter.Mark{Outcome: deadletter.OutcomeConfirmed},
			end:    end{deadletter.StateRequeued, 2 * time.Hour, 1, 0},
		},
		{
			name:   "confirmed after refusals",
			nacks:  2,
			answer: deadletter.OutcomeConfirmed,
			mark:   deadletter.Mark{Outcome: deadletter.OutcomeConfirmed},
			end:    end{deadletter.StateRequeued, time.Hour, 1, 0},
		},
		{
			name:   "returned",
			answer: deadletter.OutcomeReturned,
			mark: deadletter.Mark{
				Outcome: deadletter.OutcomeReturned,
				Detail:  "no target: queue sms does not exist (the broker returned it: 312 NO_ROUTE)",
			},
			end: end{State: deadletter.StateHeld},
		},
		{
			name:   "nacked",
			answer: deadletter.OutcomeNacked,
			mark:   deadletter.Mark{Outcome: deadletter.OutcomeNacked, Detail: "the queue refused it"},
			end:    end{deadletter.StateScheduled, first, 0, 1},
		},
		{
			name:   "nacked again",
			nacks:  1,
			answer: deadletter.OutcomeNacked,
			mark:   deadletter.Mark{Outcome: deadletter.OutcomeNacked, Detail: "the queue refused it"},
			end:    end{deadletter.StateScheduled, second, 0, 2},
		},
		{
			name:   "nacked many times",
			nacks:  30,
			answer: deadletter.OutcomeNacked,
			mark:   deadletter.Mark{Outcome: deadletter.OutcomeNacked, Detail: "the queue refused it"},
			end:    end{deadletter.StateScheduled, most, 0, 31},
		},
		{
			name:   "refused",
			answer: deadletter.OutcomeRefused,
			mark:   deadletter.Mark{Outcome: deadletter.OutcomeRefused, Detail: "the broker closed the channel: 406"},
			end:    end{State: deadletter.StateHeld},
		},
		{
			name:   "unsent",
			nacks:  1,
			answer: deadletter.OutcomeUnsent,
			mark:   deadletter.Mark{Outcome: deadletter.OutcomeUnsent, Detail: "the broker is not connected"},
			end:    end{deadletter.StateScheduled, time.Second, 0, 1},
		},
		{
			name:   "in doubt",
			answer: deadletter.OutcomeInDoubt,
			mark:   deadletter.Mark{Outcome: deadletter.OutcomeInDoubt, Detail: "no answer", Resend: true},
			end:    end{deadletter.StatePublishing, first, 0, 0},
		},
		{
			name:   "in doubt, which is held",
			hold:   true,
			answer: deadletter.OutcomeInDoubt,
			mark: deadletter.Mark{
				Outcome: deadletter.OutcomeInDoubt,
				Detail:  "in doubt: no answer; requeue it only if a second arrival does no harm",
			},
			end: end{State: deadletter.StateHeld},
		},
		{
			name:   "in doubt, which its rule holds",
			rule:   rules.Rule{InDoubt: "hold"},
			answer: deadletter.OutcomeInDoubt,
			mark: deadletter.Mark{
				Outcome: deadletter.OutcomeInDoubt,
				Detail:  "in doubt: no answer; requeue it only if a second arrival does no harm",
			},
			end: end{State: deadletter.StateHeld},
		},
		{
			name:   "in doubt, which its rule sends again",
			rule:   rules.Rule{InDoubt: "republish"},
			hold:   true,
			answer: deadletter.OutcomeInDoubt,
			mark:   deadletter.Mark{Outcome: deadletter.OutcomeInDoubt, Detail: "no answer", Resend: true},
			end:    end{deadletter.StatePublishing, first, 0, 0},
		},
		{
			name:   "a copy of what is in doubt is confirmed",
			doubt:  true,
			answer: deadletter.OutcomeConfirmed,
			mark:   deadletter.Mark{Outcome: deadletter.OutcomeConfirmed},
			end:    end{deadletter.StateRequeued, time.Hour, 1, 0},
		},
		{
			name:   "a copy of what is in doubt is in doubt",
			doubt:  true,
			answer: deadletter.OutcomeInDoubt,
			mark:   deadletter.Mark{Outcome: deadletter.OutcomeInDoubt, Detail: "no answer", Resend: true},
			end:    end{deadletter.StatePublishing, second, 0, 0},
		},
		{
			name:   "a copy of what is in doubt is nacked",
			doubt:  true,
			answer: deadletter.OutcomeNacked,
			mark:   deadletter.Mark{Outcome: deadletter.OutcomeInDoubt, Detail: "the queue refused it", Resend: true},
			end:    end{deadletter.StatePublishing, second, 0, 0},
		},
		{
			name:   "a copy of what is in doubt is unsent",
			doubt:  true,
			answer: deadletter.OutcomeUnsent,
			mark: deadletter.Mark{
				Outcome: deadletter.OutcomeInDoubt, Detail: "the broker is not connected", Resend: true,
			},
			end: end{deadletter.StatePublishing, time.Second, 0, 0},
		},
		{
			name:   "a copy of what is in doubt is returned",
			doubt:  true,
			answer: deadletter.OutcomeReturned,
			mark: deadletter.Mark{
				Outcome: deadletter.OutcomeReturned,
				Detail:  "no target: queue sms does not exist (the broker returned it: 312 NO_ROUTE)",
			},
			end: end{State: deadletter.StateHeld},
		},
		{
			name:   "what is in doubt is held instead of sent again",
			doubt:  true,
			hold:   true,
			answer: "none",
			mark: deadletter.Mark{
				Outcome: deadletter.OutcomeInDoubt,
				Detail:  "in doubt: it was sent, or was about to be, when the answer was lost; requeue it only if a second arrival does no harm",
			},
			end: end{State: deadletter.StateHeld},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				i := &item{nacks: c.nacks, rule: "rule"}
				d := newDesk(t, i)
				d.options.Nack.First, d.options.Nack.Max = first, most
				c.rule.Name, c.rule.Notify = "rule", []string{"oncall"}
				d.rules.Rules = []rules.Rule{c.rule}
				if c.doubt {
					d.leaveInDoubt()
				}
				if c.hold {
					d.options.InDoubt = requeue.Hold
				}
				asked := deadletter.OutcomeKind("none")
				d.wire.answer = func(*deadletter.Publishing) answer {
					asked = c.answer
					return answer{kind: c.answer}
				}
				n, err := d.open().dispatcher.Step(t.Context())
				if n != 1 || err != nil || asked != c.answer {
					t.Fatalf("%d letters, %v; the broker answered %s", n, err, asked)
				}
				m := d.shelf().marks[0]
				c.mark.Channels = []string{"oncall"}
				if diff := cmp.Diff(c.mark, m, cmpopts.IgnoreFields(m, "Letter", "Token", "DueAt")); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				got := end{State: i.state, Attempts: i.attempts, Nacks: i.nacks}
				switch i.state {
				case deadletter.StateScheduled, deadletter.StateRequeued:
					got.In = time.Until(i.due)
				case deadletter.StatePublishing:
					got.In = time.Until(i.again)
				}
				if got != c.end {
					t.Errorf("the letter is %+v, want %+v", got, c.end)
				}
			})
		})
	}
}
