package deadletter

import "time"

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
}

// DigestCounts is what one window is compared with another by.
type DigestCounts struct{ Groups, Letters, Recovered int }

// DigestLine is one group of a digest.
type DigestLine struct {
	Group      GroupRow
	Letters    int    // that died in the window
	Suggestion string // what was done with it before, with the evidence; "" = nothing
}
