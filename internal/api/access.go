package api

import (
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Grant is a role with the places where it applies.
type Grant struct {
	Role    string   `json:"role"`
	Reveal  bool     `json:"reveal"`
	Purge   bool     `json:"purge"`
	Queues  []string `json:"queues"` // globs; empty = all
	VHosts  []string `json:"vhosts"`
	Brokers []string `json:"brokers"`

	// FromRabbitMQ limits the grant further, to the queues that the person may write to in RabbitMQ.
	FromRabbitMQ bool `json:"from_rabbitmq"`
}

// NewGrant returns a grant of the domain as JSON.
func NewGrant(g deadletter.Grant) Grant {
	return Grant{Role: g.Role.String(), Reveal: g.Reveal, Purge: g.Purge, Queues: texts(g.Queues), VHosts: texts(g.VHosts), Brokers: texts(g.Brokers), FromRabbitMQ: g.FromRabbitMQ}
}

// GrantRequest is the part of a request that sets the rights of a new user or token.
type GrantRequest struct {
	Role    string   `json:"role"`
	Reveal  bool     `json:"reveal,omitempty"`
	Purge   bool     `json:"purge,omitempty"`
	Queues  []string `json:"queues,omitempty"` // globs; empty = all
	VHosts  []string `json:"vhosts,omitempty"`
	Brokers []string `json:"brokers,omitempty"`
}

// Grant returns the grant in the domain. The error wraps deadletter.ErrInvalid.
func (g GrantRequest) Grant() (deadletter.Grant, error) {
	return deadletter.NewGrant(g.Role, g.Reveal, g.Purge, deadletter.Places{Queues: g.Queues, VHosts: g.VHosts, Brokers: g.Brokers})
}

// texts returns a list that is [] in JSON if it is empty.
func texts(list []string) []string { return append([]string{}, list...) }

// Me is the response to GET /me. It says who makes the request.
type Me struct {
	Name   string  `json:"name"`
	Grants []Grant `json:"grants"`
}

// Token is a token of the API without its secret. The response to GET /tokens contains it.
type Token struct {
	Name      string `json:"name"`
	Grant     Grant  `json:"grant"`
	CreatedAt Time   `json:"created_at"`
	CreatedBy string `json:"created_by"`
	ExpiresAt Time   `json:"expires_at,omitzero"` // absent = never
	UsedAt    Time   `json:"used_at,omitzero"`    // absent = never
	UsedFrom  string `json:"used_from,omitempty"` // the address of that use; absent = not known
}

// NewToken returns a token of the domain as JSON.
func NewToken(t deadletter.APIToken) Token {
	return Token{Name: t.Name, Grant: NewGrant(t.Grant), CreatedAt: At(t.CreatedAt), CreatedBy: t.CreatedBy, ExpiresAt: At(t.ExpiresAt), UsedAt: At(t.UsedAt), UsedFrom: t.UsedFrom}
}

// Tokens is the response to GET /tokens.
type Tokens struct {
	Tokens []Token `json:"tokens"`
}

// TokenRequest is the body of POST /tokens.
type TokenRequest struct {
	Name string `json:"name"`
	GrantRequest
	ExpiresAt Time `json:"expires_at,omitzero"`
}

// NewSecret is the response to POST /tokens. The secret is not shown again.
type NewSecret struct {
	Token
	Secret string `json:"secret"`
}

// User is a local user. The response to GET /users contains it.
type User struct {
	Name       string `json:"name"`
	Grant      Grant  `json:"grant"`
	CreatedAt  Time   `json:"created_at"`
	CreatedBy  string `json:"created_by"`
	SignedInAt Time   `json:"signed_in_at,omitzero"` // absent = never
	Invited    bool   `json:"invited"`               // the user has not chosen a password yet
}

// NewUser returns a user of the domain as JSON.
func NewUser(u deadletter.User) User {
	return User{Name: u.Name, Grant: NewGrant(u.Grant), CreatedAt: At(u.CreatedAt), CreatedBy: u.CreatedBy, SignedInAt: At(u.SignedInAt), Invited: u.Invited}
}

// Users is the response to GET /users.
type Users struct {
	Users []User `json:"users"`
}

// UserRequest is the body of POST /users.
type UserRequest struct {
	Name string `json:"name"`
	GrantRequest
}

// Invitation is the response to POST /users and POST /users/{name}/reset. The link is not shown
// again.
type Invitation struct {
	Name string `json:"name"`
	Link string `json:"link"` // where the user can choose a password once
}
