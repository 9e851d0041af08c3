package deadletter

import (
	"fmt"
	"time"
)

// Digest is the morning summary: the groups in which letters died in a window of time.
type Digest struct {
	From, To  time.Time    // start and end of the window, in the time zone of the digest
	Groups    int          // groups in which letters died in the window and need people
	Letters   int          // letters of these groups that died in the window and need people
	New       int          // groups first seen in the window
	CameBack  int          // resolved groups that came back
	Recovered int          // letters delivered by retries
	Paged     int          // notices of severity page
	Before    DigestCounts // numbers of the previous window, which is equally long
	Lines     []DigestLine // new and regressed groups first, then by letters, most first
	More      int          // groups not in Lines
	Pauses    []Forgotten  // longest first
}

// Forgotten is a pause of retries that has lasted for a long time and still holds letters back.
type Forgotten struct {
	Guard
	Letters int // letters that the pause holds back
}

// Said describes the pause in one line: which retries are paused, since when, by whom, and how many
// letters wait for the end of the pause.
func (f *Forgotten) Said() string {
	what := "queue " + Visible(f.Origin.Queue)
	if f.Group != 0 {
		what = "group " + f.Group.String() + " of " + what
	}
	return fmt.Sprintf("Retries of %s are paused since %s, by %s; %s", what, f.Since.Format("2 Jan 15:04 MST"), Visible(f.By),
		Plural(f.Letters, "letter waits", "letters wait"))
}

// DigestCounts contains the numbers that are compared between two windows.
type DigestCounts struct{ Groups, Letters, Recovered int }

// DigestLine is one group of a digest.
type DigestLine struct {
	Group      GroupRow
	Letters    int    // letters that died in the window
	Suggestion string // what people last did with letters of the group, with the evidence; "" = nothing
}
