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
	ID        int64
	Name      string // unique; the audit shows it as token:NAME
	Grant     Grant
	CreatedAt time.Time
	CreatedBy string
	ExpiresAt time.Time // zero = never
	UsedAt    time.Time // time of the last use, up to a minute late; zero = never used
	UsedFrom  string    // address of that use; "" = not known
}

// TokenPrefix is the beginning of every API token. Scanners of source code recognise tokens by it.
const TokenPrefix = "dlo_"

// TokenName begins the name of each principal that is a token.
const TokenName = "token:"

// NewSecret returns the secret of a new API token: the prefix and 256 random bits in base64url.
func NewSecret() string {
	var bits [32]byte
	_, _ = rand.Read(bits[:]) // never fails (crypto/rand)
	return TokenPrefix + base64.RawURLEncoding.EncodeToString(bits[:])
}

// SecretHash returns the hash that the store keeps instead of a token's secret. A plain hash is
// enough, because nobody can guess 256 random bits.
func SecretHash(secret string) [32]byte { return sha256.Sum256([]byte(secret)) }

// Principal returns the principal of a token.
func (t APIToken) Principal() Principal {
	return Principal{Name: TokenName + t.Name, Grants: []Grant{t.Grant}}
}

// NewAPIToken returns a token with a grant. The token expires at the time "expires", or never if
// that time is zero. The error wraps ErrInvalid.
func NewAPIToken(name string, g Grant, expires, now time.Time) (APIToken, error) {
	var err error
	switch {
	case !validTokenName(name):
		err = fmt.Errorf("%w: the name of a token has 1 to %d letters, digits, dots, hyphens and underscores", ErrInvalid, maxTokenName)
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

// Words returns a description of a token's rights and expiry for the audit.
func (t APIToken) Words() string {
	text := t.Grant.Words()
	if !t.ExpiresAt.IsZero() {
		text += ", until " + t.ExpiresAt.UTC().Format("2006-01-02 15:04 UTC")
	}
	return text
}
