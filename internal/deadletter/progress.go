package deadletter

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Progress says how far a store had got at some moment. Before dlo sends letters, it writes the
// progress to a note next to the store's file and to each broker. A store that was restored from a
// copy can then detect that it is older than the recorded progress.
type Progress struct {
	Store string `json:"store"` // name of the store, which only its copies have too
	// number of transactions that claimed letters in order to send them, since the store was
	// created
	Claims   int64     `json:"claims"`
	Commits  int64     `json:"commits"`  // number of all commits
	Received int64     `json:"received"` // number of letters that were ever stored
	Newest   ID        `json:"newest,omitempty"`
	At       time.Time `json:"at"` // time of the last commit
}

// StoreTwice is the error of a dlo that may not send letters from its store, because another dlo
// works with the same store or with a copy of it. The text is one or more sentences about the
// other.
type StoreTwice string

func (s StoreTwice) Error() string {
	return "another dlo works with this store or a copy of it. " + string(s)
}

// ErrUnguarded means that the broker cannot keep a second dlo from sending letters from a copy of
// the same store.
var ErrUnguarded = errors.New("the broker keeps no lock of this store")

// maxProgress is more than any store can count: a million commits per second for a century.
const maxProgress = 1 << 52

// ParseProgress parses the JSON text of a Progress, as Bytes returns it. Errors wrap ErrInvalid.
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

// Bytes returns the progress as JSON text, which dlo stores in its notes. ParseProgress parses it.
func (p Progress) Bytes() []byte {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // this happens only for a year after 9999, which no clock shows
	}
	return text
}

// Remembered contains the present progress of the store. It also says how much of this progress a
// broker has confirmed, and whether the store's file may be an older copy.
type Remembered struct {
	Progress        // present progress of the store
	Lock     string // name of the lock for this broker, which a renamed broker keeps
	Marked   int64  // value of Claims in the last note that the broker confirmed; -1 = none yet
	// when the store was opened, the note beside the file was as new as the file, or a person has
	// declared the file current since then
	Beside   bool
	Unproved bool // there is no proof that the file is not an older copy, and nobody has decided about it yet
}

// Noted says how much of the store's progress a broker has now confirmed. The zero value means that
// the broker has confirmed nothing new.
type Noted struct {
	Broker, VHost string
	Claims        int64
}

// Restore describes what was lost when a store turned out to be a copy.
type Restore struct {
	At    time.Time // time at which this was found
	Since time.Time // time of the copy's last commit
	Until time.Time // time of the last noted commit
	// number of letters received between Since and Until; MissingUnknown if only a person's
	// declaration makes the store a copy
	Missing int64
	Held    int // number of letters that are held because they may have been sent after Since
}

// MissingUnknown means that the number of missing letters cannot be known.
const MissingUnknown = -1

// Lost returns a sentence that says what the store does not contain after it was restored from a
// copy.
func (r *Restore) Lost() string {
	from, to := r.Since.UTC().Format(time.DateTime), r.Until.UTC().Format(time.DateTime)
	if r.Since.UTC().Truncate(24 * time.Hour).Equal(r.Until.UTC().Truncate(24 * time.Hour)) {
		to = r.Until.UTC().Format(time.TimeOnly)
	}
	switch {
	case r.Missing == MissingUnknown:
		return fmt.Sprintf(
			"This copy lacks everything that was done after %s UTC. It is unknown how much that is.", from,
		)
	case r.Missing == 1:
		return fmt.Sprintf("One letter that was received between %s and %s UTC is not in this copy.", from, to)
	case r.Missing > 1:
		return fmt.Sprintf(
			"Between %s and %s UTC, %d letters were received that are not in this copy.", from, to, r.Missing,
		)
	}
	return fmt.Sprintf("This copy lacks everything that was done from %s to %s UTC; no letter is missing.", from, to)
}
