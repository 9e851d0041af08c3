package view

import (
	"net/url"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// AccessPage is the content of the page on which admins manage dlo's own users and the API tokens.
type AccessPage struct {
	Shell     Shell
	Users     []deadletter.User     // by name
	UsersOff  bool                  // auth.users is not set
	Tokens    []deadletter.APIToken // by name
	TokensOff bool                  // auth.tokens is not set
	Roles     []string
	Secret    *NewSecret // nil: the page makes none
	// what the forms contain, and why one was refused; the keys are "user" and "token"
	Forms    map[string]url.Values
	Mistakes map[string]string
}

// NewSecret is a link or a token that was made for this page. dlo cannot show it again.
type NewSecret struct {
	Link bool // a link with which a user chooses a password; otherwise a token
	Name string
	Text string
}

// tokenDays lists the choices for the number of days after which a new token expires.
var tokenDays = []struct{ value, name string }{
	{"30", "in 30 days"},
	{"90", "in 90 days"},
	{"365", "in a year"},
	{"", "never"},
}
