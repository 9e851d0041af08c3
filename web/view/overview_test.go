package view

import (
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestAProblemThatPagesIsTheVerdict checks the first sentence of Overview, the verdict, if there is
// a problem with the severity "page". If letters are failing or need people, the verdict must be
// about them. Otherwise it must be the problem, and the page must not say that nothing needs a
// person.
func TestAProblemThatPagesIsTheVerdict(t *testing.T) {
	t.Parallel()
	problem := deadletter.Problem{
		Title: "100 letters belong to broker main, which is not configured.", Text: "They wait.",
		Cure: "dlo brokers rename main prod", Severity: deadletter.SeverityPage,
	}
	hundred := InRetry{InRetry: deadletter.InRetry{Letters: 100}}
	noticed := problem
	noticed.Severity = deadletter.SeverityDigest
	for name, c := range map[string]struct {
		page OverviewPage
		want string
	}{
		"letters wait": {
			OverviewPage{Shell: Shell{Problems: []deadletter.Problem{noticed, problem}}, InRetry: hundred},
			problem.Title,
		},
		"no letter is there": {OverviewPage{Shell: Shell{Problems: []deadletter.Problem{problem}}}, problem.Title},
		"a problem that is noticed": {
			OverviewPage{Shell: Shell{Problems: []deadletter.Problem{noticed}}, InRetry: hundred},
			"Nothing needs a person yet.",
		},
		"no problem": {OverviewPage{}, "Nothing needs a person."},
		"letters die": {
			OverviewPage{
				Shell:    Shell{Problems: []deadletter.Problem{problem}},
				Dead:     3,
				Standing: deadletter.Standing{Failing: deadletter.InboxShare{Groups: 1, Letters: 3}},
				Worst:    &deadletter.Group{GroupRow: deadletter.GroupRow{Queue: "sms"}},
			},
			"sms is failing.",
		},
		"letters are dead": {
			OverviewPage{
				Shell:    Shell{Problems: []deadletter.Problem{noticed}},
				Dead:     3,
				Standing: deadletter.Standing{Quiet: deadletter.InboxShare{Groups: 1, Letters: 3}},
			},
			"Nothing has failed since ",
		},
		"a broker is away": {
			OverviewPage{Shell: Shell{Brokers: []deadletter.BrokerStatus{{Name: "main"}}}},
			"Nothing that is stored needs a person.",
		},
	} {
		if got := c.page.verdict(); !strings.HasPrefix(got.title, c.want) {
			t.Errorf("%s: %q, want %q", name, got.title, c.want)
		}
	}
}
