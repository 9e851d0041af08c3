package api

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Grant is a role, together with the places where it applies.
type Grant struct {
	Role    string   `json:"role"`
	Reveal  bool     `json:"reveal"`
	Purge   bool     `json:"purge"`
	Queues  []string `json:"queues"` // globs; empty = all queues
	VHosts  []string `json:"vhosts"`
	Brokers []string `json:"brokers"`

	// FromRabbitMQ means that RabbitMQ limits the grant further. The grant then applies only to
	// queues to which the person may write in RabbitMQ.
	FromRabbitMQ bool `json:"from_rabbitmq"`
}

// NewGrant converts a grant to the JSON form of the API.
func NewGrant(g deadletter.Grant) Grant {
	return Grant{
		Role:         g.Role.String(),
		Reveal:       g.Reveal,
		Purge:        g.Purge,
		Queues:       texts(g.Queues),
		VHosts:       texts(g.VHosts),
		Brokers:      texts(g.Brokers),
		FromRabbitMQ: g.FromRabbitMQ,
	}
}

// GrantRequest is the part of a request that gives the rights of a new user or token.
type GrantRequest struct {
	Role    string   `json:"role"`
	Reveal  bool     `json:"reveal,omitzero"`
	Purge   bool     `json:"purge,omitzero"`
	Queues  []string `json:"queues,omitzero"` // globs; empty = all queues
	VHosts  []string `json:"vhosts,omitzero"`
	Brokers []string `json:"brokers,omitzero"`
}

// Grant converts the request to a deadletter.Grant. The error wraps deadletter.ErrInvalid.
func (g GrantRequest) Grant() (deadletter.Grant, error) {
	return deadletter.NewGrant(g.Role, g.Reveal, g.Purge, deadletter.Places{
		Queues:  g.Queues,
		VHosts:  g.VHosts,
		Brokers: g.Brokers,
	})
}

// texts returns a copy of a list. If the list is empty, its JSON is [] and not null.
func texts(list []string) []string { return append([]string{}, list...) }

// Me is the response to GET /me. It says who makes the request.
type Me struct {
	Name   string  `json:"name"`
	Grants []Grant `json:"grants"`
}

// Token is a token of the API without its secret. The response to GET /tokens contains it.
type Token struct {
	Name      string    `json:"name"`
	Grant     Grant     `json:"grant"`
	CreatedAt time.Time `json:"created_at"`
	CreatedBy string    `json:"created_by"`
	ExpiresAt time.Time `json:"expires_at,omitzero"` // absent = never
	UsedAt    time.Time `json:"used_at,omitzero"`    // absent = never
	UsedFrom  string    `json:"used_from,omitzero"`  // the address from which the token was used last; absent = unknown
}

// NewToken converts a token to the JSON form of the API.
func NewToken(t deadletter.APIToken) Token {
	return Token{
		Name:      t.Name,
		Grant:     NewGrant(t.Grant),
		CreatedAt: t.CreatedAt,
		CreatedBy: t.CreatedBy,
		ExpiresAt: t.ExpiresAt,
		UsedAt:    t.UsedAt,
		UsedFrom:  t.UsedFrom,
	}
}

// Tokens is the response to GET /tokens.
type Tokens struct {
	Tokens []Token `json:"tokens"`
}

// TokenRequest is the body of POST /tokens.
type TokenRequest struct {
	Name string `json:"name"`
	GrantRequest
	ExpiresAt time.Time `json:"expires_at,omitzero"`
}

// NewSecret is the response to POST /tokens. It is the only response that contains the secret.
type NewSecret struct {
	Token
	Secret string `json:"secret"`
}

// User is a local user. The response to GET /users contains it.
type User struct {
	Name       string    `json:"name"`
	Grant      Grant     `json:"grant"`
	CreatedAt  time.Time `json:"created_at"`
	CreatedBy  string    `json:"created_by"`
	SignedInAt time.Time `json:"signed_in_at,omitzero"` // absent = never
	Invited    bool      `json:"invited"`               // the user has not chosen a password yet
}

// NewUser converts a user to the JSON form of the API.
func NewUser(u deadletter.User) User {
	return User{
		Name:       u.Name,
		Grant:      NewGrant(u.Grant),
		CreatedAt:  u.CreatedAt,
		CreatedBy:  u.CreatedBy,
		SignedInAt: u.SignedInAt,
		Invited:    u.Invited,
	}
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

// Invitation is the response to POST /users and POST /users/{name}/reset. It is the only response
// that contains the link.
type Invitation struct {
	Name string `json:"name"`
	Link string `json:"link"` // the URL at which the user can choose a password once
}
