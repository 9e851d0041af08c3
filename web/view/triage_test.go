package view

import (
	"slices"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestSectionsCountTheInbox checks that the heading of a severity shows its number of groups on all
// pages of the list. It must show no number if only the groups of the current page are known.
func TestSectionsCountTheInbox(t *testing.T) {
	t.Parallel()
	counts := deadletter.GroupCounts{
		Inbox: 700,
		Severities: map[deadletter.Severity]int{
			deadletter.SeverityPage: 2, deadletter.SeverityNotify: 8, deadletter.SeverityDigest: 650, "": 40,
		},
	}
	for _, c := range []struct {
		name string
		page TriagePage
		want []string // the expected numbers for page, notify and digest
	}{
		{"the first of several pages", TriagePage{Tab: TriageInbox, Next: "x"}, []string{"2", "8", "690"}},
		{"a later page", TriagePage{Tab: TriageInbox, After: "x"}, []string{"2", "8", "690"}},
		{"all on one page", TriagePage{Tab: TriageInbox}, []string{"2", "1", "2"}},
		{"a query on several pages", TriagePage{Tab: TriageInbox, Query: "queue:x", Next: "x"}, []string{"", "", ""}},
		{"those of one person on several pages", TriagePage{Tab: TriageMine, Next: "x"}, []string{"", "", ""}},
	} {
		c.page.Groups, c.page.Rows = counts, sampleTriaged()
		for i, s := range c.page.sections() {
			if s.count != c.want[i] {
				t.Errorf("%s: %s has %q groups, want %q", c.name, s.word, s.count, c.want[i])
			}
		}
	}
}

// TestASnoozeSaysItsDay covers a digest on weekdays. On a Saturday, the next one is on Monday,
// which is not tomorrow and is listed once. On a Wednesday, both tomorrow and Monday are listed.
func TestASnoozeSaysItsDay(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("CET", 3600)
	for now, want := range map[time.Time][]string{
		time.Date(2026, 11, 28, 12, 0, 0, 0, zone): {
			"4 hours, until Sat 28 Nov 16:00 CET", "Mon 30 Nov 08:30 CET", "3 days, until Tue 1 Dec 12:00 CET",
		},
		time.Date(2026, 12, 2, 9, 0, 0, 0, zone): {
			"4 hours, until Wed 2 Dec 13:00 CET", "tomorrow, Thu 3 Dec 08:30 CET", "Mon 7 Dec 08:30 CET",
		},
	} {
		morning := time.Date(2026, 11, 30, 8, 30, 0, 0, zone)
		if now.After(morning) {
			morning = time.Date(2026, 12, 3, 8, 30, 0, 0, zone)
		}
		var got []string
		for _, c := range snoozes(now.UTC(), morning) {
			got = append(got, c.word)
		}
		if !slices.Equal(got[:3], want) {
			t.Errorf("%v, not %v", got[:3], want)
		}
	}
}
