package api

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

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

// Me is the response to GET /me. It says who makes the request.
type Me struct {
	Name   string             `json:"name"`
	Grants []deadletter.Grant `json:"grants"`
}

// Tokens is the response to GET /tokens.
type Tokens struct {
	Tokens []deadletter.APIToken `json:"tokens"`
}

// TokenRequest is the body of POST /tokens.
type TokenRequest struct {
	UserRequest
	ExpiresAt time.Time `json:"expires_at,omitzero"`
}

// NewSecret is the response to POST /tokens. It is the only response that contains the secret.
type NewSecret struct {
	deadletter.APIToken
	Secret string `json:"secret"`
}

// Users is the response to GET /users.
type Users struct {
	Users []deadletter.User `json:"users"`
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
