package deadletter

import (
	"fmt"
	"time"
)

// Digest is the summary for the morning. It contains the groups in which letters died in a period.
type Digest struct {
	From      time.Time    `json:"from"`      // start of the period, in the time zone of the digest
	To        time.Time    `json:"to"`        // end of the period
	Groups    int          `json:"groups"`    // number of groups in which letters died in the period and need people
	Letters   int          `json:"letters"`   // number of letters that died in the period and need people
	New       int          `json:"new"`       // number of groups that were first seen in the period
	CameBack  int          `json:"came_back"` // number of resolved groups that came back
	Recovered int          `json:"recovered"` // number of letters that retries delivered
	Paged     int          `json:"paged"`     // number of notices with severity page
	Before    DigestCounts `json:"before"`    // numbers of the period before, which is equally long
	// lines about groups: first those that came back or grow, then new groups; among these, most
	// letters first
	Lines  []DigestLine `json:"lines"`
	More   int          `json:"more"`   // number of groups that are not in Lines
	Pauses []Forgotten  `json:"pauses"` // pauses of retries that have lasted long, longest first
}

// Forgotten is a pause of retries that has lasted long and still holds letters back.
type Forgotten struct {
	Guard
	Letters int `json:"letters"` // number of letters that the pause holds back
}

// Said describes the pause in one line: which retries are paused, since when, by whom, and how many
// letters wait.
func (f *Forgotten) Said() string {
	what := "queue " + Visible(f.Origin.Queue)
	if f.Group != 0 {
		what = "group " + f.Group.String() + " of " + what
	}
	return fmt.Sprintf(
		"Retries of %s are paused since %s, by %s; %s", what, f.Since.Format("2 Jan 15:04 MST"), Visible(f.By),
		Plural(f.Letters, "letter waits", "letters wait"),
	)
}

// DigestCounts contains the numbers of one period for a digest. The digest compares them with the
// numbers of the period before.
type DigestCounts struct {
	Groups    int `json:"groups"`
	Letters   int `json:"letters"`
	Recovered int `json:"recovered"`
}

// DigestLine is the line of a digest about one group.
type DigestLine struct {
	Group   GroupRow `json:"group"`
	Letters int      `json:"letters"` // number of letters of the group that died in the period
	// what people last did with letters of the group, and with what result; absent = nothing
	Suggestion string `json:"suggestion,omitzero"`
}
