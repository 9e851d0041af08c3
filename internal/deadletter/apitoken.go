package deadletter

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"time"
)

// APIToken is an API token, without its secret.
type APIToken struct {
	ID        int64     `json:"-"`
	Name      string    `json:"name"` // unique name; the audit shows it as token:NAME
	Grant     Grant     `json:"grant"`
	CreatedAt time.Time `json:"created_at"`
	CreatedBy string    `json:"created_by"`
	ExpiresAt time.Time `json:"expires_at,omitzero"` // absent = never
	// time of the last use, which may be up to a minute too early; absent = never used
	UsedAt   time.Time `json:"used_at,omitzero"`
	UsedFrom string    `json:"used_from,omitzero"` // address from which the token was last used; absent = unknown
}

// TokenPrefix is the beginning of every API token. Programs that search source code for secrets
// recognise a token by it.
const TokenPrefix = "dlo_"

// TokenName is the prefix of the name of a principal. It shows that the principal is an API token.
const TokenName = "token:"

// NewSecret returns a new secret for an API token. It consists of TokenPrefix and 256 random bits
// in base64url.
func NewSecret() string {
	var bits [32]byte
	_, _ = rand.Read(bits[:]) // crypto/rand never returns an error here
	return TokenPrefix + base64.RawURLEncoding.EncodeToString(bits[:])
}

// SecretHash returns the hash that the store keeps instead of a secret. A simple hash is enough,
// because nobody can guess 256 random bits.
func SecretHash(secret string) [32]byte { return sha256.Sum256([]byte(secret)) }

// Principal returns the principal for a request with this token.
func (t APIToken) Principal() Principal {
	return Principal{Name: TokenName + t.Name, Grants: []Grant{t.Grant}}
}

// NewAPIToken returns a token with the given grant. The parameter "expires" is the time at which
// the token becomes invalid. If it is zero, the token is valid for ever. If the name or the time is
// not valid, the error wraps ErrInvalid.
func NewAPIToken(name string, g Grant, expires, now time.Time) (APIToken, error) {
	var err error
	switch {
	case !validTokenName(name):
		err = fmt.Errorf(
			"%w: the name of a token has 1 to %d letters, digits, dots, hyphens and underscores", ErrInvalid,
			maxTokenName,
		)
	case !expires.IsZero() && !expires.After(now):
		err = fmt.Errorf("%w: the token would have expired already", ErrInvalid)
	}
	return APIToken{Name: name, Grant: g, ExpiresAt: expires}, err
}

// maxTokenName is the maximum length of a token's name in bytes.
const maxTokenName = 64

func validTokenName(name string) bool {
	return name != "" && len(name) <= maxTokenName && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-", r)
	})
}

// Words describes the rights of a token and when it expires, as a text for the audit.
func (t APIToken) Words() string {
	text := t.Grant.Words()
	if !t.ExpiresAt.IsZero() {
		text += ", until " + t.ExpiresAt.UTC().Format("2006-01-02 15:04 UTC")
	}
	return text
}
