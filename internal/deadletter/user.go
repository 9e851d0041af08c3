package deadletter

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// InvitationLasts is the time within which a user can accept an invitation.
const InvitationLasts = 72 * time.Hour

// User is a local user.
type User struct {
	Name       string    `json:"name"`
	Grant      Grant     `json:"grant"`
	CreatedAt  time.Time `json:"created_at"`
	CreatedBy  string    `json:"created_by"`
	SignedInAt time.Time `json:"signed_in_at,omitzero"` // absent = never
	Invited    bool      `json:"invited"`               // the user has not chosen a password yet
}

// Session is the session of a local user in one browser.
type Session struct {
	User        string
	Grant       Grant
	Hash        [32]byte // hash of the cookie's value
	CreatedAt   time.Time
	UsedAt      time.Time // time of the last use, which may be up to a minute too early
	ConfirmedAt time.Time // time at which the user last entered the password
	Address     string
	Agent       string // User-Agent of the browser
}

// Short returns a name for the session. The name may be public. It is the hash of a hash, so it
// reveals nothing.
func (s Session) Short() string {
	sum := sha256.Sum256(s.Hash[:])
	return hex.EncodeToString(sum[:6])
}

// maxUserName is the maximum length of a user's name in bytes.
const maxUserName = 64

// misleadingNames are names that no local user may have. "everyone" is the name of a grant to all
// people. "." and ".." have a special meaning in URLs, so browsers and proxies would remove them.
var misleadingNames = []string{"everyone", ".", ".."}

// nobodyNames are the texts that proxies, templates and programs send for a variable without a
// value, in lower case.
var nobodyNames = []string{"-", "null", "none", "undefined", "anonymous", "remote_user"}

var (
	// placeholder matches a text in brackets: (null), <no value>, <nil>, <user>, [user].
	placeholder = regexp.MustCompile(`^(\(.*\)|<.*>|\[.*\])$`)
	// variable matches a variable that a proxy did not fill in: {x}, ${x}, %{X}e, $x, $1, $(x), %u,
	// %X%, %[x]. A letter or digit before $ or % makes it a part of a name.
	variable = regexp.MustCompile(`[{}]|(^|[^\pL\pN])[$%][\pL\pN_(\[]`)
	// noVariable matches what real names contain: an octet in percent-encoding, a GUID in braces, and
	// the name that Exchange gives to a group in Active Directory.
	noVariable = regexp.MustCompile(`%[0-9A-Fa-f]{2}|\{[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\}|` +
		`\$[0-9A-Z]{6}-[0-9A-Z]{12}`)
)

// UnfilledName reports whether the name of a person or of a group looks like a variable that a
// proxy did not fill in.
func UnfilledName(name string) bool {
	return slices.Contains(nobodyNames, strings.ToLower(name)) || name == "nil" || // Nil is a name
		placeholder.MatchString(name) || variable.MatchString(noVariable.ReplaceAllString(name, "x"))
}

// NewUser returns a local user with the given name and grant. If the name is not permitted, NewUser
// returns an error that wraps ErrInvalid.
func NewUser(name string, g Grant, by string) (User, error) {
	var err error
	switch {
	case name == "" || len(name) > maxUserName || !utf8.ValidString(name) || Visible(name) != name ||
		strings.TrimSpace(name) != name || strings.ContainsAny(
		name, "{}:",
	):
		err = fmt.Errorf(
			"%w: a user's name has 1 to %d bytes of visible text, and none of them is a brace or a colon", ErrInvalid,
			maxUserName,
		)
	case ReservedName(name):
		err = fmt.Errorf("%w: dlo keeps the name %s for itself; choose another", ErrInvalid, name)
	case slices.Contains(misleadingNames, strings.ToLower(name)) || UnfilledName(name):
		err = fmt.Errorf(
			"%w: the name %s means something else in a grant, in a URL or to a proxy; choose another", ErrInvalid, name,
		)
	}
	return User{Name: name, Grant: g, CreatedBy: by}, err
}

// Unknown is the actor of a sign-in with a name that no user has. It is also the actor of a denied
// request if it is unknown who sent the request.
const Unknown = "unknown"

// ReservedName reports whether people could mistake a name for dlo itself, for the user "local",
// for an unknown user, or for a token.
func ReservedName(name string) bool {
	lower := strings.ToLower(name)
	return lower == Local.Name || lower == Service.Name || lower == Unknown || strings.HasPrefix(lower, TokenName)
}
