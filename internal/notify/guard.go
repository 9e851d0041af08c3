package notify

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"
)

// guard decides to which addresses connections may be opened. It resolves a name once, checks every
// address, and connects to a checked address. The name therefore cannot get another address between
// the check and the connection.
type guard struct {
	allowPrivate bool
	plain        bool // the connection is not encrypted, so only private addresses are permitted
	lookup       func(ctx context.Context, host string) ([]netip.Addr, error)
	connect      func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
}

func newGuard(allowPrivate, plain bool) *guard {
	d := &net.Dialer{Timeout: dialTimeout, KeepAlive: -1}
	return &guard{
		allowPrivate: allowPrivate, plain: plain,
		lookup: func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		},
		connect: func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			return d.DialContext(ctx, "tcp", to.String())
		},
	}
}

const (
	dialTimeout = 2 * time.Second // maximum time per address; the limit for the whole request also applies
	mostDials   = 3               // maximum number of addresses that are tried per name
)

// guardError is the reason why dlo opened no connection to a host name, for example because the
// name leads to a private address. After this error, the message is sent again, because the name
// may have another address later. If the URL of the channel itself contains the rejected address,
// the error is permanent instead.
type guardError string

func (g guardError) Error() string { return string(g) }

// dial opens a connection to an address of the form host:port.
func (g *guard) dial(ctx context.Context, _, address string) (net.Conn, error) {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return nil, guardError("no address of the form host:port")
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, guardError("no port number")
	}
	addrs, err := g.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	for _, a := range addrs[:min(mostDials, len(addrs))] {
		var c net.Conn
		if c, err = g.connect(ctx, netip.AddrPortFrom(a, uint16(port))); err == nil {
			return c, nil
		}
	}
	return nil, err
}

// resolve returns the addresses of a host to which connections are permitted. It returns at least
// one address, or an error.
func (g *guard) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		if why := g.whyRefused(a); why != "" {
			return nil, permanentError("the address %s is %s", a, why)
		}
		return []netip.Addr{a}, nil
	}
	all, err := g.lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	var admitted []netip.Addr
	err = guardError(fmt.Sprintf("the name %s has no address", line(host, 100)))
	for _, a := range all {
		a = a.Unmap() // a resolver may return an IPv4 address in its IPv6 form
		if why := g.whyRefused(a); why == "" {
			admitted = append(admitted, a)
		} else {
			err = guardError(fmt.Sprintf("the name %s leads to %s, which is %s", line(host, 100), a, why))
		}
	}
	if len(admitted) == 0 {
		return nil, err
	}
	return admitted, nil
}

// whyRefused returns the reason why no connection to an address is permitted. If a connection is
// permitted, it returns "".
func (g *guard) whyRefused(a netip.Addr) string {
	switch k := kindOf(a); {
	case k == "":
		if g.plain {
			return "public: without TLS only private addresses are allowed, with allow_private"
		}
		return ""
	case isPrivate(k) && g.allowPrivate:
		return ""
	case isPrivate(k):
		return k + ": it needs allow_private"
	default:
		return k + ": never allowed"
	}
}

// isPrivate reports whether the setting allow_private permits this kind of address.
func isPrivate(kind string) bool { return kind == "private" || kind == "loopback" }

// network is a range of IP addresses of one kind, for example private ones.
type network struct {
	prefix netip.Prefix
	kind   string
}

// networks contains the special ranges of the IANA registries (RFC 6890 and its successors). The
// first range that contains an address determines its kind. Some kinds are always rejected, even if
// allow_private is set. Among them are addresses at which clouds provide the credentials of a
// machine. Such an address can be link-local, shared or, with IPv6, private. IPv6 addresses that
// contain an IPv4 address are also always rejected.
var networks = []network{
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
	{netip.MustParsePrefix("10.0.0.0/8"), "private"},
	{netip.MustParsePrefix("172.16.0.0/12"), "private"},
	{netip.MustParsePrefix("192.168.0.0/16"), "private"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local, where clouds keep metadata"},
	{netip.MustParsePrefix("100.64.0.0/10"), "shared (CGNAT)"},
	{netip.MustParsePrefix("0.0.0.0/8"), "unspecified"},
	{netip.MustParsePrefix("192.0.0.0/24"), "reserved"},
	{netip.MustParsePrefix("192.0.2.0/24"), "reserved"},
	{netip.MustParsePrefix("192.88.99.0/24"), "reserved"},
	{netip.MustParsePrefix("198.18.0.0/15"), "reserved"},
	{netip.MustParsePrefix("198.51.100.0/24"), "reserved"},
	{netip.MustParsePrefix("203.0.113.0/24"), "reserved"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},
	{netip.MustParsePrefix("0.0.0.0/0"), ""},
	{netip.MustParsePrefix("::1/128"), "loopback"},
	{netip.MustParsePrefix("fd00:ec2::254/128"), "the metadata address of a cloud"},
	{netip.MustParsePrefix("fd20:ce::254/128"), "the metadata address of a cloud"},
	{netip.MustParsePrefix("fc00::/7"), "private"},
	{netip.MustParsePrefix("fe80::/10"), "link-local"},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
	{netip.MustParsePrefix("64:ff9b::/96"), "a NAT64 form of an IPv4 address"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "a NAT64 form of an IPv4 address"},
	{netip.MustParsePrefix("2001::/23"), "reserved"},
	{netip.MustParsePrefix("2001:db8::/32"), "reserved"},
	{netip.MustParsePrefix("2002::/16"), "a 6to4 form of an IPv4 address"},
	{netip.MustParsePrefix("3fff::/20"), "reserved"},
	{netip.MustParsePrefix("2000::/3"), ""},
}

// kindOf returns the kind of an address. It returns "" for a public address.
func kindOf(a netip.Addr) string {
	switch {
	case a.Is4In6():
		return "an IPv6 form of an IPv4 address"
	case a.Zone() != "":
		return "link-local"
	case a.IsUnspecified():
		return "unspecified"
	}
	for _, n := range networks {
		if n.prefix.Contains(a) {
			return n.kind
		}
	}
	return "reserved"
}
