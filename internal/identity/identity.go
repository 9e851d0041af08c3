// Package identity determines who makes a request. This is a person whom a trusted proxy names in
// headers, a user of dlo with a session, or the holder of a token. The package gives this person or
// token the grants in the configuration.
package identity

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Proxy describes a proxy in front of dlo. The proxy reports the addresses of people. If User is
// set, the proxy also authenticates people. The zero value trusts nobody.
type Proxy struct {
	From   []netip.Prefix // addresses of the proxy, from which headers are trusted
	Unix   bool           // headers of requests through a socket of the machine are trusted
	User   string         // header that contains the person's name; "" = the proxy does not authenticate people
	Email  string         // header that contains the person's e-mail address; "" = none
	Groups string         // header that contains the person's groups, separated by commas; "" = none
	Secret string         // value that SecretHeader must have; "" = the header is not required
}

// SecretHeader is the header that contains the secret with which a proxy identifies itself.
const SecretHeader = "X-Dlo-Proxy-Secret"

// Grant is a grant together with the principals who get it.
type Grant struct {
	To            []string // each is user:NAME, group:NAME, token:NAME or Everyone
	WithoutStepUp bool     // the proxy's authentication is enough to see masked data, to purge and to change rights
	deadletter.Grant
}

// Everyone is a value of the field To of a grant. It stands for every person whose name dlo knows.
// A token is not a person. It has only the grant with which it was created, and grants that name
// the token.
const Everyone = "everyone"

// Tokens finds API tokens by their hash. The context of TokenBy contains the address from which the
// token is used (deadletter.FromAddress). If no token has the hash, or if the token has expired,
// TokenBy returns an error that wraps deadletter.ErrNotFound.
type Tokens interface {
	TokenBy(ctx context.Context, hash [32]byte) (deadletter.APIToken, error)
}

// Options contains the settings that determine how people and tokens are identified.
type Options struct {
	Proxy  Proxy
	Tokens Tokens    // nil = tokens are refused
	Users  *Accounts // nil = there are no local users
	Secure bool      // people reach dlo through https
	Grants []Grant

	// Permissions returns a person's permissions in RabbitMQ. It is used for grants that are limited
	// to these permissions. If it is nil, such grants permit nothing.
	Permissions deadletter.PermissionsOf
}

// CookieName returns the name of the session cookie.
func CookieName(secure bool) string {
	if secure {
		return HostOnly + "dlo"
	}
	return "dlo-session"
}

// HostOnly is a prefix for the name of a cookie. Browsers reject a cookie with this prefix if it
// was set for another path or another domain, or without https.
const HostOnly = "__Host-"

// Secret returns the secret in the session cookie of a request. It returns "" if there is no such
// cookie. If the cookie occurs twice, it also returns "", because another path or another host may
// have set one of them.
func Secret(r *http.Request, secure bool) string {
	all := r.CookiesNamed(CookieName(secure))
	if len(all) != 1 {
		return ""
	}
	return all[0].Value
}

// Identity determines who makes a request. Its methods are safe for concurrent use.
type Identity struct {
	Options
	grants atomic.Pointer[[]Grant]
}

// New returns an Identity.
func New(o Options) *Identity {
	i := &Identity{Options: o}
	i.Replace(o.Grants)
	return i
}

// Replace replaces the grants. The new grants apply from the next request on.
func (i *Identity) Replace(grants []Grant) { i.grants.Store(&grants) }

// Of returns the principal who makes a request, with the grants of this principal. If no principal
// can be determined, the error wraps deadletter.ErrSignIn. If the principal has no grant, the error
// wraps deadletter.ErrForbidden.
func (i *Identity) Of(r *http.Request) (deadletter.Principal, error) {
	p, groups, err := i.principalOf(r)
	if err != nil {
		return deadletter.Principal{}, err
	}
	for _, g := range *i.grants.Load() {
		if !g.covers(p.Name, groups) {
			continue
		}
		if g.Again = p.again; g.WithoutStepUp {
			g.Again = ""
		}
		if g.FromRabbitMQ {
			if g.Grant = g.Within(i.permissions(r.Context(), p.Name)); len(g.Written) == 0 {
				continue
			}
		}
		p.Grants = append(p.Grants, g.Grant)
	}
	if len(p.Grants) == 0 {
		return p.Principal, fmt.Errorf(
			"%w: dlo knows you as %s, and no grant names you%s; ask the person who runs dlo for a grant",
			deadletter.ErrForbidden, deadletter.Visible(p.Name), ofGroups(groups),
		)
	}
	return p.Principal, nil
}

// permissions returns a person's permissions in RabbitMQ. A token is not a person, so it has none.
func (i *Identity) permissions(ctx context.Context, name string) []deadletter.Written {
	if i.Permissions == nil || strings.HasPrefix(name, deadletter.TokenName) {
		return nil
	}
	return i.Permissions(ctx, name)
}

// known is the principal who makes a request. Some actions are permitted only if the principal has
// entered the password recently. If this is not so, the field "again" says why these actions are
// not permitted now. Otherwise it is "".
type known struct {
	deadletter.Principal
	again string
}

// Granted returns the grants that the configuration gives to the user or token with the given name.
func (i *Identity) Granted(name string) []deadletter.Grant {
	var list []deadletter.Grant
	for _, g := range *i.grants.Load() {
		if g.covers(name, nil) {
			list = append(list, g.Grant)
		}
	}
	return list
}

// covers reports whether the grant applies to a principal with the given name and groups.
func (g Grant) covers(name string, groups []string) bool {
	return slices.ContainsFunc(g.To, func(to string) bool {
		if group, ok := strings.CutPrefix(to, "group:"); ok {
			return slices.Contains(groups, group)
		}
		return to == Everyone && !strings.HasPrefix(name, deadletter.TokenName) ||
			to == name && !strings.HasPrefix(name, "user:") ||
			to == "user:"+name && !strings.HasPrefix(name, deadletter.TokenName)
	})
}

func ofGroups(groups []string) string {
	switch n := len(groups); {
	case n == 0:
		return " (your proxy sends no groups)"
	case n == 1:
		return " or your group " + deadletter.Visible(groups[0])
	default:
		return fmt.Sprintf(" or one of your %d groups", n)
	}
}

// principalOf returns the principal of a request and the principal's groups. It does not add the
// grants of the configuration.
func (i *Identity) principalOf(r *http.Request) (known, []string, error) {
	if secret, ok := bearerToken(r); ok {
		return i.token(r.Context(), secret)
	}
	if secret := Secret(r, i.Secure); i.Users != nil && secret != "" && !strings.HasPrefix(r.URL.Path, "/api/") {
		switch n, err := i.Users.Session(r.Context(), secret); {
		case err == nil:
			return i.Users.principal(n), nil, nil
		case !errors.Is(err, deadletter.ErrNotFound):
			return known{}, nil, err
		}
	}
	refused := deadletter.ErrSignIn
	if i.Proxy.User != "" && r.Header.Get(i.Proxy.User) != "" {
		refused = deadletter.ErrCredentials
	}
	if i.Users != nil && (i.Proxy.User == "" || !i.trusted(r)) && !strings.HasPrefix(r.URL.Path, "/api/") {
		return known{}, nil, fmt.Errorf("%w: sign in at /signin", refused)
	}
	if i.Proxy.User == "" {
		return known{}, nil, fmt.Errorf("%w: send a token of dlo in the header Authorization, as Bearer", refused)
	}
	if !i.trusted(r) {
		return known{}, nil, fmt.Errorf("%w: open dlo through the proxy that signs people in, or send a token", refused)
	}
	return i.Proxy.person(r.Header)
}

// bearerToken returns the API token in a request. It ignores other credentials in the same header,
// because they may be for the proxy.
func bearerToken(r *http.Request) (string, bool) {
	for _, value := range r.Header.Values("Authorization") {
		scheme, rest, _ := strings.Cut(value, " ")
		if strings.EqualFold(scheme, "Bearer") && strings.HasPrefix(strings.TrimSpace(rest), deadletter.TokenPrefix) {
			return strings.TrimSpace(rest), true
		}
	}
	return "", false
}

func (i *Identity) token(ctx context.Context, secret string) (known, []string, error) {
	invalid := fmt.Errorf("%w: the token is not valid; it may have expired or been revoked", deadletter.ErrCredentials)
	if i.Tokens == nil {
		return known{}, nil, invalid
	}
	t, err := i.Tokens.TokenBy(ctx, deadletter.SecretHash(secret))
	switch {
	case errors.Is(err, deadletter.ErrNotFound):
		return known{}, nil, invalid
	case err != nil:
		return known{}, nil, err
	}
	return known{Principal: t.Principal()}, nil, nil
}

// Set reports whether the configuration describes a proxy.
func (p Proxy) Set() bool { return p.Unix || len(p.From) > 0 }

// trusted reports whether a request comes from the proxy and contains the secret of the proxy.
func (i *Identity) trusted(r *http.Request) bool {
	if !i.fromProxyAddress(r) {
		return false
	}
	if i.Proxy.Secret == "" {
		return true
	}
	given := r.Header.Values(SecretHeader)
	return len(given) == 1 && subtle.ConstantTimeCompare([]byte(given[0]), []byte(i.Proxy.Secret)) == 1
}

// fromProxyAddress reports whether a request comes from an address of the proxy. If the request
// came through a Unix socket, it reports whether the proxy uses Unix sockets.
func (i *Identity) fromProxyAddress(r *http.Request) bool {
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && local.Network() == "unix" {
		return i.Proxy.Unix
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	address := peer.Addr().Unmap().WithZone("")
	return slices.ContainsFunc(i.Proxy.From, func(p netip.Prefix) bool { return p.Contains(address) })
}

// Address returns the address of the person who makes a request. This is the last address in the
// header X-Forwarded-For, because the proxy appends it. The addresses before it may be forged.
func (i *Identity) Address(r *http.Request) string {
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	person, err := netip.ParseAddr(strings.TrimSpace(hops[len(hops)-1]))
	if err == nil && i.trusted(r) {
		return person.Unmap().WithZone("").String()
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil { // the request came through a socket of the machine
		return ""
	}
	return peer.Addr().Unmap().WithZone("").String()
}

// noPassword is the text that people get if an action needs the password again, but the proxy
// authenticated them.
const noPassword = "your grant needs without_step_up: true, because dlo cannot ask a proxy for your password again"

// These are the limits of the values that a proxy may send.
const (
	maxName   = 256  // maximum length in bytes of a name
	maxGroups = 2000 // maximum number of groups of one person
)

// person returns the person whom the proxy names in the headers of a request.
func (p Proxy) person(h http.Header) (known, []string, error) {
	unknown := func(format string, args ...any) (known, []string, error) {
		return known{}, nil, fmt.Errorf("%w: "+format, append([]any{deadletter.ErrCredentials}, args...)...)
	}
	from := p.User
	name, err := singleHeader(h, from)
	if err != nil {
		return unknown("%s", err)
	}
	if p.Email != "" {
		email, err := singleHeader(h, p.Email)
		if err != nil {
			return unknown("%s", err)
		}
		if email != "" {
			name, from = email, p.Email
		}
	}
	if name == "" {
		return known{}, nil, fmt.Errorf(
			"%w: the proxy did not send the header %s; programs send a token of dlo in the header Authorization, as Bearer",
			deadletter.ErrSignIn, p.User,
		)
	}
	if deadletter.UnfilledName(name) {
		return unknown("the proxy calls you %s, which looks like a variable that it did not fill in; "+
			"correct the header %s in its configuration", deadletter.Visible(name), from)
	}
	if deadletter.ReservedName(name) {
		return unknown("the proxy calls you %s, a name that dlo keeps for itself", deadletter.Visible(name))
	}
	groups, err := p.groups(h)
	if err != nil {
		return unknown("%s", err)
	}
	return known{deadletter.Principal{Name: name}, noPassword}, groups, nil
}

// duplicateHeaderError returns the error for a header that occurs more than once. An attacker may
// have smuggled one of the copies past the proxy.
func duplicateHeaderError(name string, n int) error {
	return fmt.Errorf("the header %s is there %d times; the proxy has to replace what people send", name, n)
}

// singleHeader returns the value of a header, or "" if the header is missing. It returns an error
// if the header occurs more than once.
func singleHeader(h http.Header, name string) (string, error) {
	values := h.Values(name)
	switch {
	case len(values) == 0:
		return "", nil
	case len(values) > 1:
		return "", duplicateHeaderError(name, len(values))
	}
	value := strings.TrimSpace(values[0])
	if len(value) > maxName || !isVisible(value) {
		return "", fmt.Errorf("the header %s has to be at most %d bytes of visible UTF-8", name, maxName)
	}
	return value, nil
}

// isVisible reports whether a text is valid UTF-8 without hidden characters.
func isVisible(s string) bool { return utf8.ValidString(s) && deadletter.Visible(s) == s }

// groups returns a person's groups from the headers, sorted and without duplicates.
func (p Proxy) groups(h http.Header) ([]string, error) {
	if p.Groups == "" {
		return nil, nil
	}
	values := h.Values(p.Groups)
	if len(values) > 1 {
		return nil, duplicateHeaderError(p.Groups, len(values))
	}
	var list []string
	for group := range strings.SplitSeq(strings.Join(values, ""), ",") {
		switch group = strings.TrimSpace(group); {
		case group == "", strings.HasPrefix(group, "{http."):
			// Caddy sends the name of a header that the sign-in did not set
		case len(group) > maxName || !isVisible(group):
			return nil, fmt.Errorf(
				"a group in the header %s has to be at most %d bytes of visible UTF-8", p.Groups, maxName,
			)
		case deadletter.UnfilledName(group):
			return nil, fmt.Errorf("the group %s in the header %s looks like a variable that the proxy did not fill in; "+
				"let it send no such header for people without groups", deadletter.Visible(group), p.Groups)
		default:
			list = append(list, group)
		}
	}
	if len(list) > maxGroups {
		return nil, fmt.Errorf(
			"the header %s has %d groups, and %d are allowed; let the proxy send fewer", p.Groups, len(list), maxGroups,
		)
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}
