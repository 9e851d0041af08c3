package deadletter

import (
	"fmt"
	"time"
)

// Digest is what a morning should know: the groups in which letters died in a window of time.
type Digest struct {
	From, To  time.Time    // of the window, in the zone of the digest
	Groups    int          // with letters that died in the window and need people
	Letters   int          // of these
	New       int          // groups that were not there before
	CameBack  int          // groups that came back after they were resolved
	Recovered int          // letters that retries brought through
	Paged     int          // notices of severity page
	Before    DigestCounts // the window before, of the same length
	Lines     []DigestLine // new and come back ones first, then most letters first
	More      int          // groups that are not in Lines
	Pauses    []Forgotten  // the longest first
}

// Forgotten is a pause of retries that has lasted for long, and keeps letters back.
type Forgotten struct {
	Guard
	Letters int // that wait
}

// Said says in a line what is paused, since when, by whom, and how many letters wait for its end.
func (f *Forgotten) Said() string {
	what := "queue " + Visible(f.Origin.Queue)
	if f.Group != 0 {
		what = "group " + f.Group.String() + " of " + what
	}
	return fmt.Sprintf("Retries of %s are paused since %s, by %s; %s", what, f.Since.Format("2 Jan 15:04 MST"), Visible(f.By),
		Plural(f.Letters, "letter waits", "letters wait"))
}

// DigestCounts is what one window is compared with another by.
type DigestCounts struct{ Groups, Letters, Recovered int }

// DigestLine is one group of a digest.
type DigestLine struct {
	Group      GroupRow
	Letters    int    // that died in the window
	Suggestion string // what was done with it before, with the evidence; "" = nothing
}
