package view

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// AccountPage is the content of the account page of the person who is signed in.
type AccountPage struct {
	Shell    Shell
	Grants   []string
	Sessions []deadletter.Session // nil if the person signed in elsewhere
	This     [32]byte             // the hash of the session to which the current request belongs
	Error    string
	// the roles with which the person may view pages; nil if the person may not
	ViewAs []string
}

// sessionWords describes a session of a local user.
func sessionWords(s deadletter.Session, now time.Time) string {
	text := "since " + UTC(s.CreatedAt) + ", last used " + Ago(now, s.UsedAt)
	if s.Address != "" {
		text += ", from " + line(s.Address, 45)
	}
	return text
}
