package view

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// AccountPage is the content of the account page of the person who is signed in.
type AccountPage struct {
	Shell    Shell
	Grants   []string
	Sessions []AccountSession // none: the person signed in elsewhere
	Error    string
	ViewAs   *ViewAs // nil: the person may not view pages under another grant
}

// ViewAs is the form with which an admin views the pages under another grant.
type ViewAs struct{ Roles []string }

// AccountSession is a session of a local user.
type AccountSession struct {
	deadletter.Session
	This bool // the session is the one of the request
}

func (s AccountSession) words(now time.Time) string {
	text := "since " + UTC(s.CreatedAt) + ", last used " + Ago(now, s.UsedAt)
	if s.Address != "" {
		text += ", from " + line(s.Address, 45)
	}
	return text
}
