package view

import "github.com/deadletteroffice/dlo/internal/deadletter"

// AccessPage is the content of the page on which admins manage dlo's own users and the API tokens.
type AccessPage struct {
	Shell       Shell
	Users       []deadletter.User     // by name
	UsersOff    bool                  // auth.users is not set
	Tokens      []deadletter.APIToken // by name
	TokensOff   bool                  // auth.tokens is not set
	Roles       []string
	Secret      *NewSecret // nil: the page makes none
	User, Token AccessForm // what the forms contain
}

// NewSecret is a link or a token that was made for this page. dlo cannot show it again.
type NewSecret struct {
	Link bool // a link with which a user chooses a password; otherwise a token
	Name string
	Text string
}

// AccessForm is the form for a new user or a new token.
type AccessForm struct {
	Name                    string
	Role                    string
	Reveal, Purge           bool
	Queues, VHosts, Brokers string // globs, separated by spaces
	Days                    string // after how many days a token expires; "" = never
	Error                   string // why the form was refused; "" = it was not
}

// tokenDays lists the choices for the number of days after which a new token expires.
var tokenDays = []struct{ value, name string }{
	{"30", "in 30 days"},
	{"90", "in 90 days"},
	{"365", "in a year"},
	{"", "never"},
}

// NewTokenForm is the form for a new token before somebody changes it.
var NewTokenForm = AccessForm{Days: "90"}
