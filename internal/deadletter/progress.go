package deadletter

import (
	"encoding/json"
	"fmt"
	"time"
)

// Progress is how far a store had got at a moment. It is noted beside the store and in each broker
// before letters are sent, so that a store that was restored from a copy finds out that it is older
// than what was noted.
type Progress struct {
	Store    string    `json:"store"`    // its name: no other store has it, each copy does
	Claims   int64     `json:"claims"`   // commits that claimed letters to be sent, since the store was made
	Commits  int64     `json:"commits"`  // all commits
	Received int64     `json:"received"` // letters that were ever stored
	Newest   ID        `json:"newest,omitempty"`
	At       time.Time `json:"at"` // of the last commit
}

// maxProgress is more than any store counts in its life: a million commits a second for a century.
const maxProgress = 1 << 52

// ParseProgress reads what was noted. Errors wrap ErrInvalid.
func ParseProgress(text []byte) (Progress, error) {
	var p Progress
	if err := json.Unmarshal(text, &p); err != nil {
		return Progress{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	for _, n := range []int64{p.Claims, p.Commits, p.Received} {
		if n < 0 || n > maxProgress {
			return Progress{}, fmt.Errorf("%w: %d is not a count of a store", ErrInvalid, n)
		}
	}
	if p.Store == "" || p.At.IsZero() {
		return Progress{}, fmt.Errorf("%w: it names no store, or no moment", ErrInvalid)
	}
	return p, nil
}

// Bytes is what is noted; ParseProgress reads it.
func (p Progress) Bytes() []byte {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // a year beyond 9999 is the only reason, and no clock says it
	}
	return text
}

// Remembered is what a store knows of what it noted, towards one broker.
type Remembered struct {
	Progress       // now
	Marked   int64 // claims that the broker confirmed as noted; -1 = it never did
	Beside   bool  // the note beside the file was there when it was opened, and was as new, or people said since that the file is current
	Unproved bool  // nothing showed that the file is no older copy, and nobody has decided since
}

// Noted is what a broker has confirmed as noted; zero = nothing new.
type Noted struct {
	Broker, VHost string
	Claims        int64
}

// Restore is how a store was found to be a copy, and what is lost.
type Restore struct {
	At      time.Time // it was found
	Since   time.Time // of the last commit that the copy has
	Until   time.Time // of the last one that was noted
	Missing int64     // letters that were received between the two; MissingUnknown where only people say that it is a copy
	Held    int       // letters that are held, as they may have been sent meanwhile
}

// MissingUnknown stands for a number of letters that nothing tells.
const MissingUnknown = -1

// Lost says what a restored store does not have.
func (r *Restore) Lost() string {
	from, to := r.Since.UTC().Format(time.DateTime), r.Until.UTC().Format(time.DateTime)
	if r.Since.UTC().Truncate(24 * time.Hour).Equal(r.Until.UTC().Truncate(24 * time.Hour)) {
		to = r.Until.UTC().Format(time.TimeOnly)
	}
	switch {
	case r.Missing == MissingUnknown:
		return fmt.Sprintf("What was done after %s UTC is not in this copy. Nothing says how much that is.", from)
	case r.Missing == 1:
		return fmt.Sprintf("One letter of %s to %s UTC was received and is not in this copy.", from, to)
	case r.Missing > 1:
		return fmt.Sprintf("Letters of %s to %s UTC: %d were received and are not in this copy.", from, to, r.Missing)
	}
	return fmt.Sprintf("What was done from %s to %s UTC is not in this copy; no letter is missing.", from, to)
}
