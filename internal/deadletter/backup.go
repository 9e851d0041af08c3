package deadletter

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Backup is the manifest of a backup. It is stored as JSON beside the file of the backup, under the
// same name with the suffix .json.
type Backup struct {
	File     string        `json:"file"`    // the name of the file, without its folder
	At       time.Time     `json:"at"`      // when the copy began; without a manifest, its last commit
	Version  string        `json:"version"` // version of the dlo that made the backup
	Schema   int64         `json:"schema"`  // version of the schema
	Store    string        `json:"store"`   // the first 8 characters of the name of the store
	Newest   ID            `json:"newest_letter,omitempty"`
	Received int64         `json:"received"` // number of letters that the store has ever received
	Letters  map[State]int `json:"letters"`
	Bytes    int64         `json:"bytes"`
	SHA256   string        `json:"sha256"` // of the file, in hexadecimal
	Compared int           `json:"compared"`
	// of the letters whose checksum was compared, those whose contents differ from it; they were
	// damaged in the store already
	Damaged   int        `json:"damaged,omitempty"`
	Rehearsed *Rehearsal `json:"rehearsed,omitempty"` // the newest rehearsal; nil = there was none
}

// Rehearsal is the result of a rehearsal: a backup was opened and read as a start after a restore
// would read it.
type Rehearsal struct {
	At      time.Time `json:"at"`
	Letters int       `json:"letters"` // number of letters that were counted
	Read    int       `json:"read"`    // number of letters whose contents were read and decoded
	Errors  int       `json:"errors"`  // number of letters that are damaged or whose body can no longer be decoded
	Problem string    `json:"problem,omitempty"`
}

// Total returns the number of letters in a backup.
func (b Backup) Total() (n int) {
	for _, count := range b.Letters {
		n += count
	}
	return n
}

// AfterRestore says what dlo holds when it starts on the store of a backup.
func (b Backup) AfterRestore() string {
	var waiting []string
	for _, s := range []State{StateScheduled, StatePublishing, StateRequeued} {
		if n := b.Letters[s]; n > 0 {
			waiting = append(waiting, fmt.Sprintf("%d %s", n, s))
		}
	}
	if len(waiting) == 0 {
		waiting = []string{"none in this backup"}
	}
	return fmt.Sprintf(
		"Letters that arrived after %s UTC are not in it. At its start, dlo compares the store with its notes in the brokers "+
			"and beside the store. If letters were sent since then, it holds those that it would send or watch (%s), stops "+
			"operations that send letters, and marks dead letters doubt:restored. It sends none of them automatically.",
		b.At.UTC().Format(time.DateTime), strings.Join(waiting, ", "),
	)
}

// SyncFolder makes the name of a new or renamed file durable. It syncs the folder of the file.
func SyncFolder(path string) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
