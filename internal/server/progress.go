package server

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const (
	noteEvery   = 10 * time.Second // time between two notes of the store's progress
	restoreSaid = 24 * time.Hour   // minimum time for which a restore is reported
)

// noteProgress writes the progress of the store to a file beside the store. It does so every ten
// seconds, even while dlo sends no letters. If an older copy later replaces the store, dlo can
// notice that decisions and arrivals are missing.
func (s *Server) noteProgress(ctx context.Context) error {
	for {
		if err := s.store.Note(s.store.Progress()); err != nil {
			s.log.Warn("the progress of the store cannot be noted beside it", "err", err)
		}
		select {
		case <-time.After(noteEvery):
		case <-ctx.Done():
			return nil
		}
	}
}

// history is the part of the store that says what has happened to its file, for example that it was
// restored from a copy or is damaged.
type history interface {
	Restore(ctx context.Context) (*deadletter.Restore, error) // returns nil if the store was never restored
	Strangers() []string
	Unnoted() error // returns the error of the last attempt to note the progress; nil = the progress was noted
	Damaged() error // returns nil if no damage was found
}

// storeProblems returns the problems of the store: it is damaged, it is a restored copy, its
// progress cannot be noted, or another store was in its place before.
func (s *Server) storeProblems() []deadletter.Problem {
	ctx, cancel := context.WithTimeout(context.Background(), straysWait)
	defer cancel()
	var list []deadletter.Problem
	if err := s.history.Damaged(); err != nil {
		list = append(list, damagedProblem(err, s.cfg.Store))
	}
	if r, err := s.history.Restore(ctx); err == nil && r != nil && (r.Held > 0 || time.Since(r.At) < restoreSaid) {
		list = append(list, restoredProblem(r))
	}
	if err := s.history.Unnoted(); err != nil {
		list = append(list, deadletter.Problem{
			Kind: deadletter.ProblemNoProgress, Severity: deadletter.SeverityNotify,
			Title: "The progress note beside the store cannot be written.",
			Text:  "Only the marks in the brokers now show whether the store is an older copy; nothing is sent to a broker whose mark cannot be written either. " + deadletter.Visible(err.Error()) + ".",
			Cure:  "Check whether the store's directory is writable and has room.",
		})
	}
	for _, file := range s.history.Strangers() {
		list = append(list, deadletter.Problem{
			Kind: deadletter.ProblemStoreOther, Severity: deadletter.SeverityNotify,
			Title: "Another store was in this place before.",
			Text: "The file " + deadletter.Visible(filepath.Base(file)) +
				" beside the store was written for another store. If this store was not put there on purpose, the letters are in the other one.",
			Cure: "If this store was put there on purpose, remove that file: rm " + strconv.Quote(file),
		})
	}
	return list
}

func damagedProblem(err error, path string) deadletter.Problem {
	return deadletter.Problem{
		Kind: deadletter.ProblemStoreDamaged, Severity: deadletter.SeverityPage,
		Title: "The store is damaged.",
		Text: "Nothing more is written to it, so nothing is taken in or sent, and letters wait in the broker: " +
			err.Error() + ".",
		Cure: "Stop dlo, and keep a copy of " + strconv.Quote(path) +
			" with its -wal file. Then put a backup in its place, or save what can be read: " +
			"sqlite3 " + strconv.Quote(path) +
			" .dump. Find out what damaged it, for example the disk, before you start dlo again.",
	}
}

func restoredProblem(r *deadletter.Restore) deadletter.Problem {
	p := deadletter.Problem{
		Kind: deadletter.ProblemStoreRestored, Severity: deadletter.SeverityNotify, Since: r.At,
		Title: "This store is a copy from an earlier time.",
		Text:  r.Lost(),
		Cure:  "Operations leave out letters that may have been sent since then, unless you include them. Find them with doubt:restored.",
	}
	if r.Held > 0 {
		p.Severity = deadletter.SeverityPage
		p.Text += fmt.Sprintf(
			" Letters that dlo would send automatically, but that may have been sent since then, are held: %d.", r.Held,
		)
		p.Cure = "Find them with doubt:restored. Discard those whose work was done, and requeue the others."
	}
	return p
}
