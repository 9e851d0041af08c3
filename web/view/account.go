package view

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// AccountPage is the content of the account page of the person who is signed in.
type AccountPage struct {
	Shell    Shell
	Grants   []string
	Sessions []AccountSession // nil if the person signed in elsewhere
	Error    string
	ViewAs   *ViewAs // nil if the person may not view pages with other roles
}

// ViewAs is the form with which an admin views the pages as a person with other roles.
type ViewAs struct{ Roles []string }

// AccountSession is a session of a local user.
type AccountSession struct {
	deadletter.Session
	This bool // whether the current request belongs to this session
}

func (s AccountSession) words(now time.Time) string {
	text := "since " + UTC(s.CreatedAt) + ", last used " + Ago(now, s.UsedAt)
	if s.Address != "" {
		text += ", from " + line(s.Address, 45)
	}
	return text
}
