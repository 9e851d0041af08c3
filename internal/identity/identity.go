// Package identity determines who makes a request: a person whom a trusted proxy names in headers,
// a user of dlo with a session, or the holder of a token. It gives them the
// grants in the configuration.
package identity

import (
	"cmp"
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

// Proxy is a proxy in front of dlo. It reports the addresses of people, and authenticates them if
// User is set. Its zero value trusts nobody.
type Proxy struct {
	From   []netip.Prefix // addresses from which headers are trusted
	Unix   bool           // headers are trusted from the sockets of the machine
	User   string         // the header with the person's name; "" = the proxy names nobody
	Email  string         // the header with the person's e-mail address; "" = none
	Groups string         // the header with the person's groups, separated by commas; "" = none
	Secret string         // required value of SecretHeader; "" = none is required
}

// SecretHeader is the header in which a proxy proves that it is the proxy.
const SecretHeader = "X-Dlo-Proxy-Secret"

// Grant says which principals get a grant.
type Grant struct {
	To            []string // user:NAME, group:NAME, token:NAME, or Everyone
	WithoutStepUp bool     // a proxy's word is enough to see masked data, to purge and to change rights
	deadletter.Grant
}

// Everyone is a value for To in a grant. It means each person that dlo knows. A token is no person:
// it has the grant that it was created with, and the grants that name it.
const Everyone = "everyone"

// Tokens finds tokens of the API. The context of TokenBy has the address from which the token is
// used (deadletter.FromAddress). The error of TokenBy wraps deadletter.ErrNotFound if no token has
// the hash, or if the token with the hash has expired.
type Tokens interface {
	TokenBy(ctx context.Context, hash [32]byte) (deadletter.APIToken, error)
}

// Options holds the settings that determine how people and tokens are identified.
type Options struct {
	Proxy  Proxy
	Tokens Tokens    // nil: tokens are refused
	Users  *Accounts // nil: nobody has an account
	Secure bool      // people reach dlo by https
	Grants []Grant

	// Permissions returns the permissions of a person in RabbitMQ, for grants that are limited to
	// these. If it is nil, such grants permit nothing.
	Permissions deadletter.PermissionsOf
}

// CookieName returns the name of a session's cookie.
func CookieName(secure bool) string {
	if secure {
		return HostOnly + "dlo"
	}
	return "dlo-session"
}

// HostOnly is the prefix of a cookie's name. Browsers refuse a cookie with this prefix for another
// path, for another domain and without https.
const HostOnly = "__Host-"

// Secret returns the secret of the session that a request belongs to, or "". If a cookie occurs
// twice, another path or another host may have set it, so Secret ignores it.
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

// Replace puts other grants into use. They apply from the next request on.
func (i *Identity) Replace(grants []Grant) { i.grants.Store(&grants) }

// Of returns the principal that makes a request, with its grants. The error wraps
// deadletter.ErrSignIn if no principal can be determined, and deadletter.ErrForbidden if the
// principal has no grant.
func (i *Identity) Of(r *http.Request) (deadletter.Principal, error) {
	p, groups, err := i.who(r)
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
		return p.Principal, fmt.Errorf("%w: dlo knows you as %s, and no grant names you%s; ask the person who runs dlo for a grant", deadletter.ErrForbidden, deadletter.Visible(p.Name), ofGroups(groups))
	}
	return p.Principal, nil
}

// permissions returns the permissions of a person in RabbitMQ. A token is no person, so it has
// none.
func (i *Identity) permissions(ctx context.Context, name string) []deadletter.Written {
	if i.Permissions == nil || strings.HasPrefix(name, deadletter.TokenName) {
		return nil
	}
	return i.Permissions(ctx, name)
}

// known is the principal that makes a request. The field again is the reason why grants of the
// configuration currently do not permit actions that need a recently given password. If again is
// "", the grants permit these actions.
type known struct {
	deadletter.Principal
	again string
}

// Granted returns the grants that the configuration gives to the user or token with a name.
func (i *Identity) Granted(name string) []deadletter.Grant {
	var list []deadletter.Grant
	for _, g := range *i.grants.Load() {
		if g.covers(name, nil) {
			list = append(list, g.Grant)
		}
	}
	return list
}

// covers reports whether the grant applies to a principal.
func (g Grant) covers(name string, groups []string) bool {
	return slices.ContainsFunc(g.To, func(to string) bool {
		if group, ok := strings.CutPrefix(to, "group:"); ok {
			return slices.Contains(groups, group)
		}
		return to == Everyone && !strings.HasPrefix(name, deadletter.TokenName) || to == name && !strings.HasPrefix(name, "user:") || to == "user:"+name && !strings.HasPrefix(name, deadletter.TokenName)
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

// who returns the principal of a request without the grants of the configuration. It also returns
// the principal's groups.
func (i *Identity) who(r *http.Request) (known, []string, error) {
	if secret, ok := bearer(r); ok {
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

// bearer returns the token of the API that a request carries. Other credentials in the same header
// may belong to the proxy, so bearer ignores them.
func bearer(r *http.Request) (string, bool) {
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

// Set reports whether there is a proxy.
func (p Proxy) Set() bool { return p.Unix || len(p.From) > 0 }

// trusted reports whether a request comes from the proxy.
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

// fromProxyAddress reports whether a request comes from an address of the proxy, or from a socket
// of the machine if the proxy uses one.
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

// Address returns the address of the person who makes a request. The proxy appends this address to
// X-Forwarded-For. Addresses before it in the header may be made up.
func (i *Identity) Address(r *http.Request) string {
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	person, err := netip.ParseAddr(strings.TrimSpace(hops[len(hops)-1]))
	if err == nil && i.trusted(r) {
		return person.Unmap().WithZone("").String()
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil { // a socket of the machine
		return ""
	}
	return peer.Addr().Unmap().WithZone("").String()
}

// noPassword is the reason why a person whom the proxy authenticated is not allowed to perform
// actions that need the password again.
const noPassword = "your grant needs without_step_up: true, because dlo cannot ask a proxy for your password again"

// These are the limits of the values that a proxy may send.
const (
	maxName   = 256  // bytes
	maxGroups = 2000 // of one person
)

// person returns the person whom the proxy names in the headers.
func (p Proxy) person(h http.Header) (known, []string, error) {
	unknown := func(format string, args ...any) (known, []string, error) {
		return known{}, nil, fmt.Errorf("%w: "+format, append([]any{deadletter.ErrCredentials}, args...)...)
	}
	name, err := single(h, p.User)
	if err != nil {
		return unknown("%s", err)
	}
	if p.Email != "" {
		email, err := single(h, p.Email)
		if err != nil {
			return unknown("%s", err)
		}
		name = cmp.Or(email, name)
	}
	if name == "" {
		return known{}, nil, fmt.Errorf("%w: the proxy did not send the header %s; programs send a token of dlo in the header Authorization, as Bearer", deadletter.ErrSignIn, p.User)
	}
	if name == "(null)" || name == "-" || strings.ContainsAny(name, "{}") {
		return unknown("the proxy calls you %s, which looks like a variable that it did not fill in", deadletter.Visible(name))
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

// duplicateHeaderError is the error for a header that occurs more than once: a copy may have been
// smuggled past the proxy.
func duplicateHeaderError(name string, n int) error {
	return fmt.Errorf("the header %s is there %d times; the proxy has to replace what people send", name, n)
}

// single returns the value of a header that may occur at most once, or "".
func single(h http.Header, name string) (string, error) {
	values := h.Values(name)
	switch {
	case len(values) == 0:
		return "", nil
	case len(values) > 1:
		return "", duplicateHeaderError(name, len(values))
	}
	value := strings.TrimSpace(values[0])
	if len(value) > maxName || !clean(value) {
		return "", fmt.Errorf("the header %s has to be at most %d bytes of visible UTF-8", name, maxName)
	}
	return value, nil
}

// clean reports whether a name is valid UTF-8 without hidden characters.
func clean(s string) bool { return utf8.ValidString(s) && deadletter.Visible(s) == s }

// groups returns the groups of a person, without duplicates.
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
		case group == "":
		case len(group) > maxName || !clean(group):
			return nil, fmt.Errorf("a group in the header %s has to be at most %d bytes of visible UTF-8", p.Groups, maxName)
		default:
			list = append(list, group)
		}
	}
	if len(list) > maxGroups {
		return nil, fmt.Errorf("the header %s has %d groups, and %d are allowed; let the proxy send fewer", p.Groups, len(list), maxGroups)
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}
