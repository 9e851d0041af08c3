package deadletter

import (
	"encoding/json"
	"fmt"
	"time"
)

// Progress is the point that a store had reached at some moment. Before dlo sends letters, it notes
// the progress beside the store and in each broker. A store that was restored from a copy can then
// detect that it is older than the noted progress.
type Progress struct {
	Store    string    `json:"store"`    // its name: unique to the store, but shared by its copies
	Claims   int64     `json:"claims"`   // transactions since the store's creation that claimed letters to send
	Commits  int64     `json:"commits"`  // all commits
	Received int64     `json:"received"` // letters ever stored
	Newest   ID        `json:"newest,omitempty"`
	At       time.Time `json:"at"` // time of the last commit
}

// maxProgress is more than any store counts in its lifetime: a million commits per second for a
// century.
const maxProgress = 1 << 52

// ParseProgress parses noted progress. Errors wrap ErrInvalid.
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

// Bytes returns the noted form of the progress, which ParseProgress reads.
func (p Progress) Bytes() []byte {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // fails only for a year beyond 9999, which no clock returns
	}
	return text
}

// Remembered is what the store knows about the progress that it noted at one broker.
type Remembered struct {
	Progress       // progress of the store now
	Marked   int64 // value of Claims that the broker last confirmed as noted; -1 = none yet
	Beside   bool  // on opening, the note beside the file was as new, or people have since declared the file current
	Unproved bool  // nothing proved that the file is not an older copy, and nobody has decided since
}

// Noted is progress that a broker has confirmed. A zero value means that the broker confirmed
// nothing new.
type Noted struct {
	Broker, VHost string
	Claims        int64
}

// Restore describes what was lost when a store was found to be a copy.
type Restore struct {
	At      time.Time // when it was found
	Since   time.Time // time of the copy's last commit
	Until   time.Time // time of the last noted commit
	Missing int64     // letters received between Since and Until; MissingUnknown if the store is a copy only because people declared it so
	Held    int       // letters that are held because they may have been sent since
}

// MissingUnknown marks a number of missing letters that cannot be known.
const MissingUnknown = -1

// Lost describes in words the data that a restored store lacks.
func (r *Restore) Lost() string {
	from, to := r.Since.UTC().Format(time.DateTime), r.Until.UTC().Format(time.DateTime)
	if r.Since.UTC().Truncate(24 * time.Hour).Equal(r.Until.UTC().Truncate(24 * time.Hour)) {
		to = r.Until.UTC().Format(time.TimeOnly)
	}
	switch {
	case r.Missing == MissingUnknown:
		return fmt.Sprintf("This copy lacks everything that was done after %s UTC. It is unknown how much that is.", from)
	case r.Missing == 1:
		return fmt.Sprintf("One letter that was received between %s and %s UTC is not in this copy.", from, to)
	case r.Missing > 1:
		return fmt.Sprintf("Between %s and %s UTC, %d letters were received that are not in this copy.", from, to, r.Missing)
	}
	return fmt.Sprintf("This copy lacks everything that was done from %s to %s UTC; no letter is missing.", from, to)
}
