package view

import (
	"testing"

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
