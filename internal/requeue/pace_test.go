package requeue_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deadletteroffice/dlo/internal/rules"
)

// TestTheRateOfAQueue checks that automatic retries leave a queue at its rate. A burst must have at
// most the letters of a fifth of a second, even after a time without letters. A rule may have its
// own rate. The rate must not hold back letters that people requeue, or letters in doubt.
func TestTheRateOfAQueue(t *testing.T) {
	t.Parallel()
	ten := 10.0
	for _, c := range []struct {
		name    string
		rate    float64
		rule    *float64 // rate of the rule to which every other letter belongs
		people  int      // people requeue one of every n letters; 0 = none
		doubted bool
		sent    string // number of letters sent immediately, after 0.1 s, after 1 s and after 10 s
	}{
		{"ten a second", 10, nil, 0, false, "2 1 2 2"},
		{"one in two seconds", 0.5, nil, 0, false, "1 0 0 1"},
		{"no limit", 0, nil, 0, false, "40 0 0 0"},
		{"no limit, and a rule with ten a second", 0, &ten, 0, false, "22 1 2 2"},
		{"ten a second, and a rule with as many", 10, &ten, 0, false, "4 2 4 4"},
		{"requeued by people", 10, nil, 1, false, "40 0 0 0"},
		{"beside what people requeue", 10, nil, 2, false, "22 1 2 2"},
		{"in doubt", 10, nil, 0, true, "40 0 0 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t, letters(40)...)
				d.options.InFlight = 80
				if c.doubted {
					d.leaveInDoubt()
				}
				d.options.Rate = c.rate
				d.rules.Rules = []rules.Rule{{Name: "rule", Rate: c.rule}}
				for n, i := range d.letters {
					if n%2 == 0 {
						i.rule = "rule"
					}
					if c.people > 0 && n%c.people == 0 {
						i.operation = 7
					}
				}
				p := d.open()
				var sent []string
				for _, pause := range []time.Duration{0, 100 * time.Millisecond, time.Second, 10 * time.Second} {
					time.Sleep(pause)
					total := 0
					for more := true; more; {
						n, err := p.dispatcher.Step(t.Context())
						if err != nil {
							t.Fatal(err)
						}
						total += n
						more = n > 0
					}
					sent = append(sent, fmt.Sprint(total))
				}
				if got := strings.Join(sent, " "); got != c.sent {
					t.Errorf("sent %s, want %s", got, c.sent)
				}
			})
		})
	}
}
